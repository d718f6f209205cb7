import test from 'ava';
import type { MetricFamily } from '../../../agent/base/metric-family.ts';
import type { Dataplane } from '../../../agent/dataplane/dataplane.ts';
import { Dataplanes } from '../../../agent/dataplane/dataplanes.ts';
import { EngineChanges } from '../../../agent/dataplane/engine-changes.ts';
import type { MemberFact, Outcome, Plan } from '../../../agent/dataplane/forwarder.ts';
import type { LivenessOptions } from '../../../agent/dataplane/meter.ts';
import type { DataplaneStatus, ListenerTraffic } from '../../../agent/dataplane/status.ts';
import type { Engine, LoadBalancer, Problem } from '../../../agent/model/load-balancer.ts';
import { service } from '../../support/values/build.ts';
import { dataplaneStatus } from '../../support/values/dataplane-status.ts';
import { listenerTraffic } from '../../support/values/listener-traffic.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const KEY = 'default/web';
const TCP = 'default:web:tcp:80:v4';
const UDP = 'default:web:udp:53:v4';
const UP: MemberFact = { state: 'ready', weight: 16, isDown: undefined, cause: '' };
const LOOK: LivenessOptions = { timeoutMs: 1_000, holds: undefined };

/** A load balancer with a listener for each engine. */
const web = loadBalancerOf(
  translated([
    service({
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    }),
  ]),
);
const desired = new Map([[KEY, web]]);

/** A dataplane that serves one listener, and does what the test says. */
class TestDataplane implements Dataplane<Plan, { readonly name: string }> {
  listener: string;
  readonly seen: string[] = [];
  effort: Plan['effort'] | undefined = 'runtime';
  outcome: Partial<Outcome> = { acknowledged: new Set([KEY]) };
  served: (key: string) => LoadBalancer | 'pending' | undefined = (key) => desired.get(key);
  isServing = true;
  problems: readonly Problem[] = [];
  running: readonly string[] | undefined;
  before: readonly string[] = [];
  facts: Partial<DataplaneStatus> = {};
  control = '';

  constructor(listener: string) {
    this.listener = listener;
    this.running = [listener];
  }

  prepare(): void {
    this.seen.push('prepare');
  }

  async start(): Promise<void> {
    this.seen.push('start');
  }

  configure({ name }: { readonly name: string }): void {
    this.seen.push(`configure ${name}`);
  }

  async close(): Promise<void> {
    this.seen.push('close');
  }

  async processes(): Promise<readonly number[]> {
    return [];
  }

  async stop(graceMs: number): Promise<void> {
    this.seen.push(`stop ${graceMs}`);
  }

  plan(keys: Iterable<string>): readonly Plan[] {
    const { effort } = this;
    return effort === undefined ? [] : Array.from(keys, (key) => ({ key, effort }));
  }

  async apply(plans: readonly Plan[]): Promise<Outcome> {
    this.seen.push(`apply ${plans.map(({ key, effort }) => `${key} ${effort}`).join()}`);
    return { acknowledged: new Set(), pending: new Set(), lost: undefined, ...this.outcome };
  }

  serves(listener: string, address?: string): boolean {
    return this.isServing && listener === this.listener && address !== '192.0.2.99';
  }

  continues(listener: string): boolean {
    return this.serves(listener);
  }

  servesElsewhere(): boolean {
    return this.isServing;
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    return new Map([[`member of ${listener}`, UP]]);
  }

  failures(): undefined {
    return undefined;
  }

  problemsOf(): readonly Problem[] {
    return this.problems;
  }

  status(): DataplaneStatus {
    return dataplaneStatus({
      version: this.listener,
      serving: this.isServing,
      serversToDelete: 1,
      rejected: 1,
      ...this.facts,
    });
  }

  async liveness() {
    return { control: this.control, listeners: '' };
  }

  metrics: readonly MetricFamily[] | undefined;

  async families(): Promise<readonly MetricFamily[]> {
    return this.metrics ?? [{ name: this.listener, type: 'gauge', help: '', parts: [] } as const];
  }

  traffic(): readonly ListenerTraffic[] {
    return [listenerTraffic({ name: this.listener, total: 1, open: 2 })];
  }

  async stats(listener: string) {
    return { sessions: listener.length, sessionRate: 0, servers: new Map() };
  }

  loads() {
    return [{ busy: this.listener.length }];
  }

  async listenersBefore(): Promise<readonly string[]> {
    return this.before;
  }

  async runningListeners(): Promise<readonly string[] | undefined> {
    return this.running;
  }
}

