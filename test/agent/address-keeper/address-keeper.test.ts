import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import {
  AddressKeeper,
  type AddressSettings,
  CLAIM_FILE,
} from '../../../agent/address-keeper/address-keeper.ts';
import type { ClaimHome } from '../../../agent/address-keeper/stored-claims.ts';
import type { AddressClaim } from '../../../agent/addresses/addresses.ts';
import { claimManifest } from '../../../agent/kubernetes/address-claim.ts';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { until } from '../../support/basics/until.ts';
import { FakeApi, type Json, refusal } from '../../support/kube/fake-api.ts';
import { claim, pool } from '../../support/values/address-requests.ts';
import { node, slice } from '../../support/values/build.ts';
import { gateway, gatewayClass, ingressClass } from '../../support/values/gateways.ts';
import { parsedObject, serviceJson } from '../../support/values/kubernetes-json.ts';
import { silentLog } from '../../support/values/silent-log.ts';
import { SETTINGS } from '../../support/values/translated.ts';

const TRANSLATING = { ...SETTINGS, handleUnclassed: true };
const CLAIMS = '/apis/headgate.io/v1alpha1/addressclaims';

interface Keeper {
  readonly keeper: AddressKeeper;
  readonly cluster: Cluster;
  readonly api: FakeApi;
  /** May be moved by the test. */
  readonly place: { home: ClaimHome; leads: boolean; isBarred: boolean };
  /** Changes that the keeper reported, apart from the results of assign(). */
  readonly told: string[];
  readonly kept: string[];
  readonly stateDir: string;
  /** Puts Services into the cluster and gives what assign() answers, or tells later where the machine was slow. */
  serve(...services: KubernetesObject[]): Promise<ReadonlySet<string>>;
  remove(name: string): Promise<ReadonlySet<string>>;
  addressesOf(key: string): readonly string[] | undefined;
  /** As an agent that ran here before has left them; before start(). */
  leave(...claims: AddressClaim[]): Promise<void>;
  claimsInFile(): Promise<readonly string[]>;
}

/** Not started yet. */
async function keeperFor(
  t: ExecutionContext,
  {
    settings = {},
    inCluster = false,
    source = inCluster ? 'api' : 'manifests',
    requestFinalizer = async () => true,
  }: {
    readonly settings?: Partial<AddressSettings>;
    readonly inCluster?: boolean;
    readonly source?: 'api' | 'manifests';
    readonly requestFinalizer?: (service: string, uid: string) => Promise<boolean>;
  } = {},
): Promise<Keeper> {
  const stateDir = await mkdtemp(join(tmpdir(), 'headgate-keeper-'));
  const cluster = new Cluster();
  const api = new FakeApi();
  const place = { home: (inCluster ? 'cluster' : 'file') as ClaimHome, leads: true, isBarred: !inCluster };
  const told: string[] = [];
  const kept: string[] = [];
  const keeper = new AddressKeeper({
    cluster,
    settings: {
      pools: [pool('a', ['192.0.2.0/24'])],
      releaseAfter: 600_000,
      provisioner: '',
      stateDir,
      ...settings,
    },
    translating: TRANSLATING,
    store: {
      api: inCluster ? api : undefined,
      home: () => place.home,
      writers: {
        get isLeader() {
          return place.leads;
        },
        get isBarred() {
          return place.isBarred;
        },
        onLeader: () => undefined,
        events: { record: () => undefined },
        services: { requestFinalizer },
      },
    },
    hooks: {
      onChanged: (keys) => told.push(...keys),
      onKept: (key) => kept.push(key),
      onProblems: () => undefined,
    },
    log: silentLog(),
    metrics: { claimWritten: () => undefined, provisioned: () => undefined },
  });
  t.teardown(async () => {
    await keeper.close();
    await rm(stateDir, { recursive: true, force: true });
  });
  const assigned = async (change: Parameters<Cluster['apply']>[0]): Promise<ReadonlySet<string>> => {
    const before = told.length;
    const { owners: keys } = cluster.apply(change, source);
    const answer = keeper.assign(keys);
    // What takes longer than a slice is told, not answered.
    const isDecided = () => [...keys].every((key) => answer.has(key) || told.indexOf(key, before) >= 0);
    for (let turns = 0; turns < 100 && !isDecided(); turns++) await turn();
    return new Set([...answer, ...told.slice(before)]);
  };
  return {
    keeper,
    cluster,
    api,
    place,
    told,
    kept,
    stateDir,
    serve: (...services) => assigned({ upserted: services, removed: [] }),
    remove: (name) => assigned({ upserted: [], removed: [{ kind: 'Service', key: `default/${name}` }] }),
    addressesOf: (key) => keeper.ofPools(key)?.addresses.map(({ address }) => address),
    leave: async (...claims) => {
      await mkdir(join(stateDir, 'addresses'));
      const items = claims.map((each) => claimManifest(each));
      await writeFile(
        join(stateDir, ...CLAIM_FILE),
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      );
    },
    claimsInFile: async () => {
      const { items } = JSON.parse(await readFile(join(stateDir, ...CLAIM_FILE), 'utf8'));
      return items.map(
        ({ spec }: { spec: { service: string; address: string } }) => `${spec.service} ${spec.address}`,
      );
    },
  };
}

