import test from 'ava';
import type { Outcome } from '../../../agent/dataplane/forwarder.ts';
import { ProgrammingLatency } from '../../../agent/report/programming-latency.ts';

const KEY = 'default/web';
const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test('A change by commands is counted when it is acknowledged', (t) => {
  const { programming, observed, round } = start();
  round({ triggers: [9_000, 9_900], isAcknowledged: true });
  t.deepEqual(observed, ['runtime 1', 'runtime 0.1']);
  t.is(programming.waiting, 0);
});

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test('A change that needs a new listener is counted when a worker has it', (t) => {
  const { observed, round } = start();
  round({ triggers: [9_000], isPending: true });
  round({ triggers: [9_500], isPending: true, isAcknowledged: true });
  t.deepEqual(observed, []);
  round({});
  t.deepEqual(observed, ['reload 1', 'reload 0.5']);
  round({});
  t.is(observed.length, 2);
});

test('A change without a worker is counted when there is one', (t) => {
  const { programming, observed, round } = start();
  programming.applied([], NOTHING, new Map([[KEY, { since: 0, triggers: [9_000] }]]));
  t.deepEqual(observed, []);
  round({});
  t.deepEqual(observed, ['reload 1']);
});

test('A change on a broken connection is counted when the worker is back', (t) => {
  const { observed, round } = start();
  round({ triggers: [9_000], isPending: true });
  t.deepEqual(observed, []);
  round({ isAcknowledged: true });
  t.deepEqual(observed, ['reload 1']);
});

test('A change without an effect on HAProxy is not counted', (t) => {
  const { programming, observed, round } = start();
  round({ triggers: [9_000] });
  t.deepEqual(observed, []);
  t.is(programming.waiting, 0);
});

test('Changes of a Service that is not served are forgotten', (t) => {
  const { programming, observed, round, served } = start();
  round({ triggers: [9_000], isPending: true });
  served.delete(KEY);
  round({});
  t.deepEqual(observed, []);
  t.is(programming.waiting, 0);
});

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test('A change from the future counts as 0 seconds', (t) => {
  const { observed, round } = start();
  round({ triggers: [60_000], isAcknowledged: true });
  t.deepEqual(observed, ['runtime 0']);
});

test('Without a worker at most a thousand changes of a Service are kept', (t) => {
  const { programming, observed, round } = start();
  for (let at = 0; at < 1_500; at++)
    programming.applied([], NOTHING, new Map([[KEY, { since: 0, triggers: [at] }]]));
  round({});
  t.is(observed.length, 1_000);
  t.is(observed[0], 'reload 10');
});

interface Round {
  readonly triggers?: readonly number[];
  readonly isAcknowledged?: boolean;
  readonly isPending?: boolean;
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
  const round = ({ triggers, isAcknowledged = false, isPending = false }: Round): void => {
    const changed = new Map(triggers === undefined ? [] : [[KEY, { since: 0, triggers }]]);
    const outcome: Outcome = {
      acknowledged: new Set(isAcknowledged ? [KEY] : []),
      pending: new Set(isPending ? [KEY] : []),
      lost: undefined,
    };
    programming.applied([{ key: KEY, effort: 'none' }], outcome, changed);
  };
  return { programming, observed, round, served };
}