function both() {
  const [haproxy, kernel] = [new TestDataplane(TCP), new TestDataplane(UDP)];
  const changes = new EngineChanges(desired);
  const all = new Dataplanes<{ readonly name: string }>(
    desired,
    changes,
    { engine: 'haproxy', dataplane: haproxy },
    { engine: 'kernel', dataplane: kernel },
  );
  return { all, haproxy, kernel, changes };
}

/** As in the loop. */
async function round(all: Dataplanes<{ readonly name: string }>, key: string = KEY): Promise<Outcome> {
  all.follow([key]);
  return all.apply(all.plan([key]));
}

const keysOf = ({ acknowledged, pending }: Outcome) => [[...acknowledged], [...pending]];

test('A plan has the largest effort of its parts, and each dataplane gets its own part', async (t) => {
  const { all, haproxy, kernel } = both();
  haproxy.effort = 'none';
  kernel.effort = 'reload';
  const plans = all.plan([KEY]);
  t.deepEqual(
    plans.map(({ key, effort }) => [key, effort]),
    [[KEY, 'reload']],
  );
  t.deepEqual(keysOf(await all.apply(plans)), [[KEY], []]);
  t.deepEqual(haproxy.seen, [`apply ${KEY} none`]);
  t.deepEqual(kernel.seen, [`apply ${KEY} reload`]);
});

test('A dataplane without a plan leaves its load balancers pending, and does not delay the others', async (t) => {
  const { all, haproxy, kernel } = both();
  haproxy.effort = undefined;
  t.deepEqual(keysOf(await round(all)), [[KEY], [KEY]]);
  t.deepEqual(kernel.seen, [`apply ${KEY} runtime`]);
  // It has nothing to serve of a load balancer that is gone.
  t.deepEqual(keysOf(await round(all, 'default/gone')), [[KEY], []]);
  kernel.effort = undefined;
  t.deepEqual(all.plan([KEY]), []);
});

test('The main dataplane keeps a listener until another engine serves it, and then plans again', async (t) => {
  const { all, haproxy, kernel, changes } = both();
  const enginesOf = (engine: Engine) =>
    changes
      .viewOf(engine)
      .get(KEY)
      ?.listeners.map((listener) => listener.engine);
  // HAProxy still has the listener for UDP, which the kernel is about to load.
  haproxy.listener = UDP;
  haproxy.effort = 'none';
  kernel.isServing = false;
  t.deepEqual(keysOf(await round(all)), [[KEY], [KEY]]);
  t.deepEqual(
    [enginesOf('haproxy'), enginesOf('kernel')],
    [
      ['haproxy', 'haproxy'],
      ['haproxy', 'kernel'],
    ],
  );
  kernel.apply = async () => {
    kernel.isServing = true;
    haproxy.effort = 'reload';
    return { acknowledged: new Set([KEY]), pending: new Set(), lost: undefined };
  };
  t.deepEqual(keysOf(await round(all)), [[KEY], []]);
  t.deepEqual(haproxy.seen, [`apply ${KEY} none`, `apply ${KEY} reload`]);
  t.deepEqual(enginesOf('haproxy'), ['haproxy', 'kernel']);
});

test('A dataplane keeps what it served before this agent until another engine serves it', async (t) => {
  const { all, haproxy, kernel, changes } = both();
  kernel.before = [TCP, UDP];
  haproxy.before = [TCP];
  await all.start();
  t.deepEqual(
    changes
      .viewOf('kernel')
      .get(KEY)
      ?.listeners.map(({ engine }) => engine),
    ['kernel', 'kernel'],
  );
  all.plan([KEY]);
  all.served(KEY);
  t.not(changes.viewOf('kernel').get(KEY), web, 'a plan changes nothing');
  all.follow([KEY]);
  t.is(changes.viewOf('kernel').get(KEY), web, 'HAProxy serves it');
});

test('apply() joins what is pending and lost in any dataplane', async (t) => {
  const { all, haproxy } = both();
  haproxy.outcome = { pending: new Set([KEY]) };
  t.deepEqual(keysOf(await round(all)), [[KEY], [KEY]]);
});

test('served() is pending if one dataplane is, the same value if all serve it whole, and joined otherwise', (t) => {
  const { all, haproxy, kernel } = both();
  t.is(all.served(KEY), web);
  kernel.served = () => 'pending';
  t.is(all.served(KEY), 'pending');
  kernel.served = () => undefined;
  t.deepEqual(
    (all.served(KEY) as LoadBalancer).listeners.map(({ name }) => name),
    [TCP],
  );
  // HAProxy serves it at no address.
  const listeners = web.listeners.map((listener) => ({ ...listener, addresses: [] }));
  haproxy.served = () => ({ ...web, listeners });
  kernel.served = (key) => desired.get(key);
  t.deepEqual(
    (all.served(KEY) as LoadBalancer).listeners.map(({ name, addresses }) => [name, addresses.length]),
    [
      [TCP, 0],
      [UDP, 1],
    ],
  );
  haproxy.served = () => undefined;
  kernel.served = () => undefined;
  t.is(all.served(KEY), undefined);
});