const service = (name: string, uid = '', annotations: Readonly<Record<string, string>> = {}) =>
  parsedObject(serviceJson(name, { metadata: uid === '' ? {} : { uid, annotations } }));

const [EARLY, LATE] = ['2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z'];

/** 192.0.2.`last`, given to Service `name` of UID `u-NAME`. */
function given(last: number, name: string, since: string, more: object = {}): AddressClaim {
  const spec = { address: `192.0.2.${last}`, pool: 'a', service: `default/${name}`, serviceUID: `u-${name}` };
  return claim(`192-0-2-${last}`, { ...spec, since, ...more });
}

const stored = (one: AddressClaim) =>
  parsedObject({
    ...claimManifest(one),
    metadata: { name: one.name, uid: `c-${one.name}`, resourceVersion: '7' },
  });

test('assign() gives an address at once, but publishes it only after its claim is stored', async (t) => {
  const { keeper, serve, addressesOf, kept, claimsInFile } = await keeperFor(t);
  await keeper.start();
  t.deepEqual([...(await serve(service('web')))], ['default/web']);
  const [address] = addressesOf('default/web') ?? [];
  t.regex(address ?? '', /^192\.0\.2\.\d+$/);
  t.false(keeper.isKept('default/web'));
  await until('the claim is kept', () => keeper.isKept('default/web'));
  t.deepEqual(kept, ['default/web']);
  t.deepEqual(await claimsInFile(), [`default/web ${address}`]);
  t.like(keeper.status(), { home: 'file', leading: true, unkept: 0, fault: '' });
  t.like(keeper.status().pools[0], { name: 'a', family: 'v4', used: '1' });
});

test('Only with a program that works outside the cluster does the finalizer come before the claim', async (t) => {
  for (const provisioner of ['', '/bin/false']) {
    const answer = Promise.withResolvers<boolean>();
    const requested: string[] = [];
    const requestFinalizer = (key: string, uid: string): Promise<boolean> => {
      requested.push(`${key} ${uid}`);
      return answer.promise;
    };
    const { keeper, serve, api, kept } = await keeperFor(t, {
      inCluster: true,
      settings: { provisioner },
      requestFinalizer,
    });
    await keeper.start();
    await serve(service('web', 'uid-1'));
    if (provisioner !== '') {
      await until('it is requested', () => requested.length > 0);
      t.deepEqual(requested, ['default/web uid-1']);
      t.deepEqual(api.requests, []);
      answer.resolve(true);
    }
    await until('the claim is stored', () => kept.includes('default/web'));
    t.is(requested.length, provisioner === '' ? 0 : 1);
  }
});

