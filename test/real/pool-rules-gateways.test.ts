// The rule `allowed` of a pool on a real API server, for what is no Service: Gateways, ListenerSets and IngressClasses. Whom it
// refuses, and how their authors are told.

import ava from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { asNew, gatewayJson, ingressClassJson, ingressJson } from '../support/values/gateways.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const POOLS = `/apis/${apiVersion}/addresspools`;
const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1';
const INGRESS_API = '/apis/networking.k8s.io/v1';
const EVENTS = '/apis/events.k8s.io/v1';

let kube: Kube;
let host: TestHost;

test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
});
test.after.always(() => kube?.stop());

test.serial(
  'A rule refuses Gateways, ListenerSets and IngressClasses by status, Event and why, each with the pool and the field',
  async (t) => {
    host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    await host.start();
    await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
    const blocks = [`${host.address(100)}/30`];
    await createPool('ports', { blocks, allowed: { ports: ['8080-8089'], addressesPerNamespace: 1 } });
    const shops = { blocks: [`${host.address(108)}/30`], allowed: { namespaces: ['shop'] } };
    await createPool('shops', shops);

    // A Gateway with a port that is not allowed gets no address; one that has an address gets no such port later.
    await create('gateways', named('mixed', 'ports', [listener('right', 8081), listener('wrong', 9090)]));
    await refused('mixed', 'pool "ports" allows only ports 8080-8089 (allowed.ports), not TCP port 9090', t);
    await create('gateways', named('edge', 'ports', [listener('right', 8081)]));
    await until('it has an address', async () => (await addressesOf('edge')).length === 1);
    await kube.must('PATCH', `${GATEWAY_API}/namespaces/default/gateways/edge`, {
      spec: { listeners: [listener('right', 8081), listener('wrong', 9090)] },
    });
    await until(
      'its listener is refused',
      async () =>
        (await listenersOf('gateways', 'edge')).wrong?.includes(
          'its pool "ports" allows only ports 8080-8089 (allowed.ports), not TCP port 9090',
        ) === true,
    );
    t.regex((await listenersOf('gateways', 'edge')).right ?? '', /^Programmed True/);
    t.is((await addressesOf('edge')).length, 1);
    await told('gateway:default/edge', '(allowed.ports)', t);

    // Another one of the namespace is one address too many, one of another namespace has its own.
    await create('gateways', named('second', 'ports', [listener('http', 8082)]));
    await refused('second', 'pool "ports" gives namespace "default" at most 1 address', t);
    await create('gateways', named('other', 'ports', [listener('http', 8082)], 'shop'), 'shop');
    await until('it has its own', async () => (await addressesOf('other', 'shop')).length === 1);

    // A pool for another namespace.
    await create('gateways', named('stranger', 'shops', [listener('http', 8083)]));
    await refused('stranger', 'pool "shops" is not for namespace "default" (allowed.namespaces)', t);
    await create('gateways', named('own', 'shops', [listener('http', 8083)], 'shop'), 'shop');
    await until('its own has one', async () => (await addressesOf('own', 'shop')).length === 1);

    // A listener of a ListenerSet needs an allowed port, also of a Gateway that has one.
    await kube.must('PATCH', `${GATEWAY_API}/namespaces/default/gateways/edge`, {
      spec: { allowedListeners: { namespaces: { from: 'Same' } } },
    });
    await create('listenersets', {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ListenerSet',
      metadata: { namespace: 'default', name: 'more' },
      spec: { parentRef: { name: 'edge' }, listeners: [listener('fine', 8084), listener('bad', 9091)] },
    });
    await until(
      'its listener is refused, too',
      async () =>
        (await listenersOf('listenersets', 'more')).bad?.includes('(allowed.ports), not TCP port 9091') ===
        true,
    );
    await until(
      'its other one is served',
      async () => (await listenersOf('listenersets', 'more')).fine?.startsWith('Programmed True') === true,
    );

    // No pool with namespaces is for IngressClasses, whose Ingresses are of any; one with ports refuses theirs.
    const inShops = { 'headgate.io/address-pool': 'shops' };
    await kube.must('POST', `${INGRESS_API}/ingressclasses`, asNew(ingressClassJson('shops', inShops)));
    await kube.must(
      'POST',
      `${INGRESS_API}/namespaces/default/ingresses`,
      asNew(ingressJson('web', { ingressClassName: 'shops' })),
    );
    await told(
      'ingress:-/shops',
      'pool "shops" is only for namespaces (allowed.namespaces), and an IngressClass has none',
      t,
    );
    const inPorts = { 'headgate.io/address-pool': 'ports' };
    await kube.must('POST', `${INGRESS_API}/ingressclasses`, asNew(ingressClassJson('ports', inPorts)));
    await kube.must(
      'POST',
      `${INGRESS_API}/namespaces/default/ingresses`,
      asNew(ingressJson('api', { ingressClassName: 'ports' })),
    );
    await told('ingress:-/ports', '(allowed.ports)', t);
    for (const name of ['web', 'api']) {
      const { status } = await kube.must('GET', `${INGRESS_API}/namespaces/default/ingresses/${name}`);
      t.is(status.loadBalancer.ingress, undefined, name);
    }
  },
);

