import test, { type ExecutionContext } from 'ava';
import {
  Caretaker,
  type CaretakerOptions,
} from '../../../../../agent/vips/keepalived/process/keepalived-monitor.ts';
import { silentLog } from '../../../../support/values/silent-log.ts';

/** A caretaker that finds nothing to repair, until the test is over. */
function started(t: ExecutionContext, options: object): Caretaker {
  const caretaker = new Caretaker({
    paths: { log: '/nowhere/log', vrrpPidFile: '/nowhere/pid' },
    advertInterval: () => 1_000,
    onLook: () => undefined,
    metrics: { repaired: () => t.fail() },
    log: silentLog(),
    ...options,
  } as unknown as CaretakerOptions);
  t.teardown(() => caretaker.close());
  caretaker.start();
  return caretaker;
}

/** Its timers keep nobody awake. */
async function awake(until: Promise<void>): Promise<void> {
  const timer = setInterval(() => undefined, 1_000);
  await until;
  clearInterval(timer);
}

test('An audit that is an hour away comes at once where the settings have it more often', async (t) => {
  const audited = Promise.withResolvers<void>();
  let interval = 3_600_000;
  const caretaker = started(t, {
    daemon: {
      pid: 0,
      isAnother: async () => false,
      mendPidFiles: async () => undefined,
      lookForSecond: async () => undefined,
    },
    file: { text: '', read: async () => '', disown: () => false },
    files: {
      areIntact: async () => {
        audited.resolve();
        return true;
      },
    },
    reconciler: { isUnderWay: false },
    auditInterval: () => interval,
  });
  interval = 10;
  caretaker.retime();
  await t.notThrowsAsync(awake(audited.promise));
});

test('What cannot be looked at is a fault, and the next look comes all the same', async (t) => {
  const faults: string[] = [];
  const both = Promise.withResolvers<void>();
  started(t, {
    daemon: {
      pid: 0,
      isAnother: () => Promise.reject(new Error('no pid')),
      mendPidFiles: () => Promise.reject(new Error('no /proc')),
    },
    files: { areIntact: async () => true },
    reconciler: {
      isUnderWay: false,
      fail: ({ message }: Error) => {
        faults.push(message);
        if (['no pid', 'no /proc'].every((one) => faults.filter((each) => each === one).length > 1))
          both.resolve();
      },
    },
    auditInterval: () => 10,
  });
  await t.notThrowsAsync(awake(both.promise));
});