test('A Gateway gets an address once its class names this agent, and keeps it for a while after it is gone', async (t) => {
  const { keeper, cluster, serve, told, addressesOf } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.1'])] },
  });
  const key = 'gateway:default/edge';
  await keeper.start();
  await serve(gateway(), gatewayClass('edge', 'example.org/other'));
  t.is(addressesOf(key), undefined);
  // The translation of the Gateway has read its class.
  cluster.apply({ upserted: [gatewayClass()], removed: [] }, 'manifests');
  told.push(...keeper.assign([key]));
  await until('it has its address', () => addressesOf(key)?.join() === '192.0.2.1');
  t.deepEqual([...new Set(told)], [key]);
  await serve(service('web'));
  t.regex(
    keeper.ofPools('default/web')?.problems[0]?.message ?? '',
    /^It has no IPv4 address yet: no free address in pool "a"$/,
  );
  cluster.apply({ upserted: [], removed: [{ kind: 'Gateway', key: 'default/edge' }] }, 'manifests');
  keeper.assign([key]);
  // A Service that there is comes before a Gateway that is gone.
  await until('the Service has it', () => addressesOf('default/web')?.join() === '192.0.2.1');
});

test('A Gateway and an IngressClass share an address with a Service by one key, each with its own ports', async (t) => {
  const { keeper, serve, addressesOf, claimsInFile } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.0/24'], { shareAcrossNamespaces: true })] },
  });
  const annotations = { 'headgate.io/address-sharing-key': 'edge' };
  const listeners = [{ name: 'http', port: 8080, protocol: 'HTTP' }];
  await keeper.start();
  await serve(gatewayClass(), gateway('edge', { listeners }, { annotations }));
  await serve(ingressClass('edge', annotations));
  const all = ['gateway:default/edge', 'ingress:-/edge'].map(addressesOf);
  t.deepEqual(all[0], all[1]);
  await until(
    'the claims are kept',
    () => keeper.isKept('gateway:default/edge') && keeper.isKept('ingress:-/edge'),
  );
  const [address] = all[0] ?? [];
  t.deepEqual((await claimsInFile()).toSorted(), [
    `gateway:default/edge ${address}`,
    `ingress:-/edge ${address}`,
  ]);
});

test('The counts of an IPv6 pool in the status are exact', async (t) => {
  const { keeper, serve } = await keeperFor(t, { settings: { pools: [pool('six', ['2001:db8::/64'])] } });
  await keeper.start();
  await serve(service('web'));
  t.like(JSON.parse(JSON.stringify(keeper.status())).pools[0], {
    total: '18446744073709551616',
    free: '18446744073709551615',
    used: '1',
  });
});

test('An EndpointSlice with all addresses of a pool takes none from Services', async (t) => {
  const { keeper, cluster, serve, addressesOf } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.0/30'])] },
  });
  const endpoints = ['192.0.2.0', '192.0.2.1', '192.0.2.2'];
  const all = slice({ namespace: 'other', serviceName: 'x', endpoints });
  cluster.apply({ upserted: [all, node({ name: 'n1', internalIPs: ['192.0.2.3'] })], removed: [] }, 'api');
  await keeper.start();
  await serve(service('web'));
  t.is(addressesOf('default/web')?.length, 1);
  t.true(endpoints.includes(addressesOf('default/web')?.[0] ?? ''));
});

test('A problem of a pool with the address of a Node ends with the first decision after the Node is gone', async (t) => {
  const { keeper, cluster, serve } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.0/31'])] },
  });
  const gone = node({ name: 'n1', internalIPs: ['192.0.2.0'] });
  cluster.apply({ upserted: [gone, node({ name: 'n2', internalIPs: ['192.0.2.1'] })], removed: [] }, 'api');
  await keeper.start();
  await serve(service('web'));
  const messages = () => keeper.problems.map(({ message }) => message.replace(/^192\.0\.2\.[01]/, 'It'));
  t.regex(
    messages()[0] ?? '',
    /^It is not given out, because it is the address of Node n1; the pool has addresses of Nodes besides it: 1$/,
  );
  const removed = ['n1', 'n2'].map((key) => ({ kind: 'Node', key }) as const);
  cluster.apply({ upserted: [], removed }, 'api');
  await serve(service('other'));
  t.deepEqual(messages(), []);
});

