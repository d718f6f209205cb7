import test from 'ava';
import type { DiskFile } from '../../../../agent/base/disk-file.ts';
import type { MemberFact } from '../../../../agent/dataplane/forwarder.ts';
import type { ListenerStats } from '../../../../agent/dataplane/status.ts';
import { emptyDesiredState } from '../../../../agent/model/desired-state.ts';
import type { Listener, LoadBalancer, Member, Problem } from '../../../../agent/model/load-balancer.ts';
import { listenerName, ownerOf } from '../../../../agent/model/names.ts';
import { PoolUses } from '../../../../agent/model/pool-uses.ts';
import { LoadBalancerSummaries } from '../../../../agent/report/answers/load-balancer-summaries.ts';
import type { StatusSources } from '../../../../agent/report/answers/status.ts';
import { operatingStatus } from '../../../../agent/report/operating/operating-status.ts';
import { Overview } from '../../../../agent/report/page/overview.ts';
import { TrafficBook } from '../../../../agent/report/page/traffic-book.ts';
import { stableId } from '../../../../agent/translate/service/members.ts';
import { Announcers } from '../../../../agent/vips/announcers.ts';
import type { PageView } from '../../../../health/page-model.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { listenerTraffic } from '../../../support/values/listener-traffic.ts';

const PROBLEM: Problem = { object: 'Service a/b', reason: 'InvalidAnnotation', message: 'It is wrong' };

test('A page shows each load balancer with its verdict', async (t) => {
  const host = new FakeHost([
    loadBalancer('a/well', 2),
    loadBalancer('a/drained', 2, { state: 'drain' }),
    loadBalancer('a/empty', 0),
    loadBalancer('a/problem', 1, {}, [PROBLEM]),
  ]);
  host.unservedListeners.add('a:empty:tcp:80:v4');
  const { list, summary } = await host.look();
  t.deepEqual(
    list.rows.map(({ key, verdict, ready, members, problems }) => [key, verdict, ready, members, problems]),
    [
      ['a/empty', 'not served', 0, 0, 0],
      ['a/drained', 'no ready member', 0, 2, 0],
      ['a/problem', 'served', 1, 1, 1],
      ['a/well', 'served', 2, 2, 0],
    ],
  );
  t.like(summary.counts, { served: 2, 'no ready member': 1, 'not served': 1 });
  t.deepEqual(summary.members, { ready: 3, down: 0, all: 5 });
  t.is(summary.vips, 1, 'all have the same address');
  const { reason, ...shown } = PROBLEM;
  t.deepEqual(summary.problems, [
    { reason, count: 1, isGrave: false, covered: 1, shown: [{ key: 'a/problem', ...shown, times: 1 }] },
  ]);
});

test('Only marked rows are updated', async (t) => {
  const host = new FakeHost([loadBalancer('a/one', 1), loadBalancer('a/two', 1)]);
  await host.look();
  host.asked.clear();
  host.put(loadBalancer('a/one', 2));
  t.is((await host.look()).summary.members.all, 3);
  t.deepEqual([...host.asked], ['a:one:tcp:80:v4']);
  host.remove('a/two');
  const { list, summary } = await host.look();
  t.deepEqual(
    list.rows.map(({ key }) => key),
    ['a/one'],
  );
  t.deepEqual(summary.members, { ready: 2, down: 0, all: 2 });
  t.like(summary.counts, { served: 1, 'not served': 0 });
});

test('A different HAProxy worker, or none, updates all rows', async (t) => {
  const host = new FakeHost([loadBalancer('a/one', 1), loadBalancer('a/two', 1)]);
  t.is((await host.look()).summary.counts.served, 2);
  host.workerPid = 0;
  for (const name of ['a:one:tcp:80:v4', 'a:two:tcp:80:v4']) host.unservedListeners.add(name);
  t.is((await host.look()).summary.counts['not served'], 2);
});

