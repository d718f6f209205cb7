import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { type ErrorCode, HeadgateError } from '../../../../agent/base/errors.ts';
import { ApiSource } from '../../../../agent/kubernetes/api/api-source.ts';
import type { ApiRequest, ApiStream } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { kindsOf } from '../../../../agent/kubernetes/api/reflected-kinds.ts';
import type { ObjectsChange } from '../../../../agent/kubernetes/cluster.ts';

const CORE = kindsOf({ gatewayApi: false, ingress: false });

/** A source whose every question fails so, and which has the patience of hours. */
function failing(t: ExecutionContext, code: ErrorCode) {
  const failed = Promise.withResolvers<void>();
  const kinds = new Set<string>();
  const source = new ApiSource({
    api: { open: () => Promise.reject(new HeadgateError(code, 'Refused')) },
    scope: { kinds: CORE, namespaces: [], serviceSelector: '' },
    snapshot: { path: undefined, afterMs: 10_000_000 },
    receivers: {
      onChange: () => t.fail(),
      onFailure: () => t.fail(),
    },
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

test('ApiSource is ready at once if no API server can be reached', async (t) => {
  const { source } = failing(t, 'API_UNREACHABLE');
  t.is(await source.ready, 'nothing');
});

test('ApiSource waits for an API server that answers with errors', async (t) => {
  const { source, failed } = failing(t, 'API_REFUSED');
  let isReady = false;
  void source.ready.then(() => {
    isReady = true;
  });
  await failed;
  await setImmediate();
  t.false(isReady);
});

for (const plural of ['services', 'endpointslices', 'nodes', 'addresspools', 'addressclaims']) {
  // Conformance: before all lists are complete
  test(`ApiSource reports nothing before the list of ${plural} is complete, then all as one change`, async (t) => {
    const held = Promise.withResolvers<void>();
    const others = Promise.withResolvers<void>();
    const watched = new Set<string>();
    const changes: ObjectsChange[] = [];
    const source = new ApiSource({
      api: {
        open: async ({ path, query, signal }) => {
          const kind = path.slice(path.lastIndexOf('/') + 1);
          if (query?.watch !== undefined) {
            // Its list has been taken.
            if (watched.add(kind).size === 4) others.resolve();
            return silence(signal);
          }
          if (kind === plural) await held.promise;
          return listOf(kind);
        },
      },
      scope: { kinds: CORE, namespaces: [], serviceSelector: '' },
      snapshot: { path: undefined, afterMs: 10_000_000 },
      receivers: {
        onChange: (change) => changes.push(change),
        onFailure: () => t.fail(),
      },
    });
    t.teardown(() => source.close());
    source.start();
    await others.promise;
    await setImmediate();
    t.deepEqual([changes, source.isSynced], [[], false]);
    held.resolve();
    await source.synced;
    t.is(await source.ready, 'api');
    t.deepEqual(
      changes.map(({ upserted }) => upserted.map(({ kind }) => kind)),
      [['Service', 'Node']],
    );
  });
}

// Conformance: a Service that is gone
test('ApiSource gives no current Service that only an incomplete list has shown', async (t) => {
  let lists = 0;
  const source = new ApiSource({
    api: {
      open: async ({ path, query, signal }) => {
        const kind = path.slice(path.lastIndexOf('/') + 1);
        if (query?.watch !== undefined) return silence(signal);
        if (kind !== 'services' || ++lists > 1) return listOf(kind);
        const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
        const ghosts = ['ghost', 'a'].map((name) => {
          const metadata = { name, namespace: 'default', uid: 'uid-ghost', resourceVersion: '1' };
          return { metadata, spec };
        });
        const text = `{"metadata":{"resourceVersion":"4"},"items":${JSON.stringify(ghosts).slice(0, -1)},`;
        return streamOf(text, Promise.reject(new HeadgateError('API_UNREACHABLE', 'Broken off')));
      },
    },
    scope: { kinds: CORE, namespaces: [], serviceSelector: '' },
    snapshot: { path: undefined, afterMs: 10_000_000 },
    receivers: {
      onChange: () => undefined,
      onFailure: () => t.fail(),
    },
    observer: { onFailure: () => seen.push(source.currentService('default/ghost')?.uid) },
  });
  const seen: unknown[] = [];
  t.teardown(() => source.close());
  // As the agent's sockets do: its timers keep no process alive.
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  source.start();
  await source.synced;
  t.deepEqual([lists, seen], [2, [undefined]]);
  t.is(source.currentService('default/ghost'), undefined);
  t.is(source.currentService('default/a')?.uid, 'uid-services');
});

/** One object each of those kinds that are short to write. */
function listOf(plural: string): ApiStream {
  const metadata = { name: 'a', namespace: 'default', uid: `uid-${plural}`, resourceVersion: '1' };
  const service = { metadata, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } };
  const node = { metadata: { ...metadata, namespace: undefined } };
  const items = plural === 'services' ? [service] : plural === 'nodes' ? [node] : [];
  return streamOf(JSON.stringify({ metadata: { resourceVersion: '5' }, items }));
}

/** A watch that says nothing. */
function silence(signal: ApiRequest['signal']): ApiStream {
  const ended = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => reject(new HeadgateError('API_UNREACHABLE', 'Aborted')));
  });
  return streamOf('', ended);
}

function streamOf(text: string, end?: Promise<never>): ApiStream {
  const chunks = (async function* () {
    yield Buffer.from(text);
    await end;
  })();
  return { status: 200, headers: {}, chunks };
}
