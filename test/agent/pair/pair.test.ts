import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import type { DataplaneStatus } from '../../../agent/dataplane/status.ts';
import { HaproxyLiveness } from '../../../agent/haproxy/worker/liveness.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { Pair } from '../../../agent/pair/pair.ts';
import { noAuthReport } from '../../../agent/pair/peers/report.ts';
import type { Roles } from '../../../agent/pair/roles.ts';
import type { ObjectsState } from '../../../agent/pair/standing/own-standing.ts';
import { nothingReleased } from '../../../agent/state/release-mark.ts';
import { requires } from '../../support/basics/requirements.ts';
import { until } from '../../support/basics/until.ts';
import { ownNetwork } from '../../support/host/own-network.ts';
import { silentLog } from '../../support/values/silent-log.ts';
import { makeCredentials } from '../../support/vrrp/pair-credentials.ts';

const test = requires(ava, { programs: ['openssl'] });

const MASTER: Roles = { 'vrrp-51': 'master' };
const BACKUP: Roles = { 'vrrp-51': 'backup' };
const UNKNOWN: Roles = { 'vrrp-51': 'unknown' };

/** A pair's one side, whose HAProxy and VRRP are what the test says. */
class Side {
  readonly desired = new Map<string, LoadBalancer>();
  objects: ObjectsState = 'live';
  isServing = true;
  isReloading = false;
  /** The network namespace of the VIPs; '' for that of the test. */
  netns = '';
  vrrp: { readonly address: string; readonly peers: readonly string[] } | undefined;
  isPending = false;
  /** How often HAProxy was asked. */
  looks = 0;
  /** How often the HAProxies were told where to share their tables. */
  shared = 0;
  /** '' where HAProxy answers. */
  silence = '';
  roles: Roles = BACKUP;
  priority = 200;
  /** All that VRRP was told, in turn. */
  readonly told: string[] = [];
  readonly pair: Pair;
  #liveness: HaproxyLiveness | undefined;

  constructor(stateDir: string, own: string, peer: string, pairCredentials: string) {
    this.pair = new Pair({
      settings: () => ({
        stateDir,
        pairAddress: own,
        pairPeer: peer,
        pairPort: 9181,
        pairCredentials,
        netns: this.netns,
        hosts: [],
        pairLowerAfter: 100,
        pairRaiseAfter: 100,
        pairDrainTimeout: 60_000,
        pairTablesPort: 9182,
        vrrp: this.vrrp,
      }),
      host: {
        version: '1.0.0',
        desired: this.desired,
        objects: () => this.objects,
        released: () => nothingReleased,
      },
      dataplane: {
        status: () => ({ serving: this.isServing, isReloading: this.isReloading }) as DataplaneStatus,
        liveness: (options) => this.#dataplaneLiveness().look(options),
        served: (key) => (this.isPending ? 'pending' : this.desired.get(key)),
      },
      vrrp: {
        roles: () => this.roles,
        holds: () => true,
        standing: (reasons) => this.told.push(reasons.join() || 'full'),
        priorities: (reasons) => ({ 'vrrp-51': this.priority - (reasons.length > 0 ? 100 : 0) }),
        auth: () => noAuthReport,
        hearAuth: () => undefined,
        advertInterval: () => 200,
        isRefused: () => false,
      },
      handover: undefined,
      hooks: {
        onAnnounced: () => undefined,
        onProved: async () => {
          this.shared += 1;
        },
      },
      metrics: { pairRefused: () => undefined, handedOver: () => undefined },
      log: silentLog(),
    });
  }

  #dataplaneLiveness(): HaproxyLiveness {
    this.#liveness ??= new HaproxyLiveness({
      ask: async () => {
        this.looks += 1;
        if (this.silence !== '') throw new Error(this.silence);
      },
      desired: this.desired,
      facts: { serves: () => true, served: (key) => (this.isPending ? 'pending' : this.desired.get(key)) },
      netns: this.netns,
      workerPid: () => process.pid,
    });
    return this.#liveness;
  }

  put(name: string, listeners: readonly Listener[] = []): void {
    const key = `default/${name}`;
    const empty = { namespace: 'default', name, vips: [], listeners, problems: [] };
    this.desired.set(key, { kind: 'LoadBalancer', key, ...empty });
    this.pair.changed([key]);
  }

  take(roles: Roles): void {
    this.roles = roles;
    this.pair.roleChanged();
  }

  get lowered(): string {
    return this.pair
      .status()
      .lowered.map(({ reason }) => reason)
      .join();
  }
}