test('A search looks in names, addresses and ports; the filter leaves those in trouble', async (t) => {
  const host = new FakeHost([
    loadBalancer('a/one', 1, {}, [], '192.0.2.7'),
    loadBalancer('b/two', 0),
    loadBalancer('b/three', 1),
  ]);
  const keys = async (question: string): Promise<readonly string[]> =>
    (await host.look(question)).list.rows.map(({ key }) => key);
  t.deepEqual(await keys('search=B%2F'), ['b/two', 'b/three']);
  t.deepEqual(await keys('search=192.0.2.7'), ['a/one']);
  t.deepEqual(await keys('search=tcp+80'), ['b/two', 'a/one', 'b/three']);
  t.deepEqual(await keys('only=trouble'), ['b/two']);
  t.deepEqual(await keys('search=nothing'), []);
});

test('A search finds the address and the pod of a member, and a filter the load balancers of a verdict', async (t) => {
  const host = new FakeHost([
    loadBalancer('a/one', 3, { target: 'Pod/one-5d9f-abcde' }),
    loadBalancer('a/two', 1),
    loadBalancer('a/none', 0),
  ]);
  const keys = async (question: string): Promise<readonly string[]> =>
    (await host.look(question)).list.rows.map(({ key }) => key);
  t.deepEqual(await keys('search=10.0.0.3'), ['a/one']);
  t.deepEqual(await keys('search=ONE-5d9F'), ['a/one']);
  t.deepEqual(await keys('only=no+ready+member'), ['a/none']);
  t.deepEqual(await keys('only=served'), ['a/one', 'a/two']);
  t.deepEqual(await keys('only=members+down'), []);
});

test('What is not fully served is named with its reason, the worst first', async (t) => {
  const host = new FakeHost([
    loadBalancer('a/empty', 0),
    loadBalancer('a/gone', 1),
    loadBalancer('a/well', 1),
  ]);
  host.unservedListeners.add('a:gone:tcp:80:v4');
  const { broken } = (await host.look()).summary;
  t.deepEqual(
    broken.map(({ key, verdict }) => [key, verdict]),
    [
      ['a/gone', 'not served'],
      ['a/empty', 'no ready member'],
    ],
  );
  t.is(broken[0]?.why, 'HAProxy does not serve TCP port 80 (IPv4) (yet)');
  t.is((await host.look()).summary.broken[0], broken[0], 'kept until its row changes');
  host.unservedListeners.clear();
  host.put(loadBalancer('a/gone', 1));
  t.deepEqual((await host.look()).summary.broken.length, 1);
});

test('Problems of what is not fully served come first, then the reasons with most', async (t) => {
  const many = { ...PROBLEM, reason: 'AddressPending', message: 'It waits' } as const;
  const host = new FakeHost([
    loadBalancer('a/one', 1, {}, [many, { ...many, message: 'It waits, too' }]),
    loadBalancer('a/two', 0, {}, [PROBLEM]),
    loadBalancer('a/three', 1, {}, [many]),
  ]);
  const { problems, problemCount, problemObjects } = (await host.look()).summary;
  t.deepEqual(
    problems.map(({ reason, count, isGrave, shown }) => [
      reason,
      count,
      isGrave,
      shown.map(({ times }) => times),
    ]),
    [
      ['InvalidAnnotation', 1, true, [1]],
      ['AddressPending', 3, false, [2, 1]],
    ],
  );
  t.deepEqual([problemCount, problemObjects], [4, 1], 'all of one object');
});

test('A page has the first rows of thousands, and the first members of thousands', async (t) => {
  const host = new FakeHost(
    Array.from({ length: 2_000 }, (_, at) =>
      loadBalancer(`a/lb-${at}`, 1, {}, at < 100 ? Array(10).fill(PROBLEM) : []),
    ),
  );
  host.put(loadBalancer('a/wide', 5_000, { target: 'pod'.repeat(60) }));
  const view = await host.look('page=3&open=a%2Fwide');
  t.is(view.list.rows.length, 50);
  t.deepEqual([view.list.found, view.list.page, view.list.pages], [2_001, 3, 41]);
  t.deepEqual(
    view.summary.problems.map(({ count, shown, covered }) => [count, shown.length, covered]),
    [[1_000, 1, 1_000]],
    'a text is shown once',
  );
  t.is(view.summary.problemCount, 1_000);
  t.is(view.detail?.listeners[0]?.members.length, 200);
  t.is(view.detail?.moreMembers, 4_800);
  t.true(JSON.stringify(view).length < 128 * 1024, `${JSON.stringify(view).length} characters`);
  for (const page of ['0', '-1', 'x', '1e9', '99'])
    t.is((await host.look(`page=${page}`)).list.rows.length > 0, true, page);
});

