import test from 'ava';
import type { MemberFact } from '../../../agent/dataplane/dataplane.ts';
import type { Listener, LoadBalancer, Member, Problem } from '../../../agent/model/load-balancer.ts';
import { LoadBalancerRows } from '../../../agent/report/load-balancer-rows.ts';
import { Overview } from '../../../agent/report/overview.ts';
import type { StatusSources } from '../../../agent/report/status.ts';
import { stableId } from '../../../agent/translate/service/members.ts';
import type { PageView } from '../../../health/page-model.ts';

const PROBLEM: Problem = { object: 'Service a/b', reason: 'InvalidAnnotation', message: 'It is wrong' };

test('A page shows each load balancer with its verdict', async (t) => {
  const host = new FakeHost([
    loadBalancer('a/well', 2),
    loadBalancer('a/drained', 2, { state: 'drain' }),
    loadBalancer('a/empty', 0),
    loadBalancer('a/problem', 1, {}, [PROBLEM]),
  ]);
  host.unserved.add('a:empty:tcp:80:v4');
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
  t.like(summary.counts, { served: 2, 'no ready member': 1, 'not served': 1, ignored: 0 });
  t.deepEqual(summary.members, { ready: 3, down: 0, all: 5 });
  t.is(summary.vips, 1, 'all have the same address');
  const { reason, ...shown } = PROBLEM;
  t.deepEqual(summary.problems, [{ reason, count: 1, shown: [{ key: 'a/problem', ...shown }] }]);
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
  t.like(summary.counts, { served: 1, 'not served': 0, ignored: 0 });
});

test('A different HAProxy worker, or none, updates all rows', async (t) => {
  const host = new FakeHost([loadBalancer('a/one', 1), loadBalancer('a/two', 1)]);
  t.is((await host.look()).summary.counts.served, 2);
  host.workerPid = 0;
  for (const name of ['a:one:tcp:80:v4', 'a:two:tcp:80:v4']) host.unserved.add(name);
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
    view.summary.problems.map(({ count, shown }) => [count, shown.length]),
    [[1_000, 5]],
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

function loadBalancer(
  key: string,
  count: number,
  ofMember: Partial<Member> = {},
  problems: readonly Problem[] = [],
  address = '192.0.2.1',
): LoadBalancer {
  const [namespace = '', name = ''] = key.split('/');
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
    name: `${namespace}:${name}:tcp:80:v4`,
    protocol: 'TCP',
    port: 80,
    portName: '',
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
  readonly #rows: LoadBalancerRows;
  readonly running = new Map<string, MemberFact['state']>();
  readonly unserved = new Set<string>();
  /** Listeners whose members were looked at. */
  readonly asked = new Set<string>();
  readonly down = new Set<string>();
  workerPid = 1;

  constructor(loadBalancers: readonly LoadBalancer[]) {
    const sources = {
      version: '0.0.0',
      startedAt: new Date(0),
      desired: { loadBalancers: this.#loadBalancers, ignored: new Map() },
      cluster: { service: () => undefined, slices: () => [] },
      dataplane: {
        status: () => ({ workerPid: this.workerPid, version: '', serving: true, reloadPending: [] }),
        serves: (listener: string) => !this.unserved.has(listener),
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
        problemsOf: () => [],
        loads: () => [],
        stats: async () => undefined,
      },
      announcer: undefined,
      pair: undefined,
      addresses: { problems: [], status: () => ({ pools: [] }) },
      api: () => undefined,
      writing: () => undefined,
      sourceProblems: () => [],
      pathsOf: () => [],
      zone: () => '',
    } as unknown as StatusSources;
    this.#rows = new LoadBalancerRows(sources);
    this.#overview = new Overview(sources, this.#rows);
    for (const each of loadBalancers) this.put(each);
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

  look(question = ''): Promise<PageView> {
    return this.#overview.look(new URLSearchParams(question));
  }
}
