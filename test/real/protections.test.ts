// Annotations that protect and are wrong, at the real HAProxy: each on a host of its own, with one open host beside.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { Loopback, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { GatewayWorld } from '../support/values/gateway-world.ts';
import {
  backendObjects,
  gatewayJson,
  ingressClassJson,
  ingressJson,
  routeJson,
} from '../support/values/gateways.ts';
import { GIVEN, MISSING, NGINX, OWN } from '../support/values/guards.ts';
import { misspelt } from '../support/values/misspelt.ts';

const test = requires(ava, { haproxy: true });

type Json = Readonly<Record<string, unknown>>;
type Annotations = Readonly<Record<string, string>>;

const OPEN = 'open.example';
const FORWARDED = { backend: { service: { name: 'web', port: { number: 80 } } }, pathType: 'Prefix' };

function wrong(kind: 'Ingress' | 'HTTPRoute', prefix: string): readonly Annotations[] {
  const values = GIVEN.filter(({ kinds, closes }) => kinds.includes(kind) && closes === undefined).flatMap(
    ({ name, wrong: all }) => all.map((value) => ({ [prefix + name]: value })),
  );
  const names = GIVEN.flatMap(({ name }, at) => {
    const near = misspelt(name, at * 7);
    return near === undefined ? [] : [{ [OWN + near]: 'x' }];
  });
  const missing = Object.entries(MISSING).map(([name, value]) => ({ [NGINX + name]: value }));
  const elsewhere = GIVEN.filter(({ kinds }) => !kinds.includes(kind)).map(
    ({ name, good, wrong: [value = ''] }) => ({
      [OWN + name]: good[0] ?? value,
    }),
  );
  return [...values, ...names, ...missing, ...elsewhere];
}

async function asked(
  t: ExecutionContext,
  key: string,
  objects: readonly Json[],
  annotations: readonly Annotations[],
): Promise<void> {
  const world = new GatewayWorld([...backendObjects('web', await startEcho(t, 'web')), ...objects]);
  const loopback = new Loopback();
  const front = await loopback.bindable(world.loadBalancer(key));
  await startRendered(t, [front, world.loadBalancer('pool:default/web')]);
  const [{ addresses: [address = ''] = [], port = 0 } = {}] = front.listeners;
  const statusOf = async (host: string, path: string): Promise<number> =>
    (await request({ address, port }, path, { headers: { host } })).status ?? 0;
  t.is(await statusOf(OPEN, '/'), 200);
  t.true(annotations.length > 60);
  for (const [at, given] of annotations.entries()) {
    const text = JSON.stringify(given);
    t.is(await statusOf(hostOf(at), '/guarded'), 403, text);
    t.is(await statusOf(hostOf(at), '/%67uarded'), 403, text);
    // The authority of an Ingress counts for its whole hosts, because TLS is for hosts.
    const isOfHost = `${NGINX}auth-tls-secret` in given;
    t.is(await statusOf(hostOf(at), '//guarded'), isOfHost ? 403 : 400, text);
    t.is(await statusOf(hostOf(at), '/'), isOfHost ? 403 : 200, text);
  }
}

function hostOf(at: number): string {
  return `h${at}.example`;
}

test('Ingresses that ask for protection in a wrong way answer 403, and no wider one answers for them', async (t) => {
  const annotations = wrong('Ingress', NGINX);
  const rules = (host: string, path: string) => ({
    rules: [{ host, http: { paths: [{ path, ...FORWARDED }] } }],
  });
  const objects = annotations.flatMap((given, at) => [
    ingressJson(`closed-${at}`, rules(hostOf(at), '/guarded'), given),
    ingressJson(`open-${at}`, rules(hostOf(at), '/')),
  ]);
  const all = [ingressClassJson(), ingressJson('open', rules(OPEN, '/')), ...objects];
  await asked(t, 'ingress:-/edge', all, annotations);
});

test('HTTPRoutes that ask for protection in a wrong way answer 403, and no wider one answers for them', async (t) => {
  const annotations = wrong('HTTPRoute', OWN);
  const route = (name: string, host: string, path: string, given: Annotations = {}) => {
    const rules = [{ matches: [{ path: { value: path } }], backendRefs: [{ name: 'web', port: 80 }] }];
    const json = routeJson(name, [{ name: 'edge' }], { hostnames: [host], rules });
    return { ...json, metadata: { ...(json.metadata as Json), annotations: given } };
  };
  const objects = annotations.flatMap((given, at) => [
    route(`closed-${at}`, hostOf(at), '/guarded', given),
    route(`open-${at}`, hostOf(at), '/'),
  ]);
  await asked(t, 'gateway:default/edge', [gatewayJson(), route('open', OPEN, '/'), ...objects], annotations);
});

test('Other sites read answers without credentials, and with them only if they are named', async (t) => {
  const rules = (host: string) => ({ rules: [{ host, http: { paths: [{ path: '/', ...FORWARDED }] } }] });
  const world = new GatewayWorld([
    ...backendObjects('web', await startEcho(t, 'web')),
    ingressClassJson(),
    ingressJson('all', rules('all.example'), { [`${NGINX}enable-cors`]: 'true' }),
    ingressJson('named', rules('named.example'), {
      [`${NGINX}enable-cors`]: 'true',
      [`${NGINX}cors-allow-origin`]: 'https://*.dev.example',
    }),
  ]);
  const front = await new Loopback().bindable(world.loadBalancer('ingress:-/edge'));
  await startRendered(t, [front, world.loadBalancer('pool:default/web')]);
  const [{ addresses: [address = ''] = [], port = 0 } = {}] = front.listeners;
  const readBy = async (host: string, origin: string) => {
    const { headers } = await request({ address, port }, '/', { headers: { host, origin } });
    return [headers['access-control-allow-origin'], headers['access-control-allow-credentials']];
  };
  t.deepEqual(await readBy('all.example', 'https://evil.example'), ['*', undefined]);
  t.deepEqual(await readBy('named.example', 'https://evil.example'), [undefined, undefined]);
  t.deepEqual(await readBy('named.example', 'https://a.b.dev.example'), [undefined, undefined]);
  t.deepEqual(await readBy('named.example', 'https://a.dev.example'), ['https://a.dev.example', 'true']);
});