test('Members that accept no connections come first, with the cause', async (t) => {
  const host = new FakeHost([loadBalancer('a/web', 4)]);
  host.down.add('10.0.0.2:80');
  host.running.delete('10.0.0.4:80');
  const { detail, list } = await host.look('open=a%2Fweb');
  t.deepEqual(
    detail?.listeners[0]?.members.map(({ name, state, why }) => [name, state, why]),
    [
      ['10.0.0.2:80', 'ERROR', 'Connection refused'],
      ['10.0.0.4:80', 'OFFLINE', ''],
      ['10.0.0.1:80', 'ONLINE', ''],
      ['10.0.0.3:80', 'ONLINE', ''],
    ],
  );
  t.like(list.rows[0], { verdict: 'served', ready: 2, down: 1, members: 4 });
  t.is((await host.look('open=a%2Fnone')).detail?.verdict, 'not found');
  t.is((await host.look()).detail, undefined);
});

test('The page forgets load balancers that are gone, even without a request', async (t) => {
  const host = new FakeHost([]);
  for (let at = 0; at < 1_000; at++) {
    host.put(loadBalancer(`a/lb-${at}`, 1));
    host.remove(`a/lb-${at}`);
  }
  await host.look();
  t.is(host.asked.size, 0);
});

test('The list is sorted by a column, either way, and by nothing else', async (t) => {
  const host = new FakeHost([
    loadBalancer('a/two', 2),
    loadBalancer('b/none', 0),
    loadBalancer('c/one', 1),
    loadBalancer('d/three', 3),
  ]);
  host.count('a/two', 100, 7);
  host.count('c/one', 50, Number.NaN);
  host.count('d/three', 900, 2);
  await host.traffic.record();
  await host.clock.advance(10_000);
  host.count('a/two', 150, 7);
  host.count('c/one', 52, Number.NaN);
  host.count('d/three', 901, 2);
  await host.traffic.record();
  const order = async (sort: string, more = ''): Promise<string> =>
    (await host.look(`sort=${sort}${more}`)).list.rows.map(({ key }) => key.slice(2)).join();
  t.is(await order('name'), 'two,none,one,three');
  t.is(await order('-name'), 'three,one,none,two');
  t.is(await order('members'), 'none,one,two,three');
  t.is(await order('-members'), 'three,two,one,none');
  t.is(await order('-open'), 'two,three,none,one', 'unknown numbers come last');
  t.is(await order('open'), 'three,two,none,one');
  t.is(await order('-rate'), 'two,one,three,none');
  t.is(await order('rate'), 'three,one,two,none');
  t.is(await order('-state'), 'none,two,one,three');
  t.is(await order('state'), 'three,one,two,none');
  for (const other of ['', 'constructor', '-', 'name-'])
    t.is(await order(other), 'none,two,one,three', other);
  t.is(await order('-members', '&only=trouble'), 'none');
  t.deepEqual(
    (await host.look('sort=name')).list.rows.map(({ open, rate }) => [open, rate]),
    [
      [7, 5],
      [undefined, undefined],
      [undefined, 0.2],
      [2, 0.1],
    ],
  );
});

test('Sorting goes over all pages', async (t) => {
  const all = Array.from({ length: 120 }, (_, at) => loadBalancer(`a/lb-${at}`, at));
  const host = new FakeHost(all);
  const { list } = await host.look('sort=-members&page=2');
  t.deepEqual([list.rows[0]?.members, list.rows.length], [69, 50]);
});