const listener = (name: string, port: number): Json => ({ name, port, protocol: 'HTTP' });

function named(name: string, pool: string, listeners: readonly Json[], namespace = 'default'): Json {
  return gatewayJson(name, { listeners }, { namespace, annotations: { 'headgate.io/address-pool': pool } });
}

function create(plural: string, object: Json, namespace = 'default'): Promise<Json> {
  return kube.must('POST', `${GATEWAY_API}/namespaces/${namespace}/${plural}`, asNew(object));
}

function createPool(name: string, spec: object): Promise<Json> {
  return kube.must('POST', POOLS, { apiVersion, kind: 'AddressPool', metadata: { name }, spec });
}

/** By listener: its conditions in words. */
async function listenersOf(plural: string, name: string): Promise<Record<string, string>> {
  const { status } = await kube.must('GET', `${GATEWAY_API}/namespaces/default/${plural}/${name}`);
  return Object.fromEntries(
    (status?.listeners ?? []).map(({ name: of, conditions }: Json) => [
      of,
      conditions
        .toSorted((a: Json, b: Json) => (a.type === 'Programmed' ? -1 : b.type === 'Programmed' ? 1 : 0))
        .map(({ type, status: is, message }: Json) => `${type} ${is} ${message}`)
        .join('; '),
    ]),
  );
}

async function addressesOf(name: string, namespace = 'default'): Promise<readonly string[]> {
  const { status } = await kube.must('GET', `${GATEWAY_API}/namespaces/${namespace}/gateways/${name}`);
  return (status?.addresses ?? []).map(({ value }: Json) => value);
}

/** A Gateway gets no address, and its conditions say why. */
async function refused(
  name: string,
  words: string,
  t: { deepEqual(a: unknown, b: unknown): unknown } & Asserts,
) {
  const path = `${GATEWAY_API}/namespaces/default/gateways/${name}`;
  await until(`${name} is refused`, async () => {
    const { status } = await kube.must('GET', path);
    return (status?.conditions ?? []).some(({ message }: Json) => message.includes(words));
  });
  t.deepEqual(await addressesOf(name), []);
  await told(`gateway:default/${name}`, words, t);
}

interface Asserts {
  true(value: boolean, message?: string): unknown;
}

/** `why` and an Event say so. */
async function told(key: string, words: string, t: Asserts): Promise<void> {
  await host.until(`${key} is told`, async () =>
    (await host.why(key)).problems.some(
      ({ reason, message }) => reason === 'AddressNotAllowed' && message.includes(words),
    ),
  );
  await until(`an Event tells ${key}`, async () => {
    const { items } = await kube.must('GET', `${EVENTS}/events`);
    return items.some(({ reason, note }: Json) => reason === 'AddressNotAllowed' && note.includes(words));
  });
  t.true(true);
}
