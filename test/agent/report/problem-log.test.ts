import test from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { emptyDesiredState } from '../../../agent/model/desired-state.ts';
import type { LoadBalancer, Problem } from '../../../agent/model/load-balancer.ts';
import {
  ProblemLog,
  type ProblemObserverOptions,
  problemObserver,
} from '../../../agent/report/problem-log.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

function start() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line).message) };
  const problemLog = new ProblemLog(createLog({ level: 'info', format: 'json', destination }), clock);
  return { clock, problemLog, logged: () => lines.splice(0) };
}

const problem = (message: string): Problem => ({
  object: 'Service default/web',
  reason: 'InvalidAnnotation',
  message,
});

test('A problem is logged once when it appears, and once when it is solved', (t) => {
  const { problemLog, logged } = start();
  problemLog.report('default/web', [problem('bad')]);
  problemLog.report('default/web', [problem('bad')]);
  problemLog.report('default/web', []);
  problemLog.report('default/web', []);
  t.deepEqual(logged(), ['bad', 'Solved: bad']);
});

test('A problem of a Service is logged with its namespace and name, that of a file without', (t) => {
  const lines: object[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  const problemLog = new ProblemLog(
    createLog({ level: 'info', format: 'json', destination }),
    new FakeClock(),
  );
  problemLog.report('shop/web', [{ ...problem('bad'), object: 'Service shop/web' }]);
  problemLog.report('manifests', [{ ...problem('bad'), object: 'web.yaml' }]);
  const [ofService = {}, ofFile = {}] = lines;
  t.like(ofService, {
    object: 'Service shop/web',
    namespace: 'shop',
    service: 'web',
    reason: 'InvalidAnnotation',
  });
  t.deepEqual(Object.keys(ofFile), ['level', 'time', 'object', 'reason', 'message']);
});

test('At the start only the problems that last are logged, once what is read on request has been read', async (t) => {
  const { clock, problemLog, logged } = start();
  const desired = new Map<string, LoadBalancer>();
  const put = (key: string, ...problems: readonly Problem[]): void => {
    desired.set(key, { key, vips: [], listeners: [], problems } as unknown as LoadBalancer);
  };
  const observer = problemObserver({
    ...{
      desired: { loadBalancers: desired, statuses: emptyDesiredState().statuses },
      problemLog,
      clock,
      reach: undefined,
    },
    health: { problemsOf: () => [] },
    dataplane: { problemsOf: () => [] } as unknown as ProblemObserverOptions['dataplane'],
  });
  put('default/web', problem('not read yet'));
  put('default/shop', problem('bad'));
  observer.began?.(new Set(desired.keys()));
  put('default/web');
  observer.changed(new Set(['default/web']));
  put('default/late', problem('late'));
  observer.changed(new Set(['default/late']));
  t.deepEqual(logged(), []);
  await clock.advance(500);
  t.deepEqual(logged(), ['bad', 'late']);
  put('default/shop');
  observer.changed(new Set(['default/shop']));
  t.deepEqual(logged(), ['Solved: bad'], 'afterwards at once');
});

test('An author who changes a bad value all the time has a hundred lines a minute, and other namespaces theirs', async (t) => {
  const { clock, problemLog, logged } = start();
  for (let n = 0; n < 200; n++) problemLog.report('default/web', [problem(`bad ${n}`)]);
  t.is(logged().length, 100);
  problemLog.report('other/web', [problem('also bad')]);
  problemLog.report('manifests', [problem('a file is bad')]);
  t.deepEqual(logged(), ['also bad', 'a file is bad']);
  await clock.advance(60_000);
  t.deepEqual(logged(), ['There were more problems in the last minute than the log shows']);
  problemLog.report('default/web', []);
  t.deepEqual(logged(), ['Solved: bad 199']);
});

test('Files with new problems all the time have a hundred lines a minute', async (t) => {
  const { clock, problemLog, logged } = start();
  for (let n = 0; n < 200; n++) problemLog.report('manifests', [problem(`bad ${n}`)]);
  t.is(logged().length, 100);
  problemLog.report('api', [problem('an object is bad')]);
  problemLog.report('manifests/web', [problem('bad in a namespace with this name')]);
  t.is(logged().length, 2);
  await clock.advance(60_000);
  t.deepEqual(logged(), ['There were more problems in the last minute than the log shows']);
});
