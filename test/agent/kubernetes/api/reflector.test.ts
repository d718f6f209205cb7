// The reflector against scripted answers: what no real API server does on demand.

import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import type { ApiRequest, ApiStream, ApiStreams } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import type { ReflectedChange } from '../../../../agent/kubernetes/api/reflected.ts';
import { Reflector } from '../../../../agent/kubernetes/api/reflector.ts';
import type { ReflectorTimes } from '../../../../agent/kubernetes/api/reflector-terms.ts';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../../agent/kubernetes/parse-object.ts';
import { eventually } from '../../../support/basics/eventually.ts';

type Answer = (request: ApiRequest) => ApiStream | Promise<ApiStream>;

/** An API server that answers lists and watches from scripts; the last answer of each is repeated. */
class Script implements ApiStreams {
  readonly requests: ApiRequest[] = [];
  readonly #lists: Answer[];
  readonly #watches: Answer[];

  constructor(lists: Answer[], watches: Answer[]) {
    this.#lists = lists;
    this.#watches = watches;
  }

  get lists(): readonly ApiRequest[] {
    return this.requests.filter(({ query }) => query?.watch === undefined);
  }

  get watches(): readonly ApiRequest[] {
    return this.requests.filter(({ query }) => query?.watch !== undefined);
  }

  async open(request: ApiRequest): Promise<ApiStream> {
    this.requests.push(request);
    const script = request.query?.watch === undefined ? this.#lists : this.#watches;
    const answer = script.length > 1 ? script.shift() : script[0];
    if (answer === undefined) throw new Error('The script has no answer');
    return answer(request);
  }
}

const metadata = (name: string, version: number, uid = `uid-${name}`) => ({
  name,
  namespace: 'default',
  uid,
  resourceVersion: String(version),
  creationTimestamp: '2026-01-31T12:00:00Z',
});
const service = (name: string, version: number, { port = 80, uid = `uid-${name}` } = {}) => ({
  metadata: metadata(name, version, uid),
  spec: { type: 'LoadBalancer', ports: [{ port }] },
});

const JSON_BODY = { 'content-type': 'application/json' };

function answer(status: number, text: string, headers: Record<string, string> = {}): Answer {
  return () => ({
    status,
    headers,
    chunks: (async function* () {
      yield Buffer.from(text);
    })(),
  });
}

const list = (version: number, ...items: object[]): Answer =>
  answer(200, JSON.stringify({ metadata: { resourceVersion: String(version) }, items }));

const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const bookmark = (version: number) => event('BOOKMARK', { metadata: { resourceVersion: String(version) } });
const events = (...lines: string[]): Answer => answer(200, lines.join(''));

/** A watch that says `lines` and then nothing. */
const open =
  (...lines: string[]): Answer =>
  ({ signal }) => ({
    status: 200,
    headers: {},
    chunks: (async function* () {
      for (const line of lines) yield Buffer.from(line);
      await new Promise((_, reject) => {
        const abort = () => reject(new HeadgateError('API_UNREACHABLE', 'Aborted'));
        // It may have been while what was given before was still being read.
        if (signal?.aborted === true) abort();
        else signal?.addEventListener('abort', abort);
      });
    })(),
  });

const unreachable: Answer = () => {
  throw new HeadgateError('API_UNREACHABLE', 'No server answers');
};

interface Run {
  readonly api: Script;
  readonly reflector: Reflector<KubernetesObject>;
  readonly changes: ReflectedChange<KubernetesObject>[];
  readonly log: string[];
  names(): string[];
}