async function twoSides(t: ExecutionContext): Promise<readonly [Side, Side]> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-pair-'));
  const credentials = await makeCredentials(folder);
  const network = await ownNetwork(t);
  const [own, peer] = [`${network}.201`, `${network}.202`];
  const sides = [new Side(folder, own, peer, credentials), new Side(folder, peer, own, credentials)] as const;
  t.teardown(async () => {
    for (const { pair } of sides) pair.close();
    await rm(folder, { recursive: true });
  });
  return sides;
}

test('A standby is lowered from its start until it has read the objects and HAProxy serves them', async (t) => {
  const [side] = await twoSides(t);
  side.objects = 'unread';
  side.isServing = false;
  side.isPending = true;
  await side.pair.start();
  t.is(side.lowered, 'catching-up');
  side.objects = 'live';
  side.put('web');
  side.isServing = true;
  side.put('shop');
  await until('it waits for HAProxy', () => side.pair.status().pending === 2);
  t.is(side.lowered, 'catching-up');
  side.isPending = false;
  side.pair.changed(['default/web', 'default/shop']);
  await until('it stands in full', () => side.lowered === '' && side.told.at(-1) === 'full');
  t.deepEqual(side.told, ['catching-up', 'full']);
  // What comes later is a moment's delay, not a start.
  side.isPending = true;
  side.put('late');
  await until('it is behind', () => side.pair.status().pending === 1);
  t.is(side.lowered, '');
});

test('A host with a snapshot stays lowered only while its peer has other objects', async (t) => {
  const [side, other] = await twoSides(t);
  other.put('web');
  await other.pair.start();
  side.objects = 'kept';
  side.isServing = false;
  await side.pair.start();
  await until('the peer is heard', () => side.pair.status().peer !== undefined);
  side.isServing = true;
  side.pair.changed(['default/web']);
  await until('both are compared', () => side.pair.status().parity.model === 'differs');
  t.is(side.lowered, 'catching-up');
  side.put('web');
  await until('it stands in full', () => side.lowered === '');

  const [alone] = await twoSides(t);
  alone.objects = 'kept';
  await alone.pair.start();
  alone.put('web');
  await until('it stands in full, too', () => alone.lowered === '' && alone.told.at(-1) === 'full');
});

test('A host that is active when its agent starts is not lowered for catching up', async (t) => {
  const [side] = await twoSides(t);
  side.roles = UNKNOWN;
  side.isServing = false;
  await side.pair.start();
  t.is(side.lowered, 'catching-up');
  t.deepEqual(side.told, []);
  side.take(MASTER);
  t.deepEqual(side.told, ['full']);

  const [standby] = await twoSides(t);
  standby.roles = UNKNOWN;
  standby.isServing = false;
  await standby.pair.start();
  standby.take(BACKUP);
  t.deepEqual(standby.told, ['catching-up']);
});

test('A silent HAProxy has more time during a reload', async (t) => {
  const [reloading, idle] = await twoSides(t);
  for (const side of [reloading, idle]) await side.pair.start();
  for (const side of [reloading, idle]) await until('it stands in full', () => side.lowered === '');
  reloading.isReloading = true;
  for (const side of [reloading, idle]) side.silence = 'No answer';
  await until('the other one is lowered', () => idle.lowered === 'haproxy');
  await delay(300);
  t.is(reloading.lowered, '');
  // It has to come to an end, and a reload that never does is no excuse.
  reloading.isReloading = false;
  await until('it is lowered, too', () => reloading.lowered === 'haproxy');
});

