import test from 'ava';
import type { MemberFact } from '../../../../agent/dataplane/forwarder.ts';
import type { RecentFailures } from '../../../../agent/dataplane/recent-failures.ts';
import type { LoadBalancer, Member, Pool } from '../../../../agent/model/load-balancer.ts';
import { listenersInWords, operatingStatus } from '../../../../agent/report/operating/operating-status.ts';
import { StatusBook } from '../../../../agent/report/operating/status-book.ts';
import { service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

/** A load balancer with one port and a member for each word. */
function given(states: readonly Member['state'][], pool: Partial<Pool> = {}): LoadBalancer {
  const monitored = { annotations: { 'headgate.io/health-monitor': 'tcp' } };
  const own = loadBalancerOf(translated([service(monitored), slice()]));
  const listeners = own.listeners.map((listener) => ({
    ...listener,
    pool: {
      ...listener.pool,
      ...pool,
      members: states.map((state, at) => ({
        name: `10.0.0.${at}:80`,
        id: at + 1,
        address: `10.0.0.${at}`,
        port: 80,
        weight: 16,
        state,
        target: '',
      })),
    },
  }));
  return { ...own, listeners };
}

const FACTS: Readonly<Record<string, MemberFact | undefined>> = {
  up: { state: 'ready', weight: 16, isDown: false, cause: '' },
  unread: { state: 'ready', weight: 16, isDown: undefined, cause: '' },
  down: { state: 'ready', weight: 16, isDown: true, cause: 'the response timed out (L7TOUT)' },
  drain: { state: 'drain', weight: 16, isDown: false, cause: '' },
  maint: { state: 'maint', weight: 16, isDown: undefined, cause: '' },
  missing: undefined,
};

function factsOf(words: readonly string[], isServed = true, failures?: RecentFailures) {
  return {
    serves: () => isServed,
    failures: () => failures,
    members: (_: string) =>
      new Map(
        words.flatMap((word, at) => {
          const fact = FACTS[word];
          return fact === undefined ? [] : [[`10.0.0.${at}:80`, fact] as const];
        }),
      ),
  };
}

for (const [words, members, pool] of [
  [['up', 'up'], 'ONLINE ONLINE', 'ONLINE'],
  [['up', 'unread'], 'ONLINE ONLINE', 'ONLINE'],
  [['up', 'down'], 'ONLINE ERROR', 'DEGRADED'],
  [['down', 'down'], 'ERROR ERROR', 'ERROR'],
  [['down', 'drain'], 'ERROR DRAINING', 'ERROR'],
  [['up', 'drain'], 'ONLINE DRAINING', 'ONLINE'],
  [['drain'], 'DRAINING', 'DRAINING'],
  [['missing'], 'OFFLINE', 'OFFLINE'],
  [['up', 'maint'], 'ONLINE OFFLINE', 'ONLINE'],
  [[], '', 'OFFLINE'],
] as const) {
  test(`Members that are ${words.join(' and ') || 'not there'} make a pool that is ${pool}`, (t) => {
    const states = words.map((word) => (word === 'drain' ? 'drain' : 'ready'));
    const now = operatingStatus(given(states), factsOf(words));
    t.is(now.listeners[0]?.members.map(({ status }) => status).join(' '), members);
    t.is(now.listeners[0]?.pool, pool);
    t.is(now.status, pool);
    t.is(now.problems.length, pool === 'ERROR' ? 1 : 0);
  });
}

test('Without a monitor members have none, and the pool is well', (t) => {
  const now = operatingStatus(given(['ready'], { monitor: undefined }), factsOf(['unread']));
  t.is(now.listeners[0]?.members[0]?.status, 'NO_MONITOR');
  t.is(now.status, 'ONLINE');
  t.false(now.isMonitored);
});

const [FIRST, SECOND] = ['10.0.0.0:80', '10.0.0.1:80'] as const;
const DEAD = { unit: 'connections', tried: 50, failed: 50, isAll: true } as const;
const REPORT = { unit: 'connections', tried: 50, failed: 50 } as const;

test('Members that fail all that clients tried are in ERROR without a monitor, and say how much failed', (t) => {
  const failures: RecentFailures = { ...REPORT, share: 'all', members: new Map([[FIRST, DEAD]]) };
  const now = operatingStatus(given(['ready'], { monitor: undefined }), factsOf(['unread'], true, failures));
  t.like(now, { status: 'ERROR', isMonitored: false });
  t.like(now.listeners[0], { pool: 'ERROR', ready: 1, down: 0, failing: 1, taking: 0, fails: 'all' });
  t.deepEqual(now.listeners[0]?.members, [
    { name: FIRST, status: 'ERROR', cause: '50 of 50 connections failed in the last minute', fails: true },
  ]);
  t.deepEqual(
    now.problems.map(({ reason, message }) => `${reason}: ${message}`),
    ['MembersFail: All that clients tried at TCP port 80 (IPv4) in the last minute failed'],
  );
  t.is(listenersInWords(now.listeners), 'the only ready member fails what clients send');
});

test('A member for which others take over makes the pool DEGRADED, and is named', (t) => {
  const failures: RecentFailures = {
    ...REPORT,
    failed: 0,
    share: 'none',
    members: new Map([[SECOND, DEAD]]),
  };
  const now = operatingStatus(
    given(['ready', 'ready'], { monitor: undefined }),
    factsOf(['unread', 'unread'], true, failures),
  );
  t.like(now.listeners[0], { pool: 'DEGRADED', failing: 1, taking: 1, fails: 'none' });
  t.is(
    now.problems[0]?.message,
    `Clients get an answer at TCP port 80 (IPv4) only because other members take over: ${SECOND} fails each time`,
  );
});

test('A member with a few failures stays what it is, and says how many there were', (t) => {
  const some = { unit: 'requests', tried: 40, failed: 2, isAll: false } as const;
  const failures: RecentFailures = { ...some, share: 'none', members: new Map([[FIRST, some]]) };
  const now = operatingStatus(given(['ready']), factsOf(['up'], true, failures));
  t.like(now, { status: 'ONLINE', problems: [] });
  t.is(now.listeners[0]?.members[0]?.cause, '2 of 40 requests got an answer of 5xx in the last minute');
});

test('A listener that the dataplane does not serve is OFFLINE, whatever its members', (t) => {
  const now = operatingStatus(given(['ready']), factsOf(['up'], false));
  t.is(now.status, 'OFFLINE');
  t.is(now.listeners[0]?.pool, 'ONLINE');
});

test('The problem of a pool that is down names the effect on clients', (t) => {
  const message = (whenAllDown: Pool['whenAllDown'], count: number) =>
    operatingStatus(given(Array(count).fill('ready'), { whenAllDown }), factsOf(Array(count).fill('down')))
      .problems[0]?.message;
  t.is(
    message('serve', 2),
    'Each of the 2 ready members of TCP port 80 (IPv4) fails its health check: connections go to all of them as if they were up',
  );
  t.is(
    message('reject', 1),
    'The only ready member of TCP port 80 (IPv4) fails its health check: new connections are refused',
  );
});

test('listenersInWords() names failing members, or listeners that are not ONLINE', (t) => {
  const [fails, serves] = [
    { status: 'DEGRADED', ready: 3, down: 1, failing: 0, fails: 'none' },
    { status: 'ONLINE', ready: 2, down: 0, failing: 0, fails: 'none' },
  ] as const;
  const [offline, drains] = [
    { ...serves, status: 'OFFLINE' },
    { ...serves, status: 'DRAINING', ready: 0 },
  ] as const;
  t.is(listenersInWords([fails, serves]), '1 of 5 ready members fail their health checks');
  t.is(listenersInWords([serves]), '0 of 2 ready members fail their health checks');
  t.is(listenersInWords([serves, offline]), '1 of 2 listeners OFFLINE');
  const [inPart, wholly] = (['some', 'all'] as const).map((each) => ({ ...serves, ready: 0, fails: each }));
  t.is(listenersInWords([inPart ?? fails]), 'the only listener fails a part of what clients send');
  t.is(listenersInWords([serves, wholly ?? fails]), '1 of 2 listeners fail what clients send');
  t.is(
    listenersInWords([fails, offline, drains]),
    '1 of 5 ready members fail their health checks, 1 of 3 listeners OFFLINE, 1 of 3 listeners DRAINING',
  );
});

test('StatusBook counts all objects and reports changes', (t) => {
  const book = new StatusBook();
  const web = given(['ready', 'ready']);
  t.true(book.update(web.key, web, factsOf(['up', 'up'])));
  t.false(book.update(web.key, web, factsOf(['up', 'up'])));
  t.is(book.counts.member.ONLINE, 2);
  t.deepEqual(book.unwell(), []);
  t.true(book.update(web.key, web, factsOf(['up', 'down'])));
  t.like(book.counts, { member: { ONLINE: 1, ERROR: 1 }, load_balancer: { ONLINE: 0, DEGRADED: 1 } });
  t.is(book.unwell()[0]?.key, web.key);
  t.true(book.update(web.key, undefined, factsOf([])));
  t.is(book.of(web.key), undefined);
  t.deepEqual(
    Object.values(book.counts)
      .flatMap((counts) => Object.values(counts))
      .filter((count) => count !== 0),
    [],
  );
});

test('StatusBook names members only if one of them is not well, and counts all', (t) => {
  const book = new StatusBook();
  const web = given(['ready', 'ready', 'drain']);
  book.update(web.key, web, factsOf(['up', 'up', 'drain']));
  t.deepEqual(
    book.of(web.key)?.listeners[0]?.members.map(({ status }) => status),
    ['ONLINE', 'ONLINE', 'DRAINING'],
  );
  const well = given(['ready', 'ready']);
  book.update(well.key, well, factsOf(['up', 'up']));
  t.deepEqual(book.of(well.key)?.listeners[0]?.members, []);
  t.like(book.counts, { member: { ONLINE: 2, DRAINING: 0 } });
});