test('The list can be filtered by a namespace, which the page offers', async (t) => {
  const host = new FakeHost([
    loadBalancer('shop/web', 1),
    loadBalancer('shop-2/web', 1),
    loadBalancer('gateway:shop/edge', 1),
    loadBalancer('ingress:-/edge', 1),
  ]);
  const keys = async (question: string): Promise<readonly string[]> =>
    (await host.look(question)).list.rows.map(({ key }) => key);
  t.deepEqual(await keys('namespace=shop'), ['gateway:shop/edge', 'shop/web']);
  t.deepEqual(await keys('namespace=shop&search=edge'), ['gateway:shop/edge']);
  t.deepEqual(await keys('namespace=none'), []);
  t.deepEqual((await host.look()).namespaces, ['shop', 'shop-2']);
  host.remove('shop-2/web');
  t.deepEqual((await host.look()).namespaces, ['shop']);
});

test('An opened load balancer has its traffic from before', async (t) => {
  const host = new FakeHost([loadBalancer('a/web', 1), loadBalancer('a/other', 1)]);
  for (const total of [0, 50, 150, 150]) {
    await host.clock.advance(5_000);
    host.count('a/web', total, total / 10);
    await host.traffic.record();
  }
  const { detail } = await host.look('open=a%2Fweb');
  t.like(detail?.history, {
    seconds: 5,
    rate: [0, 10, 20, 0],
    open: [0, 5, 15, 15],
  });
  t.is(detail?.history.errors.at(-1), null, 'not counted');
  t.deepEqual([detail?.rate, detail?.open], [0, 15], 'of the last round, because HAProxy gives nothing');
  host.stats = { sessions: 4, sessionRate: 3, servers: new Map() };
  t.like((await host.look('open=a%2Fweb')).detail, { rate: 3, open: 4 });
});

test('A dashboard is linked, with the names of an opened load balancer encoded', async (t) => {
  const host = new FakeHost([loadBalancer('a/web', 1)]);
  t.is((await host.look()).summary.dashboard, '');
  host.dashboardUrl = 'https://g.example.org/d/headgate?orgId=1&var-namespace={namespace}&var-service={name}';
  t.is((await host.look()).summary.dashboard, 'https://g.example.org/d/headgate?orgId=1');
  const of = async (key: string): Promise<string | undefined> =>
    (await host.look(`open=${encodeURIComponent(key)}`)).detail?.dashboard;
  t.is(await of('a/web'), 'https://g.example.org/d/headgate?orgId=1&var-namespace=a&var-service=web');
  t.is(await of('a/none'), '', 'a name that comes from the query only');
});

test('The kernel is shown if a load balancer needs it, with why it does not forward', async (t) => {
  const web = loadBalancer('a/web', 1);
  const host = new FakeHost([web]);
  t.is((await host.look()).summary.kernel, undefined);
  const listeners = web.listeners.map((each): Listener => ({ ...each, engine: 'kernel' }));
  host.put({ ...web, key: 'a/dns', name: 'dns', listeners });
  host.unserved = 'The kernel forwards nothing: nft is missing';
  const { summary, list } = await host.look('sort=name');
  t.deepEqual(summary.kernel, { loadBalancers: 1, fault: host.unserved, sync: 'off' });
  t.deepEqual(
    list.rows.map(({ isOfKernel }) => isOfKernel),
    [true, false],
  );
  host.remove('a/dns');
  t.is((await host.look()).summary.kernel, undefined);
});

test('The state on disk has the time of the last write, and the files that cannot be written', async (t) => {
  const host = new FakeHost([]);
  t.deepEqual((await host.look()).summary.disk, { folder: '/state', writtenAt: '', faults: [] });
  host.files = [
    { path: '/state/a', writtenAt: Date.UTC(2026, 0, 1, 10, 3, 59), fault: '' },
    { path: '/state/b', writtenAt: Date.UTC(2026, 0, 1, 9), fault: 'ENOSPC' },
  ];
  t.deepEqual((await host.look()).summary.disk, {
    folder: '/state',
    writtenAt: '2026-01-01T10:03:00.000Z',
    faults: [{ file: '/state/b', why: 'ENOSPC' }],
  });
});

