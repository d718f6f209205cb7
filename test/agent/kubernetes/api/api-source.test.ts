import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { type ErrorCode, HeadgateError } from '../../../../agent/errors.ts';
import { ApiSource } from '../../../../agent/kubernetes/api/api-source.ts';

/** A source whose every question fails so, and which has the patience of hours. */
function failing(t: ExecutionContext, code: ErrorCode) {
  const failed = Promise.withResolvers<void>();
  const kinds = new Set<string>();
  const source = new ApiSource({
    api: { open: () => Promise.reject(new HeadgateError(code, 'Refused')) },
    namespaces: [],
    serviceSelector: '',
    snapshotPath: undefined,
    patience: 10_000_000,
    onChange: () => t.fail(),
    onFailure: () => t.fail(),
    observer: {
      onFailure: (kind) => {
        if (kinds.add(kind).size === 3) failed.resolve();
      },
    },
  });
  t.teardown(() => source.close());
  source.start();
  return { source, failed: failed.promise };
}

test('Where no API server can be reached nobody waits for one', async (t) => {
  const { source } = failing(t, 'API_UNREACHABLE');
  t.is(await source.ready, 'nothing');
});

test('An API server that answers, but not as asked, is waited for', async (t) => {
  const { source, failed } = failing(t, 'API_REFUSED');
  let isReady = false;
  void source.ready.then(() => {
    isReady = true;
  });
  await failed;
  await setImmediate();
  t.false(isReady);
});
