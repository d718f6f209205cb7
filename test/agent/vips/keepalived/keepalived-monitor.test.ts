import { spawn } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import {
  KeepalivedMonitor,
  type KeepalivedMonitorOptions,
} from '../../../../agent/vips/keepalived/keepalived-monitor.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

/** A monitor that must find nothing to repair, until the end of the test. */
function started(t: ExecutionContext, audit: () => number, watched: object, options: object) {
  const clock = new FakeClock();
  const monitor = new KeepalivedMonitor(
    {
      paths: { log: '/nowhere/log' },
      watched: { states: { counts: () => [] }, readiness: { check: async () => undefined }, ...watched },
      intervals: { advert: () => 1_000, audit },
      onCheck: () => undefined,
      metrics: { repaired: () => t.fail() },
      log: silentLog(),
      ...options,
    } as unknown as KeepalivedMonitorOptions,
    clock,
  );
  t.teardown(() => monitor.close());
  monitor.start();
  return { clock, monitor };
}

test('KeepalivedMonitor audits soon after the settings shorten the interval', async (t) => {
  let audits = 0;
  let interval = 3_600_000;
  const { clock, monitor } = started(
    t,
    () => interval,
    {
      daemon: {
        pid: 0,
        hasChanged: async () => false,
        vrrpProcess: async () => undefined,
        checkForSecond: async () => audits++,
      },
      file: { text: '', read: async () => '', disown: () => false },
    },
    {
      reconciler: { isUnderWay: false, fail: () => t.fail() },
    },
  );
  await clock.advance(60_000);
  t.is(audits, 0);
  interval = 10;
  monitor.retime();
  // An audit reads a real file, which the clock of the test does not move.
  while (audits === 0) await clock.advance(10);
  t.pass();
});

test('KeepalivedMonitor reports a failed check as a fault and checks again', async (t) => {
  const faults: string[] = [];
  const { clock } = started(
    t,
    () => 2_000,
    {
      daemon: {
        pid: 0,
        hasChanged: () => Promise.reject(new Error('no pid')),
        checkForSecond: () => Promise.reject(new Error('no /proc')),
      },
    },
    {
      reconciler: { isUnderWay: false, fail: ({ message }: Error) => faults.push(message) },
    },
  );
  const areBothRepeated = (): boolean =>
    ['no pid', 'no /proc'].every((one) => faults.filter((each) => each === one).length > 1);
  // An audit reads a real file, which the clock of the test does not move.
  while (!areBothRepeated()) await clock.advance(500);
  t.pass();
});

test('KeepalivedMonitor reloads a keepalived that answers and receives nothing, then kills it, until it receives', async (t) => {
  // A process that never wakes stands for it.
  const sleeping = spawn('sleep', ['600']);
  t.teardown(() => sleeping.kill());
  const repairs: string[] = [];
  let received = 7;
  const { clock, monitor } = started(
    t,
    () => 3_600_000,
    {
      daemon: {
        pid: 1,
        hasChanged: async () => false,
        vrrpProcess: async () => sleeping.pid,
        readStates: async () => true,
        needsReload: () => repairs.push('reload'),
        kill: async () => repairs.push('kill'),
      },
      states: { counts: () => [{ name: 'vrrp-51', state: 'backup', adverts: { sent: 0, received } }] },
    },
    {
      reconciler: { isUnderWay: false, reconcile: () => undefined, fail: () => t.fail() },
      metrics: { repaired: () => undefined },
    },
  );
  t.is(monitor.fault, '');
  // A check reads a real file, which the clock of the test does not move.
  while (repairs.length < 2) await clock.advance(500);
  t.deepEqual(repairs, ['reload', 'kill']);
  t.is(monitor.fault, 'keepalived sends and receives no advertisements of vrrp-51');
  received++;
  while (monitor.fault !== '') await clock.advance(500);
  t.deepEqual(repairs, ['reload', 'kill']);
});