test('The pools of routes are folded into the load balancers that send to them', async (t) => {
  const host = new FakeHost([
    loadBalancer('shop/web', 1),
    loadBalancer('gateway:infra/edge', 0),
    loadBalancer('pool:shop/api', 2, { target: 'Pod/api-1' }, [PROBLEM]),
    loadBalancer('pool:shop/none', 0),
  ]);
  host.poolUses.update('gateway:infra/edge', [
    { pool: 'pool:shop/api', port: 80 },
    { pool: 'pool:shop/none', port: 80 },
  ]);
  host.unservedListeners.add('pool:shop:none:tcp:80:v4');
  const { summary, list, detail, namespaces } = await host.look('open=gateway%3Ainfra%2Fedge');
  t.deepEqual(
    list.rows.map(({ key, ready, members, problems }) => [key, ready, members, problems]),
    [
      ['gateway:infra/edge', 2, 2, 1],
      ['shop/web', 1, 1, 0],
    ],
    'with the members and problems of its pools',
  );
  t.is(list.found, 2);
  t.is(
    Object.values(summary.counts).reduce((sum, each) => sum + each),
    2,
  );
  t.is(host.verdicts['not served'], 1, 'the metrics count pools, too');
  t.deepEqual(summary.members, { ready: 3, down: 0, all: 3 });
  t.deepEqual(
    summary.broken.map(({ key }) => key),
    ['gateway:infra/edge'],
  );
  t.deepEqual(detail?.pools, [
    {
      ...{ key: 'pool:shop/none', service: 'shop/none', verdict: 'not served' },
      ...{ ready: 0, down: 0, members: 0, problems: 0 },
    },
    {
      ...{ key: 'pool:shop/api', service: 'shop/api', verdict: 'served' },
      ...{ ready: 2, down: 0, members: 2, problems: 1 },
    },
  ]);
  t.deepEqual((await host.look('open=pool%3Ashop%2Fapi')).detail?.users, ['gateway:infra/edge']);
  const keys = async (question: string): Promise<readonly string[]> =>
    (await host.look(question)).list.rows.map(({ key }) => key);
  t.deepEqual(namespaces, ['infra', 'shop']);
  t.deepEqual(await keys('namespace=shop'), ['gateway:infra/edge', 'shop/web']);
  t.deepEqual(await keys('search=api-1'), ['gateway:infra/edge'], 'the pod of a pool');
  t.deepEqual(await keys('search=shop/none'), ['gateway:infra/edge'], 'the name of a pool');
});

function loadBalancer(
  key: string,
  count: number,
  ofMember: Partial<Member> = {},
  problems: readonly Problem[] = [],
  address = '192.0.2.1',
): LoadBalancer {
  const { namespace, name } = ownerOf(key);
  const members = Array.from({ length: count }, (_, at): Member => {
    const own = `10.0.${Math.floor(at / 250)}.${(at % 250) + 1}`;
    return {
      name: `${own}:80`,
      id: stableId(`${own}:80`),
      address: own,
      port: 80,
      weight: 16,
      state: 'ready',
      target: '',
      ...ofMember,
    };
  });
  const listener = {
    name: listenerName(ownerOf(key), { protocol: 'TCP', port: 80 }, 'v4'),
    protocol: 'TCP',
    port: 80,
    portName: '',
    engine: 'haproxy',
    family: 'v4',
    addresses: [address],
    pool: { members, monitor: {}, whenAllDown: 'serve' },
  } as unknown as Listener;
  return {
    kind: 'LoadBalancer',
    key,
    namespace,
    name,
    vips: [{ address, family: 'v4', source: 'pool' }],
    listeners: [listener],
    problems,
  };
}

