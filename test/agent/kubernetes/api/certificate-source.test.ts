import test, { type ExecutionContext } from 'ava';
import { type AskedObject, CertificateSource } from '../../../../agent/kubernetes/api/certificate-source.ts';
import type { ApiStream } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { WEB } from '../../../support/values/certificates.ts';

const SECRET = {
  metadata: { name: 'web-tls', namespace: 'shop', uid: 'u', resourceVersion: '1' },
  type: 'kubernetes.io/tls',
  data: { 'tls.crt': btoa(WEB.cert), 'tls.key': btoa(WEB.key) },
};

/** A source and an API server that answers each list with `items`, and never ends a watch. */
function started(t: ExecutionContext, { namespaces = [] as string[], status = 200, items = [SECRET] } = {}) {
  const clock = new FakeClock();
  const state = { isRead: true, status };
  const lists: string[] = [];
  const changes: {
    readonly upserted: string[];
    readonly removed: string[];
    readonly asked: AskedObject[];
  }[] = [];
  let next = Promise.withResolvers<void>();
  const source = new CertificateSource({
    api: {
      open: async ({ path, query, signal }) => {
        if (query?.watch !== undefined) return streamOf(200, '', signal);
        lists.push(`${path} ${query?.fieldSelector}`);
        const metadata = { resourceVersion: '5' };
        return streamOf(state.status, JSON.stringify({ metadata, items: state.status === 200 ? items : [] }));
      },
    },
    namespaces,
    isRead: () => state.isRead,
    onChange: ({ upserted, removed }, asked) => {
      const keys = (all: readonly { readonly key: string }[]) => all.map(({ key }) => key);
      changes.push({ upserted: keys(upserted), removed: keys(removed), asked: [...asked] });
      next.resolve();
    },
    clock,
  });
  t.teardown(() => source.close());
  const changed = async (): Promise<void> => {
    await next.promise;
    next = Promise.withResolvers();
  };
  return { clock, state, lists, changes, source, changed };
}

/** With `signal` it ends when the signal says so. */
function streamOf(status: number, text: string, signal?: AbortSignal): ApiStream {
  const chunks = (async function* () {
    if (text !== '') yield Buffer.from(text);
    if (signal === undefined) return;
    await new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  })();
  return { status, headers: {}, chunks };
}

test('A Secret is read when it is asked for, with those of its type and namespace', async (t) => {
  const { source, lists, changes, changed } = started(t);
  t.deepEqual(lists, []);
  t.deepEqual(source.accessToPair('secret shop/web-tls'), { kind: 'pending' });
  await changed();
  t.deepEqual(lists, ['/api/v1/namespaces/shop/secrets type=kubernetes.io/tls']);
  t.deepEqual(changes, [{ upserted: ['shop/web-tls'], removed: [], asked: ['secret shop/web-tls'] }]);
  t.deepEqual(source.accessToPair('secret shop/other'), { kind: 'read' });
  t.is(lists.length, 1);
});

test('Objects with authorities are read alone', async (t) => {
  const { source, lists, changed } = started(t, { items: [] });
  source.accessToAuthority('configmap shop/clients');
  await changed();
  source.accessToAuthority('secret shop/ca');
  await changed();
  t.deepEqual(lists, [
    '/api/v1/namespaces/shop/configmaps metadata.name=clients',
    '/api/v1/namespaces/shop/secrets metadata.name=ca',
  ]);
});

test('Namespaces that the setting does not name are not read', (t) => {
  const { source, lists } = started(t, { namespaces: ['other'] });
  t.deepEqual(source.accessToPair('secret shop/web-tls'), {
    kind: 'denied',
    why: 'the setting secretNamespaces does not have namespace "shop"',
  });
  t.deepEqual(lists, []);
});

test('Without the right the answer says what to apply', async (t) => {
  const { source, changes, changed } = started(t, { status: 403 });
  source.accessToPair('secret shop/web-tls');
  await changed();
  t.deepEqual(changes, [{ upserted: [], removed: [], asked: ['secret shop/web-tls'] }]);
  const access = source.accessToPair('secret shop/web-tls');
  t.regex(access.kind === 'denied' ? access.why : '', /namespace "shop" \(403\): apply deploy\/tls\/$/);
});

test('What no load balancer asks for any more is removed and read no longer', async (t) => {
  const { source, clock, state, lists, changes, changed } = started(t);
  source.accessToPair('secret shop/web-tls');
  await changed();
  await clock.advance(60_000);
  t.is(changes.length, 1);
  state.isRead = false;
  await clock.advance(60_000);
  await changed();
  t.deepEqual(changes.slice(1), [{ upserted: [], removed: ['shop/web-tls'], asked: [] }]);
  state.isRead = true;
  t.deepEqual(source.accessToPair('secret shop/web-tls'), { kind: 'pending' });
  await changed();
  t.is(lists.length, 2);
});
