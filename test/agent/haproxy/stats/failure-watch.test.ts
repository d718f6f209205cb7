import test, { type ExecutionContext } from 'ava';
import { BackendNames } from '../../../../agent/haproxy/socket/backend-names.ts';
import type { Runtime } from '../../../../agent/haproxy/socket/runtime.ts';
import { allColumns, type Column } from '../../../../agent/haproxy/stats/columns.ts';
import { FailureWatch } from '../../../../agent/haproxy/stats/failure-watch.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { service, slice } from '../../../support/values/build.ts';
import { silentLog } from '../../../support/values/silent-log.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const WEB = loadBalancerOf(translated([service(), slice()]));
const SHOP: LoadBalancer = {
  ...WEB,
  key: 'default/shop',
  listeners: WEB.listeners.map((each) => ({ ...each, name: each.name.replace('web', 'shop') })),
};
const HEADER = `# pxname,svname,${allColumns.join(',')},status,check_status,mode,`;
type Values = Partial<Record<Column, number>>;

/** A worker whose proxies are backends with two servers. */
class Worker {
  readonly questions: string[] = [];
  readonly backends = new Map<
    string,
    { readonly own: Values; readonly servers: readonly [Values, Values] }
  >();
  readonly runtime: Runtime;

  constructor(pid: number) {
    const askAll = async (lines: readonly string[]) => lines.map((line) => this.#answer(line));
    this.runtime = { worker: { pid }, names: new BackendNames(), askAll } as unknown as Runtime;
  }

  #answer(line: string): string {
    this.questions.push(line);
    const [, , proxy = 0, kinds = 0] = line.split(' ').map(Number);
    const [name, values] = [...this.backends][proxy - 1] ?? [];
    if (name === undefined || values === undefined) return HEADER;
    const rowOf = (server: string, own: Values) =>
      `${name},${server},${allColumns.map((column) => own[column] ?? 0).join(',')},UP,,tcp,`;
    const rows = (kinds & 2) === 2 ? [rowOf('BACKEND', values.own)] : [];
    if ((kinds & 4) === 4) rows.push(rowOf('a:1', values.servers[0]), rowOf('b:1', values.servers[1]));
    return [HEADER, ...rows].join('\n');
  }
}

function watching(t: ExecutionContext<unknown>, first: Worker) {
  const clock = new FakeClock();
  const state = { worker: first };
  const changed: string[][] = [];
  const watch = new FailureWatch({
    active: () => state.worker.runtime,
    desired: new Map([WEB, SHOP].map((each) => [each.key, each])),
    onChanged: (keys) => changed.push([...keys]),
    log: silentLog(),
    clock,
  });
  watch.start();
  t.teardown(() => watch.close());
  const round = async (): Promise<void> => {
    for (let at = 0; at < 10; at++) {
      await clock.advance(1_000);
      await settled();
    }
  };
  return { watch, state, changed, round };
}

const LISTENER = WEB.listeners[0]?.name ?? '';
const OTHER = SHOP.listeners[0]?.name ?? '';

test('What was counted before the agent began is nothing of the last minute', async (t) => {
  const worker = new Worker(1);
  worker.backends.set(LISTENER, { own: { stot: 90, econ: 90 }, servers: [{ econ: 90 }, {}] });
  const { watch, round, changed } = watching(t, worker);
  await round();
  await round();
  t.is(watch.of(LISTENER), undefined);
  t.deepEqual(changed, []);
});

test('Servers are read only where something went wrong, and named after the second reading', async (t) => {
  const worker = new Worker(1);
  worker.backends.set(OTHER, { own: { stot: 5 }, servers: [{ stot: 5 }, {}] });
  worker.backends.set(LISTENER, { own: {}, servers: [{}, {}] });
  const { watch, round, changed } = watching(t, worker);
  await round();
  worker.backends.set(OTHER, { own: { stot: 50 }, servers: [{ stot: 50 }, {}] });
  worker.backends.set(LISTENER, {
    own: { stot: 9, econ: 9, wredis: 9 },
    servers: [{ stot: 9, wredis: 9 }, { econ: 9 }],
  });
  await round();
  t.like(watch.of(LISTENER), { tried: 9, failed: 9, share: 'all' });
  t.is(watch.of(OTHER), undefined);
  t.deepEqual(changed, [[WEB.key]]);
  t.deepEqual(
    worker.questions.filter((line) => line.endsWith(' 4 -1')),
    ['show stat 2 4 -1'],
  );
  worker.backends.set(LISTENER, {
    own: { stot: 19, econ: 19, wredis: 19 },
    servers: [
      { stot: 19, wredis: 19 },
      { stot: 10, econ: 19 },
    ],
  });
  await round();
  t.deepEqual(
    [...(watch.of(LISTENER)?.members ?? [])],
    [
      ['a:1', { unit: 'connections', tried: 10, failed: 10, isAll: true }],
      ['b:1', { unit: 'connections', tried: 10, failed: 10, isAll: true }],
    ],
  );
  t.deepEqual(changed, [[WEB.key], [WEB.key]]);
});