test('The address of a Node in a pool is a problem and not free before any Service asks, also that of a new Node', async (t) => {
  const { keeper, cluster } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.0/31'])] },
  });
  cluster.apply({ upserted: [node({ name: 'n1', internalIPs: ['192.0.2.0'] })], removed: [] }, 'api');
  await keeper.start();
  const said = () => keeper.problems.map(({ object, message }) => `${object}: ${message}`);
  t.deepEqual(said(), ['AddressPool a: 192.0.2.0 is not given out, because it is the address of Node n1']);
  t.like(keeper.status().pools[0], { total: '2', free: '1', used: '0', conflicting: '1' });
  const second = node({ name: 'n2', internalIPs: ['192.0.2.1'] });
  const change = cluster.apply({ upserted: [second], removed: [] }, 'api');
  keeper.take(change, change.dependencies.has('nodes'));
  await until('none is free', () => keeper.status().pools[0]?.free === '0');
  t.regex(said()[0] ?? '', /besides it: 1$/);
  const left = cluster.apply({ upserted: [], removed: [{ kind: 'Node', key: 'n1' }] }, 'api');
  keeper.take(left, left.dependencies.has('nodes'));
  await until('one is free', () => keeper.status().pools[0]?.free === '1');
  t.deepEqual(said(), ['AddressPool a: 192.0.2.1 is not given out, because it is the address of Node n2']);
});

test('A Service that waits for the address of a Node gets it when the Node is gone', async (t) => {
  const { keeper, cluster, serve, addressesOf } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.0/32'])] },
  });
  cluster.apply({ upserted: [node({ name: 'n1', internalIPs: ['192.0.2.0'] })], removed: [] }, 'api');
  await keeper.start();
  await serve(service('web'));
  t.deepEqual(addressesOf('default/web'), []);
  const change = cluster.apply({ upserted: [], removed: [{ kind: 'Node', key: 'n1' }] }, 'api');
  keeper.take(change, change.dependencies.has('nodes'));
  await until('an address', () => addressesOf('default/web')?.length === 1);
  await until('no problem is left', () => keeper.problems.length === 0);
  t.deepEqual(addressesOf('default/web'), ['192.0.2.0']);
});

test('assign() skips an unchanged Service', async (t) => {
  const { keeper, serve } = await keeperFor(t);
  await keeper.start();
  const web = service('web');
  t.is((await serve(web)).size, 1);
  t.is(keeper.assign(['default/web']).size, 0);
});

test('The address of a Service that is gone is held, and the Service gets it back', async (t) => {
  const { keeper, serve, remove, addressesOf } = await keeperFor(t);
  await keeper.start();
  await serve(service('web'));
  const before = addressesOf('default/web');
  await remove('web');
  t.like(keeper.status().pools[0], { used: '0', held: '1' });
  await serve(service('web'));
  t.deepEqual(addressesOf('default/web'), before);
});

test('A hold ends automatically after releaseAfter', async (t) => {
  const { keeper, serve, remove, claimsInFile } = await keeperFor(t, { settings: { releaseAfter: 30 } });
  await keeper.start();
  await serve(service('web'));
  await until('the claim is kept', () => keeper.isKept('default/web'));
  await remove('web');
  await until('nothing is held', () => keeper.status().pools[0]?.held === '0');
  await until('the file has forgotten it', async () => (await claimsInFile()).length === 0);
  t.is(keeper.status().pools[0]?.free, keeper.status().pools[0]?.total);
});

test('A started keeper has the addresses of the claims file', async (t) => {
  const { keeper, cluster, addressesOf, leave } = await keeperFor(t);
  await leave(claim('192-0-2-77', { address: '192.0.2.77', service: 'default/web' }));
  cluster.apply({ upserted: [service('web')], removed: [] }, 'manifests');
  await keeper.start();
  t.deepEqual(addressesOf('default/web'), ['192.0.2.77']);
});

test('A decision on thousands of Services leaves time for others, and assign() answers later', async (t) => {
  const { keeper, cluster, told, addressesOf } = await keeperFor(t, {
    settings: { pools: [pool('a', ['10.0.0.0/16'])] },
  });
  const many = Array.from({ length: 5_000 }, (_, at) => service(`many-${at}`));
  cluster.apply({ upserted: many, removed: [] }, 'manifests');
  let turns = 0;
  let isOver = false;
  const started = keeper.start().then(() => {
    isOver = true;
  });
  await until('it is at work', () => Number(keeper.status().pools[0]?.used) > 0);
  t.false(isOver);
  // One that comes meanwhile is not forgotten.
  t.is(
    keeper.assign(cluster.apply({ upserted: [service('late')], removed: [] }, 'manifests').owners).size,
    0,
  );
  t.true(keeper.isUndecided('default/late'));
  while (!isOver) {
    await turn();
    turns++;
  }
  await started;
  t.true(turns > 10, `${turns} turns`);
  await until('the late one has its address', () => told.includes('default/late'));
  t.is(addressesOf('default/late')?.length, 1);
  t.false(keeper.isUndecided('default/late'));
  t.is(keeper.status().pools[0]?.used, '5001');
});

