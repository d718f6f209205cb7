import test from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import type { Outcome, Refusal } from '../../../agent/haproxy/apply.ts';
import type { Plan, ReloadReason } from '../../../agent/haproxy/plan.ts';
import type { Command } from '../../../agent/haproxy/socket/commands.ts';
import { ProgrammingLatency } from '../../../agent/report/programming-latency.ts';

const KEY = 'default/web';
const COMMAND: Command = { kind: 'SetServerState', backend: 'b', server: 's', state: 'ready' };
const DONE: Outcome = { acknowledged: [], refused: [], repaired: [], beyondRepair: [], lost: undefined };
const REFUSED: readonly Refusal[] = [{ key: KEY, command: COMMAND, reply: 'No' }];

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test('What commands make live is counted when they are acknowledged, each change by itself', (t) => {
  const { programming, observed, round } = start();
  round({ triggers: [9_000, 9_900], commands: [COMMAND] });
  t.deepEqual(observed, ['runtime 1', 'runtime 0.1']);
  t.is(programming.waiting, 0);
});

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test('What needs a listener is counted when a worker with that listener is there', (t) => {
  const { observed, round } = start();
  round({ triggers: [9_000], reload: 'listener-added' });
  round({ triggers: [9_500], reload: 'listener-added', commands: [COMMAND] });
  t.deepEqual(observed, []);
  round({});
  t.deepEqual(observed, ['reload 1', 'reload 0.5']);
  round({});
  t.is(observed.length, 2);
});

test('Members that change while a reload is due for an option are live by commands', (t) => {
  const { observed, round } = start();
  round({ triggers: [9_000], reload: 'listener-changed', commands: [COMMAND] });
  t.deepEqual(observed, ['runtime 1']);
});

test('What comes while no worker is there is counted once there is one', (t) => {
  const { programming, observed, round } = start();
  programming.applied([], undefined, new Map([[KEY, { since: 0, triggers: [9_000] }]]));
  t.deepEqual(observed, []);
  round({});
  t.deepEqual(observed, ['reload 1']);
});

test('What was sent when the connection broke is counted once the worker is there again', (t) => {
  const { observed, round } = start();
  const lost = new HeadgateError('RUNTIME_CLOSED', 'Gone');
  round({ triggers: [9_000], commands: [COMMAND], outcome: { lost } });
  t.deepEqual(observed, []);
  round({ commands: [COMMAND] });
  t.deepEqual(observed, ['reload 1']);
});

test('A refused command that was repaired is counted, one beyond repair waits for the reload', (t) => {
  const { observed, round } = start();
  round({ triggers: [9_000], commands: [COMMAND], outcome: { refused: REFUSED, repaired: ['b'] } });
  t.deepEqual(observed, ['runtime 1']);
  round({ triggers: [9_900], commands: [COMMAND], outcome: { refused: REFUSED, beyondRepair: ['b'] } });
  t.is(observed.length, 1);
  round({});
  t.deepEqual(observed, ['runtime 1', 'reload 0.1']);
});

test('What asks nothing of HAProxy is not counted', (t) => {
  const { programming, observed, round } = start();
  round({ triggers: [9_000] });
  t.deepEqual(observed, []);
  t.is(programming.waiting, 0);
});

test('What waited for a Service that is not served after all is forgotten', (t) => {
  const { programming, observed, round, served } = start();
  round({ triggers: [9_000], reload: 'listener-added' });
  served.delete(KEY);
  round({});
  t.deepEqual(observed, []);
  t.is(programming.waiting, 0);
});

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test('A change from the future took no time', (t) => {
  const { observed, round } = start();
  round({ triggers: [60_000], commands: [COMMAND] });
  t.deepEqual(observed, ['runtime 0']);
});

test('However long no worker is there, no more than a thousand changes of a Service are kept', (t) => {
  const { programming, observed, round } = start();
  for (let at = 0; at < 1_500; at++)
    programming.applied([], undefined, new Map([[KEY, { since: 0, triggers: [at] }]]));
  round({});
  t.is(observed.length, 1_000);
  t.is(observed[0], 'reload 10');
});

interface Round {
  readonly triggers?: readonly number[];
  readonly commands?: readonly Command[];
  readonly reload?: ReloadReason;
  readonly outcome?: Partial<Outcome>;
}

/** At 10 s since the epoch; `observed`: path and seconds. */
function start() {
  const observed: string[] = [];
  const served = new Set([KEY]);
  const programming = new ProgrammingLatency({
    now: () => 10_000,
    isServed: (key) => served.has(key),
    observe: (path, seconds) => observed.push(`${path} ${seconds}`),
  });
  const round = ({ triggers, commands = [], reload, outcome = {} }: Round): void => {
    const plan: Plan = { kind: 'Plan', key: KEY, commands, reload };
    const changed = new Map(triggers === undefined ? [] : [[KEY, { since: 0, triggers }]]);
    programming.applied([plan], { ...DONE, ...outcome }, changed);
  };
  return { programming, observed, round, served };
}