test('A verdict that stays is reported once, and its end after a success', async (t) => {
  const worker = new Worker(1);
  worker.backends.set(LISTENER, { own: {}, servers: [{}, {}] });
  const { watch, round, changed } = watching(t, worker);
  await round();
  for (const count of [10, 20, 30, 40]) {
    worker.backends.set(LISTENER, { own: { stot: count, econ: count }, servers: [{ econ: count }, {}] });
    await round();
  }
  t.is(watch.of(LISTENER)?.share, 'all');
  const reported = changed.length;
  worker.backends.set(LISTENER, { own: { stot: 80, econ: 40 }, servers: [{ econ: 40 }, { stot: 40 }] });
  await round();
  t.is(watch.of(LISTENER)?.share, 'some');
  t.is(changed.length, reported + 1);
  for (let at = 0; at < 8; at++) await round();
  t.is(watch.of(LISTENER), undefined);
});

test('A new worker has counted from 0 since it began', async (t) => {
  const worker = new Worker(1);
  worker.backends.set(LISTENER, { own: { stot: 500 }, servers: [{ stot: 500 }, {}] });
  const { watch, round, state } = watching(t, worker);
  await round();
  const next = new Worker(2);
  next.backends.set(LISTENER, { own: { stot: 7, econ: 7 }, servers: [{ stot: 7, econ: 7 }, {}] });
  state.worker = next;
  await round();
  t.like(watch.of(LISTENER), { tried: 7, failed: 7, share: 'all' });
  t.deepEqual([...(watch.of(LISTENER)?.members.keys() ?? [])], ['a:1']);
});

test('Members that answered before and send nothing any more fail, also after a reload', async (t) => {
  const worker = new Worker(1);
  worker.backends.set(LISTENER, { own: { stot: 9, bin: 9, bout: 9 }, servers: [{}, {}] });
  // Like syslog: it has never sent anything.
  worker.backends.set(OTHER, { own: { stot: 9, bin: 9 }, servers: [{}, {}] });
  const { watch, round, state } = watching(t, worker);
  await round();
  const next = new Worker(2);
  next.backends.set(LISTENER, { own: { stot: 5, bin: 9, cli_abrt: 5 }, servers: [{}, {}] });
  next.backends.set(OTHER, { own: { stot: 5, bin: 9, cli_abrt: 5 }, servers: [{}, {}] });
  state.worker = next;
  await round();
  t.like(watch.of(LISTENER), { tried: 5, failed: 5, share: 'all' });
  t.is(watch.of(OTHER), undefined);
});

test('A silent member of two is found by its own numbers', async (t) => {
  const worker = new Worker(1);
  const counts = (at: number, silent: number) =>
    worker.backends.set(LISTENER, {
      own: { stot: 9 * at, bin: 9 * at, bout: 9 * at, cli_abrt: 4 * at },
      servers: [
        { stot: 5 * at, bin: 5 * at, bout: 9 * at, cli_abrt: 4 * at - silent },
        { stot: 4 * at, bin: 4 * at, cli_abrt: silent },
      ],
    });
  counts(1, 0);
  const { watch, round } = watching(t, worker);
  await round();
  for (const at of [2, 3]) {
    counts(at, 0);
    await round();
  }
  t.is(watch.of(LISTENER), undefined, 'clients break off connections that were answered');
  counts(4, 4);
  await round();
  t.like(watch.of(LISTENER), { tried: 9, failed: 4, share: 'some' });
  t.deepEqual(
    [...(watch.of(LISTENER)?.members ?? [])],
    [['b:1', { unit: 'connections', tried: 4, failed: 4, isAll: true }]],
  );
});