test('A host that is not the leader follows claims, and decides when it becomes the leader', async (t) => {
  const { keeper, cluster, place, api, serve, addressesOf, told } = await keeperFor(t, { inCluster: true });
  place.leads = false;
  await keeper.start();
  await serve(service('web', 'u-web'), service('shop', 'u-shop'));
  t.deepEqual(addressesOf('default/web') ?? [], []);
  t.deepEqual(api.requests, []);

  const theirs = claim('192-0-2-9', { address: '192.0.2.9', service: 'default/web', serviceUID: 'u-web' });
  keeper.take(cluster.apply({ upserted: [stored(theirs)], removed: [] }, 'api'));
  const isFollowed = (): boolean => addressesOf('default/web')?.length === 1;
  await until('it is followed and reported', () => isFollowed() && told.includes('default/web'));
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);

  place.leads = true;
  keeper.take();
  await until('the other one has an address', () => api.objects.size === 1);
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);
  t.is(addressesOf('default/shop')?.length, 1);
  t.true([...api.objects.keys()][0]?.startsWith(`${CLAIMS}/`));
});

test('With claims in files one host decides, and the others follow the statuses', async (t) => {
  const { keeper, place, serve, addressesOf, claimsInFile, leave } = await keeperFor(t, { source: 'api' });
  Object.assign(place, { leads: false, isBarred: false });
  await leave(given(8, 'web', EARLY));
  await keeper.start();
  const showing = (last: number) =>
    parsedObject({
      ...serviceJson('web', { metadata: { uid: 'u-web' } }),
      status: { loadBalancer: { ingress: [{ ip: `192.0.2.${last}` }] } },
    });
  await serve(showing(9), service('new', 'u-new'));
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);
  t.deepEqual(addressesOf('default/new') ?? [], []);
  t.is(keeper.status().leading, false);
  await until('its file has it', async () => (await claimsInFile()).includes('default/web 192.0.2.9'));

  place.leads = true;
  keeper.take();
  await until('the new one has an address', () => addressesOf('default/new')?.length === 1);
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);
  // A status of the agent that led before comes late.
  await serve(showing(10));
  t.deepEqual(addressesOf('default/web'), ['192.0.2.9']);

  place.leads = false;
  keeper.take();
  await until('it follows again', () => addressesOf('default/web')?.[0] === '192.0.2.10');
  Object.assign(place, { isBarred: true });
  keeper.take();
  await serve(service('another', 'u-another'));
  t.is(addressesOf('default/another')?.length, 1, 'Each agent decides alone if none may lead');
});

test('While the home of claims is unknown no address is given, and published ones are served', async (t) => {
  const { keeper, place, serve, addressesOf, api } = await keeperFor(t, { inCluster: true });
  place.home = 'unknown';
  await keeper.start();
  const published = parsedObject({
    ...serviceJson('web', { metadata: { uid: 'u' } }),
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.30' }] } },
  });
  await serve(published, service('new', 'n'));
  t.deepEqual(addressesOf('default/web'), ['192.0.2.30']);
  t.deepEqual(addressesOf('default/new') ?? [], []);
  t.deepEqual(api.requests, []);
});

test('A host that is no longer the leader has no problems of the program', async (t) => {
  const settings = { provisioner: '/nonexistent/program' };
  const { keeper, place, told, serve } = await keeperFor(t, { inCluster: true, settings });
  await keeper.start();
  await serve(service('web', 'u-web'));
  const problems = () => keeper.ofPools('default/web')?.problems.map(({ reason }) => reason);
  await until('it fails', () => problems()?.includes('ProvisionerFailed') === true);
  const before = told.length;
  place.leads = false;
  keeper.take();
  await until('it is told', () => told.includes('default/web', before));
  t.deepEqual(problems(), []);
});