function run(
  t: { teardown: (end: () => Promise<void>) => void },
  api: Script,
  times: Partial<ReflectorTimes> = {},
  seed: readonly KubernetesObject[] = [],
  isOptional = false,
): Run {
  const changes: ReflectedChange<KubernetesObject>[] = [];
  const log: string[] = [];
  const reflector = new Reflector<KubernetesObject>({
    api,
    resource: {
      kind: 'Service',
      apiVersion: 'v1',
      plural: 'services',
      namespace: '',
      labelSelector: '',
      isOptional,
      parse: (json) => parseObject(json, ''),
    },
    receivers: { onChange: (change) => changes.push(change) },
    observer: {
      onList: (_, reason) => log.push(`list ${reason}`),
      onWatchEnd: (_, end) => log.push(`end ${end}`),
      onDoubt: (_, missing, of) => log.push(`doubt ${missing} of ${of}`),
      onFailure: (_, error) => log.push(`failure ${error.code} ${error.message}`),
    },
    times: { confirm: 20, absent: 5, ...times },
    // Waits are as short as they get.
    random: () => 0,
  });
  if (seed.length > 0) reflector.seed(seed);
  reflector.start();
  t.teardown(() => reflector.close());
  const names = () => [...reflector.known.objects()].map(({ key }) => key.slice('default/'.length)).sort();
  return { api, reflector, changes, log, names };
}

async function until(isSo: () => boolean): Promise<void> {
  await eventually(async () => isSo(), Boolean);
}

const keysOf = (objects: readonly KubernetesObject[]) => objects.map(({ key }) => key);

// As the agent's sockets do: its timers keep no process alive.
const alive = setInterval(() => undefined, 1_000);
test.after.always(() => clearInterval(alive));

// Conformance: a watch that the server ends
test('Reflector lists from the cache first, watches from there, and then from the last bookmark', async (t) => {
  const { api, reflector, names } = run(
    t,
    new Script(
      [list(5, service('a', 3))],
      [events(event('ADDED', service('b', 7)), bookmark(9)), open(event('DELETED', service('a', 10)))],
    ),
  );
  await until(() => names().join() === 'b');
  t.deepEqual(api.lists[0]?.query, { limit: '500', resourceVersion: '0' });
  t.deepEqual(
    api.watches.map(({ query }) => query?.resourceVersion),
    ['5', '9'],
  );
  t.is(api.watches[0]?.query?.allowWatchBookmarks, 'true');
  t.is(api.watches[0]?.query?.timeoutSeconds, '240');
  t.is(api.lists.length, 1);
  t.is(reflector.status().resourceVersion, '10');
  t.true(reflector.status().connected);
});

