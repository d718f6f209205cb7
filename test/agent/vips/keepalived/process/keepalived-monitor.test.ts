import test, { type ExecutionContext } from 'ava';
import {
  KeepalivedMonitor,
  type KeepalivedMonitorOptions,
} from '../../../../../agent/vips/keepalived/process/keepalived-monitor.ts';
import { FakeClock } from '../../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../../support/values/silent-log.ts';

/** A monitor that finds nothing to repair, until the test is over. */
function started(t: ExecutionContext, options: object) {
  const clock = new FakeClock();
  const monitor = new KeepalivedMonitor({
    paths: { log: '/nowhere/log' },
    advertInterval: () => 1_000,
    onLook: () => undefined,
    metrics: { repaired: () => t.fail() },
    log: silentLog(),
    clock,
    ...options,
  } as unknown as KeepalivedMonitorOptions);
  t.teardown(() => monitor.close());
  monitor.start();
  return { clock, monitor };
}

test('An audit that is an hour away comes soon if the settings have a shorter interval', async (t) => {
  let audits = 0;
  let interval = 3_600_000;
  const { clock, monitor } = started(t, {
    daemon: {
      pid: 0,
      isAnother: async () => false,
      vrrpProcess: async () => undefined,
      lookForSecond: async () => audits++,
    },
    file: { text: '', read: async () => '', disown: () => false },
    reconciler: { isUnderWay: false, fail: () => t.fail() },
    auditInterval: () => interval,
  });
  await clock.advance(60_000);
  t.is(audits, 0);
  interval = 10;
  monitor.retime();
  // An audit looks at a real file, which takes its own time.
  while (audits === 0) await clock.advance(10);
  t.pass();
});

test('What cannot be looked at is a fault, and the next look comes all the same', async (t) => {
  const faults: string[] = [];
  const { clock } = started(t, {
    daemon: {
      pid: 0,
      isAnother: () => Promise.reject(new Error('no pid')),
      lookForSecond: () => Promise.reject(new Error('no /proc')),
    },
    reconciler: { isUnderWay: false, fail: ({ message }: Error) => faults.push(message) },
    auditInterval: () => 2_000,
  });
  const areBothRepeated = (): boolean =>
    ['no pid', 'no /proc'].every((one) => faults.filter((each) => each === one).length > 1);
  // An audit looks at a real file, which takes its own time.
  while (!areBothRepeated()) await clock.advance(500);
  t.pass();
});