test('An unreachable API server lowers no host', async (t) => {
  const [side] = await twoSides(t);
  side.objects = 'kept';
  await side.pair.start();
  side.put('web');
  await until('it stands in full', () => side.told.at(-1) === 'full');
  side.objects = 'unread';
  side.put('shop');
  await until('the change is taken', () => side.pair.status().pending === 0);
  t.is(side.lowered, '');
});

test('A HAProxy that is silent lowers the host, and raises it when it answers again', async (t) => {
  const [side] = await twoSides(t);
  await side.pair.start();
  await until('it stands in full', () => side.told.at(-1) === 'full');
  side.silence = 'HAProxy does not answer';
  await until('it is lowered', () => side.told.at(-1) === 'haproxy');
  t.is(side.pair.status().lowered[0]?.message, 'HAProxy does not answer');
  side.silence = '';
  await until('it is raised', () => side.told.at(-1) === 'full');
});

for (const [what, netns, roles] of [
  ['The master where the agent is', '', MASTER],
  ['A master in another network', 'elsewhere', MASTER],
  ['A standby', '', BACKUP],
] as const)
  test(`${what} is lowered when its listeners are gone, and until they are back`, async (t) => {
    const [side] = await twoSides(t);
    const server = createServer().listen(0, '127.0.0.1');
    t.teardown(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const pool = { members: [{ state: 'ready' }] };
    const web = { name: 'web', mode: 'tcp', addresses: ['127.0.0.1'], port, pool };
    const listeners = [web] as unknown as readonly Listener[];
    [side.netns, side.roles] = [netns, roles];
    await side.pair.start();
    side.put('web', listeners);
    await until('it stands in full', () => side.told.at(-1) === 'full');
    await new Promise((resolve) => server.close(resolve));
    await until('it is lowered', () => side.told.at(-1) === 'listeners');
    const message = side.pair.status().lowered[0]?.message ?? '';
    t.true(
      message.includes(netns === '' && roles === MASTER ? 'ECONNREFUSED' : 'Nothing listens on'),
      message,
    );
    // A host that has given way is no better for that.
    side.take(BACKUP);
    const looks = side.looks;
    await until('it has looked again', () => side.looks >= looks + 4);
    t.is(side.lowered, 'listeners');
    server.listen(port, '127.0.0.1');
    await until('it is raised', () => side.told.at(-1) === 'full');
  });

test('HAProxy in its own network namespace gets changed addresses of VRRP once', async (t) => {
  const [side] = await twoSides(t);
  [side.netns, side.vrrp] = ['elsewhere', { address: '192.0.2.1', peers: ['192.0.2.2'] }];
  await side.pair.start();
  await side.pair.renew();
  t.is(side.shared, 1);
  for (const vrrp of [
    { address: '192.0.2.3', peers: ['192.0.2.2'] },
    { address: '192.0.2.3', peers: ['192.0.2.4'] },
  ]) {
    const before = side.shared;
    side.vrrp = vrrp;
    await side.pair.renew();
    await side.pair.renew();
    t.is(side.shared, before + 1);
  }
  // Where HAProxy talks on the agents' addresses those of VRRP are nothing to it.
  side.netns = '';
  await side.pair.renew();
  const before = side.shared;
  side.vrrp = { address: '192.0.2.5', peers: ['192.0.2.2'] };
  await side.pair.renew();
  t.is(side.shared, before);
});

test('Two masters are reported by both hosts within two seconds', async (t) => {
  const [a, b] = await twoSides(t);
  for (const { pair } of [a, b]) await pair.start();
  for (const { pair } of [a, b]) await until('they hear each other', () => pair.status().fault === '');
  const began = performance.now();
  for (const side of [a, b]) side.take(MASTER);
  for (const { pair } of [a, b]) await until('it is reported', () => pair.status().twoMasters.length > 0);
  t.true(performance.now() - began > 1_000);
  t.is(a.pair.problems()[0]?.reason, 'TwoMasters');
  t.regex(b.pair.status().fault, /Both hosts of the pair are master of vrrp-51/);
  b.take(BACKUP);
  for (const { pair } of [a, b]) await until('it is over', () => pair.status().twoMasters.length === 0);
  t.deepEqual(a.pair.problems(), []);
});