test('Facts of a listener come from the dataplane that serves it', async (t) => {
  const { all, kernel } = both();
  t.deepEqual([all.serves(TCP), all.serves(UDP), all.serves('default:other:tcp:80:v4')], [true, true, false]);
  t.deepEqual([all.serves(UDP, '192.0.2.10'), all.serves(UDP, '192.0.2.99')], [true, false]);
  t.deepEqual([...all.members(UDP).keys()], [`member of ${UDP}`]);
  t.is((await all.stats(UDP))?.sessions, UDP.length);
  t.deepEqual(
    [...all.traffic()].map(({ name }) => name),
    [TCP, UDP],
  );
  kernel.isServing = false;
  t.deepEqual([...all.members(UDP).keys()], []);
  t.is(await all.stats(UDP), undefined);
  t.true(all.servesElsewhere(KEY));
});

test('The status is that of the main dataplane with the faults of all, and serves only if all serve', (t) => {
  const { all, kernel } = both();
  t.like(all.status(), { version: TCP, serving: true, fault: '', serversToDelete: 2, rejected: 2 });
  kernel.isServing = false;
  kernel.facts = { fault: 'nft is missing', blocked: ['192.0.2.1 port 53: in use'], isReloading: true };
  t.like(all.status(), {
    version: TCP,
    serving: false,
    fault: 'nft is missing',
    blocked: ['192.0.2.1 port 53: in use'],
    isReloading: true,
  });
});

test('Problems, metrics and running listeners are those of all, the load that of the main dataplane', async (t) => {
  const { all, haproxy, kernel } = both();
  const problem = { object: `Service ${KEY}`, reason: 'AddressUnavailable', message: 'No' } as const;
  kernel.problems = [problem];
  t.deepEqual(all.problemsOf(web), [problem]);
  t.deepEqual(
    (await all.families({ isAwaited: true })).map(({ name }) => name),
    [TCP, UDP],
  );
  t.deepEqual(all.loads(), haproxy.loads());
  t.deepEqual(await all.runningListeners(), [TCP, UDP]);
  kernel.running = undefined;
  t.is(await all.runningListeners(), undefined);
});

test('Liveness is the first fault of any, and life cycle calls reach all', async (t) => {
  const { all, haproxy, kernel } = both();
  t.deepEqual(await all.liveness(LOOK), { control: '', listeners: '' });
  kernel.control = 'No answer';
  t.deepEqual(await all.liveness(LOOK), { control: 'No answer', listeners: '' });
  all.prepare();
  await all.start();
  all.configure({ name: 'new' });
  await all.close();
  await all.stop(5);
  for (const each of [haproxy, kernel])
    t.deepEqual(each.seen, ['prepare', 'start', 'configure new', 'close', 'stop 5']);
});

test('A listener that changes its engine has each series once, that of the later dataplane', async (t) => {
  const { all, haproxy, kernel } = both();
  const family = (rows: readonly (readonly [string, number])[], labels = ''): MetricFamily => ({
    name: 'headgate_listener_connections_total',
    type: 'counter',
    help: '',
    parts: [
      {
        labels,
        rows: rows.map(([name, count]) => ({ labels: name, count })),
        value: (row) => (row as { readonly count: number }).count,
      },
    ],
  });
  haproxy.metrics = [
    family([
      ['a', 5],
      ['b', 7],
    ]),
    family([['b', 8]], 'code="2xx"'),
  ];
  kernel.metrics = [
    family([
      ['b', 0],
      ['c', 1],
    ]),
  ];
  const shown = (await all.families({ isAwaited: true })).flatMap(({ parts }) =>
    parts.flatMap(({ labels, rows, value }) => rows.map((row) => `${row.labels} ${labels} ${value(row)}`)),
  );
  t.deepEqual(shown, ['a  5', 'b code="2xx" 8', 'b  0', 'c  1']);
});

test('An engine without a dataplane serves nothing, and leaves nothing pending', async (t) => {
  const haproxy = new TestDataplane(TCP);
  const engine: Engine = 'haproxy';
  const all = new Dataplanes<{ readonly name: string }>(desired, new EngineChanges(desired), {
    engine,
    dataplane: haproxy,
  });
  t.false(all.serves(UDP));
  t.deepEqual(keysOf(await round(all)), [[KEY], []]);
});