// Conformance: 410 Gone, as an event or as a status
test('Reflector lists after an expired watch, and reports the difference', async (t) => {
  const expired = event('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
  const { api, changes, names } = run(
    t,
    new Script(
      [
        list(5, service('a', 1), service('b', 2), service('c', 3)),
        list(20, service('a', 1), service('b', 12, { port: 81 }), service('c', 13, { uid: 'another' })),
        list(30, service('b', 12, { port: 81 }), service('c', 13, { uid: 'another' })),
      ],
      [answer(410, '{}'), events(expired), open()],
    ),
  );
  await until(() => names().join() === 'b,c');
  t.deepEqual(
    api.lists.map(({ query }) => query?.resourceVersion),
    ['0', undefined, undefined],
  );
  t.deepEqual(
    changes.map(({ upserted, removed }) => [keysOf(upserted), keysOf(removed)]),
    [
      [['default/a', 'default/b', 'default/c'], []],
      [['default/b', 'default/c'], ['default/c']],
      [[], ['default/a']],
    ],
  );
});

// Conformance: connection reset, 5xx, 429, 401, a list that fails
test('Reflector reports failures and retries forever, with a backoff', async (t) => {
  const { api, reflector, log } = run(
    t,
    new Script(
      [unreachable, answer(403, '{"message":"services is forbidden"}', JSON_BODY), answer(503, 'x'), list(5)],
      [open()],
    ),
  );
  const begin = performance.now();
  await reflector.synced;
  // 0.4 + 0.8 + 1.6 s: the least that the jitter leaves.
  t.true(performance.now() - begin > 2_700);
  t.is(api.lists.length, 4);
  t.deepEqual(log.slice(0, 3), [
    'failure API_UNREACHABLE No server answers',
    'failure API_REFUSED Cannot list services: The API server answers 403: services is forbidden',
    'failure API_REFUSED Cannot list services: The API server answers 503: "x"',
  ]);
  await until(() => reflector.status().fault === '');
});

// Conformance: connection reset, 5xx, 429, 401, a list that fails
test('Reflector waits as long as Retry-After asks', async (t) => {
  const { reflector } = run(t, new Script([answer(429, '{}', { 'retry-after': '2' }), list(5)], [open()]));
  const begin = performance.now();
  await reflector.synced;
  t.true(performance.now() - begin > 1_900);
});

// Conformance: a list without most of the known objects
test('Reflector lists after a broken connection if the store is older or another one', async (t) => {
  const one = service('a', 3);
  const broken: Answer = () => ({
    status: 200,
    headers: {},
    chunks: (async function* () {
      yield Buffer.from(bookmark(50));
      throw new HeadgateError('API_UNREACHABLE', 'The answer broke off');
    })(),
  });
  const same = run(t, new Script([list(5, one), list(60, one)], [broken, open()]));
  await until(() => same.api.watches.length === 2);
  t.deepEqual(same.api.lists[1]?.query, { limit: '1' });
  t.is(same.api.watches[1]?.query?.resourceVersion, '50');

  const older = run(t, new Script([list(5, one), list(40, one), list(41, one)], [broken, open()]));
  await until(() => older.api.watches.length === 2);
  t.is(older.api.watches[1]?.query?.resourceVersion, '41');
  t.true(older.log.includes('list backwards'));

  const other = service('a', 55, { uid: 'another' });
  const another = run(t, new Script([list(5, one), list(60, other)], [broken, open()]));
  await until(() => another.api.watches.length === 2);
  t.true(another.log.includes('list backwards'));
  t.deepEqual(
    another.changes.at(-1)?.removed.map(({ uid }) => uid),
    ['uid-a'],
  );
});

test('Reflector lists after a bookmark with an older version', async (t) => {
  const { api, log } = run(t, new Script([list(50), list(6)], [open(bookmark(5)), open()]));
  await until(() => api.watches.length === 2);
  t.deepEqual(log, ['list start', 'end backwards', 'list backwards']);
});

// Conformance: a silent connection
test('Reflector ends a silent watch, and continues it', async (t) => {
  const { api, log } = run(t, new Script([list(5), list(9)], [open(bookmark(8)), open()]), { silence: 100 });
  // The second one is silent as well.
  await until(() => api.watches.length >= 2);
  t.is(log[1], 'end silence');
  t.is(api.watches[1]?.query?.resourceVersion, '8');
});

test('Reflector reports when the API server last answered', async (t) => {
  const began = Date.now();
  const { reflector } = run(t, new Script([unreachable, list(5)], [open(bookmark(7))]));
  t.is(reflector.status().lastAnswer, 0);
  await until(() => reflector.status().resourceVersion === '7');
  const { connected, lastAnswer } = reflector.status();
  t.true(connected);
  t.true(lastAnswer >= began && lastAnswer <= Date.now());
  await delay(20);
  t.is(reflector.status().lastAnswer, lastAnswer);
});

test('Reflector ends a silent list, and requests it again', async (t) => {
  const { api, names } = run(t, new Script([open(), list(5, service('a', 3))], [open()]), { silence: 100 });
  await until(() => api.watches.length >= 1);
  const before = api.requests.findIndex(({ query }) => query?.watch !== undefined);
  t.deepEqual([before, names()], [2, ['a']]);
});

test('Reflector lists after a malformed line, with a backoff', async (t) => {
  const { api, log } = run(t, new Script([list(5)], [events('garbage\n')]));
  await until(() => api.lists.length >= 2);
  await delay(300);
  t.true(api.lists.length <= 3);
  t.true(log.includes('list malformed'));
});

test('Reflector ignores an incomplete line at the end of a watch', async (t) => {
  const half = event('DELETED', service('a', 9)).trimEnd();
  const { api, names } = run(t, new Script([list(5, service('a', 3))], [answer(200, half), open()]));
  await until(() => api.watches.length === 2);
  t.deepEqual(names(), ['a']);
  t.is(api.watches[1]?.query?.resourceVersion, '5');
});

// Conformance: an object that cannot be read
test('Reflector keeps the last good value of an unreadable object, and reports the problem', async (t) => {
  const wrong = { ...service('a', 9), spec: { type: 'LoadBalancer', ports: [{ port: 99_999 }] } };
  const { reflector, changes, names } = run(
    t,
    new Script([list(5, service('a', 3))], [open(event('MODIFIED', wrong))]),
  );
  await until(() => changes.length === 2);
  t.deepEqual([names(), changes[1]], [['a'], { upserted: [], removed: [] }]);
  t.deepEqual(
    reflector.known.problems.map(({ object, reason }) => [object, reason]),
    [['Service default/a', 'InvalidObject']],
  );
});

test('Reflector reports the deletion of an unreadable object', async (t) => {
  const { metadata, ...rest } = service('a', 9);
  const spec = { type: 'LoadBalancer', ports: [{ port: 99_999 }] };
  const wrong = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-11-23T20:00:00Z' }, spec };
  const { changes, names } = run(t, new Script([list(5, service('a', 3))], [open(event('MODIFIED', wrong))]));
  await until(() => changes.length === 2);
  t.deepEqual(names(), ['a']);
  t.like(changes[0]?.upserted[0], { deleting: false });
  t.deepEqual(changes[1]?.upserted, [{ ...changes[0]?.upserted[0], deleting: true }]);
});

test('Reflector does not report an event without a change of read fields', async (t) => {
  const { changes, reflector } = run(
    t,
    new Script(
      [list(5, service('a', 3))],
      [open(event('MODIFIED', service('a', 9)), event('ADDED', service('b', 10)))],
    ),
  );
  await until(() => reflector.status().resourceVersion === '10');
  t.deepEqual(
    changes.map(({ upserted }) => keysOf(upserted)),
    [['default/a'], ['default/b']],
  );
  // Parts that were notified of it have the very same one.
  const [known] = reflector.known.objects();
  t.is(known, changes[0]?.upserted[0]);
});

const names = ['a', 'b', 'c', 'd', 'e', 'f'];
const six = names.map((name, index) => service(name, index + 1));

// Conformance: a list without most of the known objects
test('Reflector doubts an empty list, however few objects there were', async (t) => {
  const run1 = run(t, new Script([list(5, service('a', 3)), list(9)], [answer(410, ''), open()]), {
    confirm: 60_000,
  });
  await until(() => run1.log.includes('doubt 1 of 1'));
  t.deepEqual(run1.names(), ['a']);
  t.is(run1.reflector.known.doubted, 1);
});

test('Reflector doubts a list that lacks more than half of the objects', async (t) => {
  const half = run(t, new Script([list(9, ...six), list(20, ...six.slice(3))], [answer(410, ''), open()]));
  await until(() => half.names().join() === 'd,e,f');
  t.false(half.log.some((line) => line.startsWith('doubt')));
  const more = run(t, new Script([list(9, ...six), list(20, ...six.slice(4))], [answer(410, ''), open()]), {
    confirm: 60_000,
  });
  await until(() => more.log.includes('doubt 4 of 6'));
  t.is(more.names().length, 6);
});

test('Reflector doubts the loss of the last objects in a second list', async (t) => {
  const lists = [list(9, ...six), list(20, ...six.slice(4)), list(21), list(22)];
  const { changes, log } = run(t, new Script(lists, [answer(410, ''), open()]), { confirm: 30 });
  await until(() => changes.length === 4);
  t.deepEqual(
    changes.map(({ removed }) => keysOf(removed).join()),
    ['', '', 'default/a,default/b,default/c,default/d', 'default/e,default/f'],
  );
  t.deepEqual(
    log.filter((line) => line.startsWith('doubt')),
    ['doubt 4 of 6', 'doubt 2 of 6'],
  );
});

test('Reflector does not confirm a loss by a list that comes too soon', async (t) => {
  const { api, names: left } = run(
    t,
    new Script([list(9, ...six), list(20)], [answer(410, ''), answer(410, ''), open()]),
    {
      confirm: 60_000,
    },
  );
  await until(() => api.lists.length >= 3);
  await delay(20);
  t.is(left().length, 6);
});

test('Reflector compares the first list with the snapshot', async (t) => {
  const seed = six.flatMap((json) => parseObject({ kind: 'Service', apiVersion: 'v1', ...json }, '').objects);
  const { changes } = run(t, new Script([list(9, ...six.slice(0, 5), service('g', 8))], [open()]), {}, seed);
  await until(() => changes.length === 1);
  t.deepEqual(
    [keysOf(changes[0]?.upserted ?? []), keysOf(changes[0]?.removed ?? [])],
    [['default/g'], ['default/f']],
  );
});

test('Reflector syncs an unknown optional kind as empty, and lists it once it is known', async (t) => {
  const api = new Script(
    [answer(404, '{}'), answer(404, '{}'), list(5, service('a', 3)), answer(404, '{}')],
    [
      (request) => {
        t.is(reflector.lack, 'none');
        return events(bookmark(6))(request);
      },
      answer(404, '{}'),
    ],
  );
  const { reflector, changes, names, log } = run(t, api, {}, [], true);
  await reflector.synced;
  t.is(reflector.lack, 'unknown');
  t.deepEqual(changes, [{ upserted: [], removed: [] }]);
  await until(() => names().length === 1);
  t.deepEqual(
    changes[1]?.upserted.map(({ key }) => key),
    ['default/a'],
  );
  // What was there counts on when the kind is taken away.
  await until(() => reflector.lack === 'unknown');
  t.deepEqual(names(), ['a']);
  t.deepEqual(
    log.filter((line) => line.startsWith('failure')),
    [],
  );
});

test('Reflector syncs a forbidden optional kind, reports it once, and lists it once it is allowed', async (t) => {
  const api = new Script(
    [answer(403, '{"message":"no"}'), answer(403, '{}'), list(5, service('a', 3))],
    [answer(403, '{}'), open()],
  );
  const { reflector, changes, names, log } = run(t, api, {}, [], true);
  await reflector.synced;
  t.is(reflector.lack, 'forbidden');
  t.regex(reflector.status().fault, /403/);
  t.deepEqual(changes, [{ upserted: [], removed: [] }]);
  await until(() => names().length === 1);
  // Two lists were refused, and then a watch, which takes nothing away.
  const failures = () => log.filter((line) => line.startsWith('failure')).length;
  await until(() => failures() === 2);
  t.deepEqual([reflector.lack, names()], ['none', ['a']]);
});

test('Reflector requests an optional kind that has gone as rarely as an unknown one', async (t) => {
  const broken: Answer = () => ({
    status: 200,
    headers: {},
    chunks: (async function* () {
      yield Buffer.from(bookmark(6));
      throw new HeadgateError('API_UNREACHABLE', 'It broke');
    })(),
  });
  const api = new Script([list(5, service('a', 3)), answer(404, '{}')], [broken]);
  const { reflector, names } = run(t, api, { absent: 60_000 }, [], true);
  await until(() => reflector.lack === 'unknown');
  const asked = api.requests.length;
  await delay(500);
  t.is(api.requests.length, asked);
  t.deepEqual(names(), ['a']);
});

test('Reflector does not sync a missing kind that is not optional', async (t) => {
  const { reflector, api } = run(t, new Script([answer(404, '{}'), list(5)], [open()]));
  await until(() => api.lists.length === 1);
  t.false(reflector.isSynced);
});