test('The leader writes a claim again that a user has removed', async (t) => {
  const { keeper, cluster, api, serve, addressesOf } = await keeperFor(t, { inCluster: true });
  await keeper.start();
  await serve(service('web', 'u'));
  await until('the claim is kept', () => keeper.isKept('default/web'));
  const before = addressesOf('default/web');
  const [path = ''] = api.objects.keys();
  const object = parsedObject({
    ...api.objects.get(path),
    metadata: { ...api.objects.get(path).metadata, uid: 'c' },
  });
  keeper.take(cluster.apply({ upserted: [object], removed: [] }, 'api'));
  api.objects.clear();
  keeper.take(
    cluster.apply(
      { upserted: [], removed: [{ kind: 'AddressClaim', key: path.split('/').at(-1) ?? '' }] },
      'api',
    ),
  );
  await until('the claim is there again', () => api.objects.has(path));
  t.deepEqual(addressesOf('default/web'), before);
});

const DUAL = ['192.0.2.10', '2001:db8::10'] as const;

/** Names both addresses of `named`; its status shows those of `shown`. */
function dualStack(
  named: readonly string[],
  shown: readonly string[],
  { uid = 'u-web', policy = 'RequireDualStack' } = {},
): KubernetesObject {
  return parsedObject({
    ...serviceJson('web', {
      metadata: {
        ...(uid === '' ? {} : { uid }),
        annotations: named.length === 0 ? {} : { 'headgate.io/load-balancer-ips': named.join(',') },
      },
      spec: { ipFamilyPolicy: policy, ipFamilies: ['IPv4', 'IPv6'] },
    }),
    status: { loadBalancer: { ingress: shown.map((ip) => ({ ip })) } },
  });
}

for (const policy of ['PreferDualStack', 'RequireDualStack'])
  test(`A Service with ${policy} keeps both addresses when the first pool has only one of them`, async (t) => {
    const { keeper, serve, addressesOf } = await keeperFor(t, { inCluster: true, settings: { pools: [] } });
    await keeper.start();
    await serve(dualStack(DUAL, DUAL, { policy }));
    t.is(addressesOf('default/web'), undefined);
    keeper.configure(
      { pools: [pool('a', ['192.0.2.0/24'])], releaseAfter: 600_000, provisioner: '', stateDir: '' },
      TRANSLATING,
    );
    await until('an assignment', () => addressesOf('default/web') !== undefined);
    t.deepEqual(addressesOf('default/web'), DUAL);
    t.deepEqual(keeper.ofPools('default/web')?.problems, []);
    await serve(dualStack(DUAL, [...DUAL].reverse(), { policy }));
    t.deepEqual(addressesOf('default/web'), DUAL);
  });

test('A manifest keeps both of its addresses over a restart, of which the pools have one', async (t) => {
  const { keeper, serve, addressesOf } = await keeperFor(t);
  await keeper.start();
  await serve(dualStack(DUAL, [], { uid: '' }));
  t.deepEqual(addressesOf('default/web'), DUAL);
});

test('A Service that lives by its status keeps the addresses outside the pools', async (t) => {
  const { keeper, serve, addressesOf } = await keeperFor(t, { inCluster: true });
  await keeper.start();
  await serve(dualStack([], DUAL));
  t.deepEqual(addressesOf('default/web'), DUAL);
});

test('A Service keeps its address outside the pools until it has the one that it names', async (t) => {
  const pools = [pool('a', ['192.0.2.0/24'], { draining: true })];
  const { keeper, serve, addressesOf } = await keeperFor(t, { inCluster: true, settings: { pools } });
  const named = (shown: string) => dualStack(['192.0.2.20'], [shown], { policy: 'SingleStack' });
  await keeper.start();
  await serve(named('198.51.100.7'));
  t.deepEqual(addressesOf('default/web'), ['198.51.100.7']);
  keeper.configure(
    { pools: [pool('a', ['192.0.2.0/24'])], releaseAfter: 600_000, provisioner: '', stateDir: '' },
    TRANSLATING,
  );
  await until('the named address', () => addressesOf('default/web')?.[0] === '192.0.2.20');
  t.deepEqual(addressesOf('default/web'), ['192.0.2.20']);
});

