import test from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { Reloader, type ReloaderOptions } from '../../../../agent/haproxy/process/reloader.ts';
import type { ServingWorker } from '../../../../agent/haproxy/worker.ts';
import { silentLog } from '../../../support/silent-log.ts';

const worker = (ask: () => Promise<string>): ServingWorker =>
  ({ runtime: { ask }, booted: new Map(), structure: '' }) as unknown as ServingWorker;

/** What a reload of a worker needs until the file is written, which is noted down. */
function reloaderOf(
  serving: { worker: ServingWorker | undefined },
  prepare = async (): Promise<void> => undefined,
) {
  const written: unknown[] = [];
  const options = {
    worker: () => serving.worker,
    maker: {
      prepare: async () => {
        await prepare();
        return { chunks: [] };
      },
    },
    file: { write: async (chunks: unknown) => written.push(chunks) },
    persister: { idle: async () => undefined, worked: () => undefined },
    wanted: new Map(),
    onReload: () => undefined,
    log: silentLog(),
  } as unknown as ReloaderOptions;
  return { reloader: new Reloader(options), written };
}

const refuses = async (): Promise<never> => {
  throw new HeadgateError('RUNTIME_REPLY', 'It does not take connections any more');
};

test('Why a reload failed is no fault any more once its worker is gone', async (t) => {
  const serving: { worker: ServingWorker | undefined } = { worker: worker(refuses) };
  const { reloader } = reloaderOf(serving);
  t.false(await reloader.reload(new Set(['repair'])));
  t.is(reloader.fault, 'It does not take connections any more');
  serving.worker = undefined;
  t.true(await reloader.reload(new Set(['repair'])));
  t.is(reloader.fault, '');
});

test('A reload that fails because its worker is lost is no fault and is over', async (t) => {
  const serving: { worker: ServingWorker | undefined } = { worker: undefined };
  serving.worker = worker(() => {
    serving.worker = undefined;
    return refuses();
  });
  const { reloader } = reloaderOf(serving);
  t.true(await reloader.reload(new Set(['listener-added'])));
  t.is(reloader.fault, '');
});

test('A reload whose worker is lost before its file is written leaves the file to the next start', async (t) => {
  const serving: { worker: ServingWorker | undefined } = { worker: worker(async () => '') };
  const { reloader, written } = reloaderOf(serving, async () => {
    serving.worker = undefined;
  });
  t.true(await reloader.reload(new Set(['listener-added'])));
  t.deepEqual(written, []);
});
