import test from 'ava';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';
import { Persister } from '../../../../agent/haproxy/config/persister.ts';
import { renderContext } from '../../../../agent/haproxy/config/render-context.ts';
import { haproxyPaths } from '../../../../agent/haproxy/paths.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

/** `isDecided`: false while a reload writes the file. */
function persister({ isDecided = (): boolean => true, fault = (): Error | undefined => undefined } = {}) {
  const clock = new FakeClock();
  const seen = { writes: 0, results: [] as string[] };
  const paths = haproxyPaths('/state', '/runtime');
  const settings = {
    maxConnectionsPerNamespace: 0,
    threads: 1,
    hardStopAfter: 1,
    maxOldWorkers: 1,
    haproxyUser: '',
    haproxyGroup: '',
    routeMetrics: false,
    connectionLogTarget: { kind: 'journald' } as const,
    connectionLogFormat: 'json' as const,
  };
  const made = new Persister({
    file: {
      isKnown: false,
      write: async () => {
        const error = fault();
        if (error !== undefined) throw error;
        seen.writes++;
      },
    },
    loadBalancers: () => (isDecided() ? new Map() : undefined),
    context: () => renderContext(settings, paths, 100, new AclIds().idOf),
    writeFiles: async () => undefined,
    keepRejections: async () => undefined,
    onPersisted: (result) => seen.results.push(result),
    log: silentLog(),
    clock,
  });
  return { clock, made, seen };
}

test('Persister writes the file at most every two seconds while changes never end', async (t) => {
  const { clock, made, seen } = persister();
  for (let at = 0; at < 10_000; at += 100) {
    made.soon();
    await clock.advance(100);
  }
  t.is(seen.writes, 5);
  await clock.advance(60_000);
  t.is(seen.writes, 5);
});

test('Persister does not write while a reload writes the file', async (t) => {
  let isDecided = false;
  const { clock, made, seen } = persister({ isDecided: () => isDecided });
  made.soon();
  await clock.advance(10_000);
  t.deepEqual([seen.writes, made.fault], [0, '']);
  isDecided = true;
  await clock.advance(1_000);
  t.is(seen.writes, 1);
});

test('Persister retries a failed write until it succeeds, and shows the fault in the meantime', async (t) => {
  const faults = [new Error('The disk is full'), new Error('The disk is full')];
  const { clock, made, seen } = persister({ fault: () => faults.shift() });
  made.soon();
  await clock.advance(2_000);
  t.is(made.fault, 'The disk is full');
  await clock.advance(2_000);
  t.is(made.fault, '');
  t.deepEqual(seen.results, ['failed', 'failed', 'done']);
});

test('Persister writes a due change when it is closed, and nothing afterwards', async (t) => {
  const { clock, made, seen } = persister();
  made.soon();
  await made.close();
  t.is(seen.writes, 1);
  made.soon();
  await clock.advance(10_000);
  t.is(seen.writes, 1);
});
