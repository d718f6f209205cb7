// Which kinds the agent reads: those of the Gateway API and Ingresses after their class, and in which version.

import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { ApiSource } from '../../../../agent/kubernetes/api/api-source.ts';
import type { ApiRequest, ApiStream } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { kindsOf } from '../../../../agent/kubernetes/api/reflected-kinds.ts';
import type { ObjectsChange } from '../../../../agent/kubernetes/cluster.ts';
import { until } from '../../../support/basics/until.ts';
import { gatewayClassJson, gatewayJson, ingressClassJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

/** Until a missing kind is requested again. */
const ABSENT_MS = 30;
const GATEWAY_API = '/apis/gateway.networking.k8s.io';

/** An API server with these lists by path, and an empty one of the core kinds; others are unknown. */
function source(t: ExecutionContext, lists: Readonly<Record<string, readonly Json[]>>, documents: Json = {}) {
  const requests: string[] = [];
  const changes: ObjectsChange[] = [];
  const versions: string[] = [];
  const watches = new Map<string, (event: object) => void>();
  const known = new Map(Object.entries(lists));
  for (const path of [
    '/api/v1/services',
    '/apis/discovery.k8s.io/v1/endpointslices',
    '/api/v1/nodes',
    '/api/v1/namespaces',
  ])
    known.set(path, []);
  const api = {
    open: async ({ path, query, signal }: ApiRequest): Promise<ApiStream> => {
      requests.push(`${query?.watch === undefined ? 'list' : 'watch'} ${path}`);
      if (Object.hasOwn(documents, path)) return streamOf(200, JSON.stringify(documents[path]));
      const items = known.get(path);
      if (items === undefined) return streamOf(404, '{}');
      if (query?.watch === undefined)
        return streamOf(
          200,
          JSON.stringify({ metadata: { resourceVersion: '5' }, items: items.map(versioned) }),
        );
      return watchOf(signal, (send) => watches.set(path, send));
    },
  };
  const apiSource = new ApiSource({
    api,
    scope: { kinds: kindsOf({ gatewayApi: true, ingress: true }), namespaces: [], serviceSelector: '' },
    snapshot: { path: undefined, afterMs: 10_000_000 },
    receivers: {
      onChange: (change) => changes.push(change),
      onOtherVersions: (kind, others) => versions.push(`${kind}: ${others.join()}`),
      onFailure: () => t.fail(),
    },
    times: { absent: ABSENT_MS },
  });
  t.teardown(() => apiSource.close());
  apiSource.start();
  const kinds = () => changes.flatMap(({ upserted }) => upserted.map(({ kind }) => kind));
  const asked = (word: string) => requests.filter((each) => each.includes(word));
  return { apiSource, requests, changes, versions, watches, known, kinds, asked };
}

test('Without a class of this agent no Gateway, route or Ingress is requested', async (t) => {
  const theirs = gatewayClassJson('theirs', 'example.org/other');
  const { apiSource, asked, kinds } = source(t, {
    [`${GATEWAY_API}/v1/gatewayclasses`]: [theirs],
    [`${GATEWAY_API}/v1/gateways`]: [gatewayJson()],
    '/apis/networking.k8s.io/v1/ingressclasses': [],
  });
  await apiSource.synced;
  await delay(3 * ABSENT_MS);
  t.deepEqual(kinds(), ['GatewayClass']);
  t.deepEqual(
    [...asked('/gateways'), ...asked('routes'), ...asked('/ingresses'), ...asked('namespaces')],
    [],
  );
});

test('With a class the other kinds are read before anything is reported', async (t) => {
  const { apiSource, changes, kinds } = source(t, {
    [`${GATEWAY_API}/v1/gatewayclasses`]: [gatewayClassJson()],
    [`${GATEWAY_API}/v1/gateways`]: [gatewayJson()],
  });
  await apiSource.synced;
  t.deepEqual(kinds().toSorted(), ['Gateway', 'GatewayClass']);
  t.is(changes.length, 1);
});

test('A class that is made later makes the agent read its kinds, and the source stays synced', async (t) => {
  const { apiSource, watches, kinds } = source(t, {
    [`${GATEWAY_API}/v1/gatewayclasses`]: [],
    [`${GATEWAY_API}/v1/gateways`]: [gatewayJson()],
  });
  await apiSource.synced;
  await until('classes are watched', async () => watches.has(`${GATEWAY_API}/v1/gatewayclasses`));
  watches.get(`${GATEWAY_API}/v1/gatewayclasses`)?.({ type: 'ADDED', object: versioned(gatewayClassJson()) });
  t.true(apiSource.isSynced);
  await until('the Gateway is read', async () => kinds().includes('Gateway'));
  t.true(apiSource.isSynced);
});

test('ReferenceGrants are read in the old version where the new one is missing', async (t) => {
  const metadata = { namespace: 'default', name: 'grant', uid: 'u-grant' };
  const spec = {
    from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'shop' }],
    to: [{ group: '', kind: 'Service' }],
  };
  const { apiSource, kinds } = source(t, {
    [`${GATEWAY_API}/v1/gatewayclasses`]: [gatewayClassJson()],
    [`${GATEWAY_API}/v1beta1/referencegrants`]: [{ metadata, spec }],
  });
  await apiSource.synced;
  t.true(kinds().includes('ReferenceGrant'));
});

test('A kind that the cluster has only in another version is reported once', async (t) => {
  const versions = ['v1', 'v1alpha2'].map((version) => ({
    groupVersion: `gateway.networking.k8s.io/${version}`,
  }));
  const {
    apiSource,
    versions: told,
    asked,
  } = source(
    t,
    { [`${GATEWAY_API}/v1/gatewayclasses`]: [gatewayClassJson()] },
    {
      [GATEWAY_API]: { versions },
      [`${GATEWAY_API}/v1`]: { resources: [{ name: 'gatewayclasses' }] },
      [`${GATEWAY_API}/v1alpha2`]: { resources: [{ name: 'tlsroutes' }] },
    },
  );
  await apiSource.synced;
  await until('it is requested again', async () => asked('v1/tlsroutes').length > 3);
  t.deepEqual(told, ['TLSRoute: gateway.networking.k8s.io/v1alpha2']);
});

test('An IngressClass of this agent makes it read Ingresses, and nothing of the Gateway API', async (t) => {
  const { apiSource, asked } = source(t, {
    '/apis/networking.k8s.io/v1/ingressclasses': [ingressClassJson()],
    '/apis/networking.k8s.io/v1/ingresses': [],
  });
  await apiSource.synced;
  t.true(asked('/ingresses').length > 0);
  t.deepEqual(asked('/gateways'), []);
});

function versioned(object: Json): Json {
  return { ...object, metadata: { ...(object.metadata as Json), resourceVersion: '4' } };
}

function streamOf(status: number, text: string): ApiStream {
  const chunks = (async function* () {
    yield Buffer.from(text);
  })();
  return { status, headers: { 'content-type': 'application/json' }, chunks };
}

/** A watch that sends what the test gives it. */
function watchOf(signal: ApiRequest['signal'], opened: (send: (event: object) => void) => void): ApiStream {
  const events: string[] = [];
  let wake = (): void => undefined;
  const ended = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => reject(new HeadgateError('API_UNREACHABLE', 'Aborted')));
  });
  opened((event) => {
    events.push(`${JSON.stringify(event)}\n`);
    wake();
  });
  const chunks = (async function* () {
    for (;;) {
      for (const event of events.splice(0)) yield Buffer.from(event);
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await Promise.race([promise, ended]);
    }
  })();
  return { status: 200, headers: {}, chunks };
}