test('configure() gives addresses of a new pool to Services that wait', async (t) => {
  const { keeper, serve, addressesOf, told, stateDir } = await keeperFor(t, {
    settings: { pools: [pool('a', ['192.0.2.1/32'])] },
  });
  await keeper.start();
  await serve(service('first'), service('second'));
  const waiting = ['default/first', 'default/second'].filter((key) => addressesOf(key)?.length === 0);
  t.is(waiting.length, 1);
  const before = told.length;
  keeper.configure(
    {
      pools: [pool('a', ['192.0.2.1/32']), pool('b', ['192.0.2.2/32'])],
      releaseAfter: 1_000,
      provisioner: '',
      stateDir,
    },
    TRANSLATING,
  );
  await until('it is told', () => told.includes(waiting[0] ?? '', before));
  t.deepEqual(addressesOf(waiting[0] ?? ''), ['192.0.2.2']);
});

const FRONT = { 'headgate.io/address-sharing-key': 'front' };
const sharedBy = (name: string, since: string): AddressClaim => ({
  ...given(10, name, since, { sharingKey: 'front', ports: [{ protocol: 'TCP', port: 80 }] }),
  name: `192-0-2-10.${name}.default`,
});

/** What a file says, what the cluster says meanwhile, and what the Services are to have. */
const OVERRULED: Readonly<
  Record<string, { file: AddressClaim[]; cluster: AddressClaim[]; had: Record<string, string> }>
> = {
  'that another Service has the address': {
    file: [given(10, 'gone', EARLY)],
    cluster: [given(10, 'web', LATE)],
    had: { web: '192.0.2.10' },
  },
  'that the Service has another address': {
    file: [given(10, 'web', EARLY)],
    cluster: [given(20, 'web', LATE)],
    had: { web: '192.0.2.20' },
  },
  'that the Service has another address, and another Service this one': {
    file: [given(10, 'web', EARLY)],
    cluster: [given(20, 'web', LATE), given(10, 'shop', LATE)],
    had: { web: '192.0.2.20', shop: '192.0.2.10' },
  },
  'that another Service has the port of a shared address': {
    file: [sharedBy('gone', EARLY)],
    cluster: [sharedBy('web', LATE)],
    had: { web: '192.0.2.10' },
  },
};

/** How a host comes to know what the cluster says. */
const WAYS: Readonly<Record<string, { before: ClaimHome; leads: boolean }>> = {
  'a host that leads from its start': { before: 'cluster', leads: true },
  'a host that leads when it is synced': { before: 'unknown', leads: true },
  'a host that gave addresses for itself': { before: 'file', leads: true },
  'a host that follows': { before: 'cluster', leads: false },
};

for (const [way, { before, leads }] of Object.entries(WAYS))
  for (const [what, { file, cluster: theirs, had }] of Object.entries(OVERRULED))
    test(`The cluster says ${what}: an old file of ${way} does not`, async (t) => {
      const own = await keeperFor(t, { inCluster: true });
      const { keeper, cluster, place, api, addressesOf, leave, claimsInFile } = own;
      await leave(...file);
      Object.assign(place, { home: before, leads });
      const annotations = theirs.some(({ sharingKey }) => sharingKey !== '') ? FRONT : {};
      const services = ['web', 'shop'].map((name) => service(name, `u-${name}`, annotations));
      cluster.apply({ upserted: services, removed: [] }, 'api');
      const seen = () => cluster.apply({ upserted: theirs.map(stored), removed: [] }, 'api');
      if (before === 'cluster') seen();
      await keeper.start();
      place.home = 'cluster';
      if (before !== 'cluster') keeper.take(seen());
      for (const [name, address] of Object.entries(had))
        await until(`${name} has it`, () => addressesOf(`default/${name}`)?.join() === address);
      await until('the file has forgotten it', async () => (await claimsInFile()).length === 0);
      for (const [name, address] of Object.entries(had)) {
        t.deepEqual(addressesOf(`default/${name}`), [address]);
        t.true(keeper.isKept(`default/${name}`));
      }
      const names = [...file, ...theirs].map(({ name }) => name);
      const written = api.requests.map(
        ({ path, body }) => (body as Json)?.metadata?.name ?? path.split('/').at(-1),
      );
      t.deepEqual(
        written.filter((name) => names.includes(name)),
        [],
      );
    });

