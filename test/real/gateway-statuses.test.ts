// What a real API server shows of Gateways and routes that cannot be read, that are deleted, or that another controller writes, too.

import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { asNew, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1/namespaces/default';
const POOLS_API = `/apis/${ADDRESS_API_VERSION}`;
const CLASS = '/apis/gateway.networking.k8s.io/v1/gatewayclasses/edge';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const CONTROLLER = 'headgate.io/gateway-controller';
/** How often the other controller writes. */
const FOREIGN_WRITES = 40;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', CONTROLLER);
  await kube.must('POST', servicePath('default'), {
    metadata: { name: 'web' },
    spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  });
});
test.after.always(() => kube?.stop());

test.serial('Objects that cannot be read say so in their status, and what they were is served', async (t) => {
  const { host } = await started(t);
  await createPool('unreadable', host.address(110));
  await create('gateways', gatewayJson('edge', { listeners: [listener(8091)] }));
  const parents = [{ name: 'edge' }, { name: 'theirs' }];
  await create('httproutes', routeJson('api', parents, rules('good')));
  const accepted = (path: string, reason: string, generation: number) =>
    until(
      `${path} is ${reason}`,
      async () => {
        const { status } = await read(path);
        const found = conditionsOf(status).find(({ type }) => type === 'Accepted');
        return found?.reason === reason && found.observedGeneration === generation;
      },
      { seen: () => path },
    );
  await accepted('httproutes/api', 'Accepted', 1);

  // The API server takes any text as the value of a query parameter.
  await patch('httproutes/api', { spec: rules('bad\u0007') });
  await accepted('httproutes/api', 'UnsupportedValue', 2);
  const { parents: entries } = (await read('httproutes/api')).status;
  t.deepEqual(
    entries.map(({ parentRef }: Json) => parentRef.name),
    ['edge'],
  );
  t.regex(
    conditionsOf({ parents: entries })[0]?.message,
    /^Cannot read generation 2, the last one .* spec\.rules\[0\]\.matches\[0\]\.queryParams\[0\]\.value: .*control characters$/,
  );
  const why = (await host.command('why', ['HTTPRoute/default/api'])).stdout;
  t.regex(why, /test.*good/, 'is served still');
  t.regex(why, /queryParams\[0\]\.value: .*control characters/);
  // The same fault in another generation.
  await patch('httproutes/api', { spec: { hostnames: ['example.org'] } });
  await accepted('httproutes/api', 'UnsupportedValue', 3);
  await patch('httproutes/api', { spec: { hostnames: ['example.org'], ...rules('good again') } });
  await accepted('httproutes/api', 'Accepted', 4);

  await create('httproutes', routeJson('never', parents, rules('bad\u0007')));
  await accepted('httproutes/never', 'UnsupportedValue', 1);
  t.is((await read('httproutes/never')).status.parents.length, 1, 'nothing is said for another Gateway');
  await until('the Event is there', async () => {
    const { items } = await kube.must('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
    return items.some(
      ({ regarding, reason }: Json) => regarding.name === 'never' && reason === 'InvalidObject',
    );
  });

  const address = (await read('gateways/edge')).status.addresses[0].value;
  const tls = {
    ...listener(8443, 'tls'),
    protocol: 'HTTPS',
    tls: { options: { 'example.org/x': '\u0007' } },
  };
  await patch('gateways/edge', { spec: { listeners: [listener(8091), tls] } });
  await accepted('gateways/edge', 'Invalid', 2);
  t.is((await read('gateways/edge')).status.addresses[0].value, address);
  t.is(
    (await host.why('gateway:default/edge')).verdict,
    'no ready member',
    'as before: its backends have none',
  );
  await kube.must('DELETE', `${GATEWAY_API}/gateways/edge`);
  await until(
    'the entries go with the Gateway',
    async () => (await read('httproutes/never')).status.parents.length === 0,
  );
  for (const name of ['api', 'never']) await kube.must('DELETE', `${GATEWAY_API}/httproutes/${name}`);
});

test.serial(
  'A GatewayClass says whether the definitions of Gateway API have a supported version',
  async (t) => {
    const found = async (type: string): Promise<Json | undefined> =>
      conditionsOf((await kube.must('GET', CLASS)).status).find((each) => each.type === type);
    const before = await started(t);
    await until('the version is supported', async () => (await found('SupportedVersion'))?.status === 'True');
    await before.agent.stop();
    const tcp = `${DEFINITIONS}/tcproutes.gateway.networking.k8s.io`;
    const { metadata } = await kube.must('GET', tcp);
    const version = 'gateway.networking.k8s.io/bundle-version';
    const annotate = (value: string) =>
      kube.must('PATCH', tcp, { metadata: { annotations: { [version]: value } } });
    await annotate('v1.4.0');
    await started(t);
    await until('it is not', async () => (await found('SupportedVersion'))?.reason === 'UnsupportedVersion');
    t.regex(
      (await found('SupportedVersion'))?.message,
      /are "v1\.4\.0" \(tcproutes\), and v1\.6 is supported/,
    );
    t.is((await found('Accepted'))?.status, 'True');
    await annotate(metadata.annotations[version]);
  },
);

test.serial('A Gateway that is deleted gives its address back, also while no agent runs', async (t) => {
  const { host, agent } = await started(t, ['--release-after', '1s']);
  const address = host.address(111);
  await createPool('one', address);
  const pool = { annotations: { 'headgate.io/address-pool': 'one' } };
  const make = (name: string, port: number) =>
    create('gateways', gatewayJson(name, { listeners: [listener(port)] }, pool));
  const addressesOf = async (name: string): Promise<readonly string[]> =>
    ((await read(`gateways/${name}`)).status?.addresses ?? []).map(({ value }: Json) => value);
  const has = (name: string) =>
    until(`${name} has the address`, async () => (await addressesOf(name)).join() === address);
  /** The owners of the address. */
  const claims = async (): Promise<readonly string[]> => {
    const { items } = await kube.must('GET', `${POOLS_API}/addressclaims`);
    return items.filter(({ spec }: Json) => spec.address === address).map(({ spec }: Json) => spec.service);
  };
  await make('a', 8092);
  await has('a');
  t.deepEqual(await claims(), ['gateway:default/a']);
  await make('b', 8093);
  await until('b waits', async () =>
    conditionsOf((await read('gateways/b')).status).some(
      ({ type, status, reason }) => type === 'Programmed' && status === 'False' && reason !== 'Pending',
    ),
  );
  t.deepEqual(await addressesOf('b'), []);
  await kube.must('DELETE', `${GATEWAY_API}/gateways/a`);
  await has('b');
  t.deepEqual(await claims(), ['gateway:default/b']);

  await agent.stop();
  await kube.must('DELETE', `${GATEWAY_API}/gateways/b`);
  await make('c', 8094);
  t.deepEqual(await claims(), ['gateway:default/b'], 'no agent has seen it yet');
  const next = await host.start(['--release-after', '1s']);
  t.teardown(() => next.stop());
  await has('c');
  t.deepEqual(await claims(), ['gateway:default/c']);
  await kube.must('DELETE', `${GATEWAY_API}/gateways/c`);
  await until('no claim is left', async () => (await claims()).length === 0);
});

test.serial('A route keeps the entries of another controller that writes at the same time', async (t) => {
  const { host } = await started(t);
  await createPool('shared', host.address(112));
  for (const [name, port] of [
    ['left', 8095],
    ['right', 8096],
  ] as const)
    await create('gateways', gatewayJson(name, { listeners: [listener(port)] }));
  const common = { name: 'left' };
  await create('httproutes', routeJson('both', [common]));
  const path = 'httproutes/both';
  const own = async (): Promise<readonly string[]> =>
    ((await read(path)).status?.parents ?? [])
      .filter(({ controllerName }: Json) => controllerName === CONTROLLER)
      .map(({ parentRef }: Json) => parentRef.name);
  await until('it has its entry', async () => (await own()).length === 1);
  for (let at = 1; at <= FOREIGN_WRITES; at++) {
    // The other controller has an entry for the same Gateway; the route's Gateways change meanwhile.
    if (at % 4 === 0)
      await patch(path, { spec: { parentRefs: at % 8 === 0 ? [common] : [common, { name: 'right' }] } });
    await writeForeign(path, at);
  }
  await patch(path, { spec: { parentRefs: [{ name: 'right' }] } });
  await until('the entries are those of the last version', async () => (await own()).join() === 'right');
  const { parents } = (await read(path)).status;
  const foreign = parents.filter(({ controllerName }: Json) => controllerName === 'example.org/other');
  t.is(parents.length, 2);
  t.like(foreign[0], {
    parentRef: { name: 'left' },
    conditions: [{ type: 'Accepted', message: `Write ${FOREIGN_WRITES}`, observedGeneration: 1 }],
  });
  await kube.must('DELETE', `${GATEWAY_API}/gateways/right`);
  await until('its own entry goes with its Gateway', async () => (await own()).length === 0);
  t.deepEqual((await read(path)).status.parents, foreign);
});

/** As a controller writes that reads, changes its own entry, and begins again if another write came between. */
async function writeForeign(path: string, count: number): Promise<void> {
  const condition = {
    type: 'Accepted',
    status: 'True',
    reason: 'Accepted',
    message: `Write ${count}`,
    observedGeneration: 1,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const parentRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'left' };
  await until(`write ${count}`, async () => {
    const object = await read(path);
    const others = (object.status?.parents ?? []).filter(
      ({ controllerName }: Json) => controllerName !== 'example.org/other',
    );
    const entry = { parentRef, controllerName: 'example.org/other', conditions: [condition] };
    const { status } = await kube.api('PUT', `${GATEWAY_API}/${path}/status`, {
      ...object,
      status: { parents: [...others, entry] },
    });
    return status === 200;
  });
}

async function started(t: ExecutionContext, flags: readonly string[] = []) {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const agent = await host.start(flags);
  // It gives the lead back, so that the next one need not wait for it.
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  return { host, agent };
}

const listener = (port: number, name = 'http') => ({ name, port, protocol: 'HTTP' });
const rules = (value: string) => ({
  rules: [
    { matches: [{ queryParams: [{ name: 'test', value }] }], backendRefs: [{ name: 'web', port: 80 }] },
  ],
});

const read = (path: string): Promise<Json> => kube.must('GET', `${GATEWAY_API}/${path}`);

function conditionsOf(status: Json | undefined): readonly Json[] {
  const entries: readonly Json[] = status?.parents ?? [status];
  return entries.flatMap((each) => each?.conditions ?? []);
}

function create(plural: string, object: Json): Promise<Json> {
  return kube.must('POST', `${GATEWAY_API}/${plural}`, asNew(object));
}

function patch(path: string, change: Json): Promise<Json> {
  return kube.must('PATCH', `${GATEWAY_API}/${path}`, change);
}

const createPool = (name: string, block: string) =>
  kube.must('POST', `${POOLS_API}/addresspools`, {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name },
    spec: { blocks: [block] },
  });
