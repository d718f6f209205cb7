import test from 'ava';
import { Caretaker, type CaretakerOptions } from '../../../../agent/keepalived/process/caretaker.ts';
import { silentLog } from '../../../support/silent-log.ts';

test('An audit that is an hour away comes at once where the settings have it more often', async (t) => {
  const audited = Promise.withResolvers<void>();
  let interval = 3_600_000;
  const caretaker = new Caretaker({
    paths: { log: '/nowhere/log', vrrpPidFile: '/nowhere/pid' },
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
    steps: { isUnderWay: false },
    advertInterval: () => 1_000,
    auditInterval: () => interval,
    onLook: () => undefined,
    metrics: { repaired: () => t.fail() },
    log: silentLog(),
  } as unknown as CaretakerOptions);
  t.teardown(() => caretaker.close());
  caretaker.start();
  interval = 10;
  caretaker.retime();
  // Its timers keep nobody awake.
  const awake = setInterval(() => undefined, 1_000);
  await audited.promise;
  clearInterval(awake);
  t.pass();
});

test('What cannot be looked at is a fault, and the next look comes all the same', async (t) => {
  const faults: string[] = [];
  const both = Promise.withResolvers<void>();
  const caretaker = new Caretaker({
    paths: { log: '/nowhere/log', vrrpPidFile: '/nowhere/pid' },
    daemon: {
      pid: 0,
      isAnother: () => Promise.reject(new Error('no pid')),
      mendPidFiles: () => Promise.reject(new Error('no /proc')),
    },
    files: { areIntact: async () => true },
    steps: {
      isUnderWay: false,
      fail: ({ message }: Error) => {
        faults.push(message);
        if (['no pid', 'no /proc'].every((one) => faults.filter((each) => each === one).length > 1))
          both.resolve();
      },
    },
    advertInterval: () => 1_000,
    auditInterval: () => 10,
    onLook: () => undefined,
    metrics: { repaired: () => t.fail() },
    log: silentLog(),
  } as unknown as CaretakerOptions);
  t.teardown(() => caretaker.close());
  caretaker.start();
  const awake = setInterval(() => undefined, 1_000);
  await both.promise;
  clearInterval(awake);
  t.pass();
});
