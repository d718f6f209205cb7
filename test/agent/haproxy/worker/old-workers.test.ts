import test from 'ava';
import type { Worker } from '../../../../agent/haproxy/booted-worker.ts';
import { Running } from '../../../../agent/haproxy/running.ts';
import { OldWorkers } from '../../../../agent/haproxy/worker/old-workers.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { poolOf } from '../../../support/values/routes.ts';

function worker(pid: number, ...pools: readonly string[]): Worker {
  const running = Running.booted(
    pools.map((name) => poolOf(name, ['10.0.0.1:80'])),
    () => 1,
  );
  return { running, runtime: { worker: { pid }, names: {} } } as unknown as Worker;
}

test('Connections to a backend that the new worker lacks are ended, unless another HAProxy serves it', (t) => {
  const old = new OldWorkers({
    masterSocket: '/nowhere',
    drainTimeout: () => 1_000,
    hardStopAfter: () => 1_000,
    isElsewhere: (backend) => backend.includes(':moved:'),
    onEnded: () => undefined,
    onError: () => undefined,
    clock: new FakeClock(),
  });
  const before = worker(1, 'stays', 'moved');
  old.replaced(before, undefined);
  old.replaced(worker(2, 'stays'), before);
  t.is(old.waiting, 0);
  old.replaced(worker(3), before);
  t.is(old.waiting, 1);
  old.close();
});