/** The agent's parts as far as a page sees them: HAProxy has all that it should, but for what a test takes away. */
class FakeHost {
  readonly #loadBalancers = new Map<string, LoadBalancer>();
  readonly #overview: Overview;
  readonly poolUses = new PoolUses();
  readonly statuses = emptyDesiredState().statuses;
  readonly #rows: LoadBalancerSummaries;
  readonly running = new Map<string, MemberFact['state']>();
  readonly unservedListeners = new Set<string>();
  /** Listeners whose members were looked at. */
  readonly asked = new Set<string>();
  readonly down = new Set<string>();
  workerPid = 1;
  /** Connections so far and open ones, by the listener. */
  readonly counted = new Map<string, readonly [total: number, open: number]>();
  stats: ListenerStats | undefined;
  files: readonly DiskFile[] = [];
  unserved = '';
  dashboardUrl = '';
  readonly clock = new FakeClock();
  readonly traffic = new TrafficBook(
    {
      families: async () => [],
      traffic: () =>
        Array.from(this.counted, ([name, [total, open]]) => listenerTraffic({ name, total, open })),
    },
    this.clock,
  );

  constructor(loadBalancers: readonly LoadBalancer[]) {
    const dataplane = this.#dataplane();
    const sources = {
      version: '0.0.0',
      startedAt: new Date(0),
      desired: {
        loadBalancers: this.#loadBalancers,
        ignored: new Map(),
        poolUses: this.poolUses,
        statuses: this.statuses,
        dependents: { of: () => new Set() },
      },
      cluster: { ownerObject: () => undefined, slices: () => [], service: () => undefined },
      dataplane,
      operating: {
        of: (key: string) => {
          const found = this.#loadBalancers.get(key);
          return found && operatingStatus(found, dataplane);
        },
      },
      announcers: new Announcers({ vrrp: undefined }),
      reach: undefined,
      pair: undefined,
      addresses: { problems: [], status: () => ({ pools: [] }) },
      api: () => undefined,
      clusterLostSince: () => 0,
      writing: () => undefined,
      sourceProblems: () => [],
      pathsOf: () => [],
      disk: () => ({ folder: '/state', files: this.files }),
      zone: () => '',
      dashboardUrl: () => this.dashboardUrl,
      connectionSync: { status: () => undefined },
    } as unknown as StatusSources;
    this.#rows = new LoadBalancerSummaries(sources);
    this.#overview = new Overview(sources, this.#rows, this.traffic);
    for (const each of loadBalancers) this.put(each);
  }

  #dataplane(): StatusSources['dataplane'] {
    return {
      status: () => ({
        workerPid: this.workerPid,
        version: '',
        serving: true,
        reloadPending: [],
        unserved: this.unserved,
        fault: '',
      }),
      serves: (listener: string) => !this.unservedListeners.has(listener),
      members: (listener: string) => {
        this.asked.add(listener);
        return new Map(
          [...this.running].map(([name, state]) => [
            name,
            {
              state,
              weight: 16,
              isDown: this.down.has(name),
              cause: this.down.has(name) ? 'Connection refused' : '',
            },
          ]),
        );
      },
      failures: () => undefined,
      problemsOf: () => [],
      loads: () => [],
      stats: async () => this.stats,
    } as unknown as StatusSources['dataplane'];
  }

  /** As the metrics count them. */
  get verdicts(): LoadBalancerSummaries['counts'] {
    return this.#rows.counts;
  }

  put(wanted: LoadBalancer): void {
    this.#loadBalancers.set(wanted.key, wanted);
    for (const { pool } of wanted.listeners)
      for (const { name } of pool.members) this.running.set(name, 'ready');
    this.#rows.changed([wanted.key]);
  }

  remove(key: string): void {
    this.#loadBalancers.delete(key);
    this.#rows.changed([key]);
  }

  /** What the next round reads of its only listener. */
  count(key: string, total: number, open: number): void {
    this.counted.set(listenerName(ownerOf(key), { protocol: 'TCP', port: 80 }, 'v4'), [total, open]);
  }

  look(question = ''): Promise<PageView> {
    return this.#overview.look(new URLSearchParams(question));
  }
}