test('Claims move from the file to the cluster as soon as it stores them', async (t) => {
  const { keeper, place, api, serve, addressesOf, leave, claimsInFile } = await keeperFor(t, {
    inCluster: true,
  });
  await leave(given(10, 'web', EARLY));
  place.home = 'unknown';
  await keeper.start();
  await serve(service('web', 'u-web'));
  api.fault = () => refusal(503, 'ServiceUnavailable');
  place.home = 'cluster';
  keeper.take();
  await until('the cluster does not take it', () => api.requests.length > 0);
  await until('it is in the file', async () => (await claimsInFile()).length === 1);
  t.false(keeper.isKept('default/web'));
  api.fault = () => undefined;
  for (const leads of [false, true]) {
    place.leads = leads;
    keeper.take();
  }
  await until('the cluster has it', () => api.objects.has(`${CLAIMS}/192-0-2-10`));
  await until('it is kept', () => keeper.isKept('default/web'));
  await until('the file has it no longer', async () => (await claimsInFile()).length === 0);
  t.deepEqual(addressesOf('default/web'), ['192.0.2.10']);
});

test('The claims file keeps claims that the cluster has not stored when the agent ends', async (t) => {
  const { keeper, cluster, api, leave, claimsInFile } = await keeperFor(t, { inCluster: true });
  await leave(given(10, 'web', EARLY));
  cluster.apply({ upserted: [service('web', 'u-web')], removed: [] }, 'api');
  api.fault = () => refusal(503, 'ServiceUnavailable');
  await keeper.start();
  await until('the cluster does not take it', () => api.requests.length > 0);
  await keeper.close();
  t.deepEqual(await claimsInFile(), ['default/web 192.0.2.10']);
});

test('A host that follows has the new address of a Service, even if the old claim ends last', async (t) => {
  for (const isAtOnce of [false, true]) {
    const { keeper, cluster, place, addressesOf } = await keeperFor(t, { inCluster: true });
    place.leads = false;
    const [old, fresh] = [given(10, 'web', EARLY), given(20, 'web', LATE)];
    cluster.apply({ upserted: [service('web', 'u-web'), stored(old)], removed: [] }, 'api');
    await keeper.start();
    t.deepEqual(addressesOf('default/web'), ['192.0.2.10']);
    const remove = ({ name }: AddressClaim) =>
      cluster.apply({ upserted: [], removed: [{ kind: 'AddressClaim', key: name }] }, 'api');
    const came = cluster.apply({ upserted: [stored(fresh)], removed: [] }, 'api');
    if (!isAtOnce) keeper.take(came);
    remove(old);
    keeper.take({ poolsChanged: false, claims: new Set(isAtOnce ? [fresh.name, old.name] : [old.name]) });
    await until('it has moved', () => addressesOf('default/web')?.join() === '192.0.2.20');
    t.is(keeper.status().unkept, 0);
    // One that nothing has come in the place of is served on.
    keeper.take(remove(fresh));
    await until('its claim is missed', () => keeper.status().unkept === 1);
    t.deepEqual(addressesOf('default/web'), ['192.0.2.20']);
  }
});

test('An address of the file is served until the cluster has another one for the Service', async (t) => {
  const { keeper, cluster, place, addressesOf, leave } = await keeperFor(t, { inCluster: true });
  place.leads = false;
  const held = given(20, 'web', EARLY, { heldUntil: '2126-01-01T00:00:00.000Z' });
  await leave(given(10, 'web', LATE), held);
  cluster.apply({ upserted: [service('web', 'u-web')], removed: [] }, 'api');
  await keeper.start();
  keeper.take(cluster.apply({ upserted: [stored(held)], removed: [] }, 'api'));
  await until('the held claim is seen', () => keeper.status().unkept === 1);
  t.deepEqual(addressesOf('default/web'), ['192.0.2.10']);
});
