// Gateways, routes and Ingresses of a real API server: kinds that appear while the agent runs, addresses of the pools, and
// statuses, with those of other controllers left as they are.

import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { each, servicePath } from '../support/kube/kube-objects.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask } from '../support/traffic/traffic.ts';
import { asNew, gatewayJson, ingressClassJson, ingressJson, routeJson } from '../support/values/gateways.ts';
import { MEMBER_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1';
const INGRESS_API = '/apis/networking.k8s.io/v1';
const POOLS = `/apis/${ADDRESS_API_VERSION}/addresspools`;
const CONTROLLER = 'headgate.io/gateway-controller';
const ROUTES = 1_000;
/** The agent asks for a kind that it lacks every 10 to 20 s. */
const APPEARS_SECONDS = 40;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true, audit: true });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

test.serial('A Gateway is served after its definitions appear while the agent runs', async (t) => {
  const host = await started(t);
  await createPool('first', [`${host.address(100)}/31`]);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', CONTROLLER);
  await until(
    'the class is accepted',
    async () => (await conditionOf('gatewayclasses/edge', 'Accepted'))?.status === 'True',
    { seconds: APPEARS_SECONDS },
  );
  await create('gateways', gatewayJson('edge', { listeners: [listener(8081)] }));
  await until(
    'it is programmed',
    async () => (await conditionOf(at('gateways', 'edge'), 'Programmed'))?.status === 'True',
  );
  const { status } = await read(at('gateways', 'edge'));
  t.deepEqual(
    status.addresses.map(({ type }: Json) => type),
    ['IPAddress'],
  );
  t.true([100, 101].map((last) => host.address(last)).includes(status.addresses[0].value));
  t.is(status.listeners[0].attachedRoutes, 0);
});

test.serial(
  'A route has one entry of the agent for each parent, beside those of other controllers',
  async (t) => {
    const host = await started(t);
    await startMembers(t, host);
    await createPool('second', [`${host.address(102)}/31`]);
    await createBackend(host, 'web', [host.address(11)]);
    await create('gateways', gatewayJson('shop', { listeners: [listener(8082, 'a'), listener(8083, 'b')] }));
    const foreign = {
      parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'theirs' },
      controllerName: 'example.org/other',
      conditions: [condition('Accepted')],
    };
    const parents = [
      { name: 'theirs' },
      { name: 'shop', sectionName: 'a' },
      { name: 'shop', sectionName: 'b' },
    ];
    await create('httproutes', routeJson('web', parents));
    const path = at('httproutes', 'web');
    await kube.must('PATCH', `${GATEWAY_API}/${path}/status`, { status: { parents: [foreign] } });
    const entries = async () => ((await read(path)).status?.parents ?? []) as Json[];
    await until('it has an entry for each parent', async () => (await entries()).length === 3);
    t.deepEqual((await entries())[0], foreign);
    const own = (await entries()).slice(1);
    t.deepEqual(
      own.map(({ parentRef, controllerName }) => [parentRef.sectionName, controllerName]),
      [
        ['a', CONTROLLER],
        ['b', CONTROLLER],
      ],
    );
    for (const { conditions } of own)
      t.deepEqual(
        conditions.map(({ type, status, observedGeneration }: Json) => [type, status, observedGeneration]),
        [
          ['Accepted', 'True', 1],
          ['ResolvedRefs', 'True', 1],
        ],
      );
    const attached = async () =>
      (await read(at('gateways', 'shop'))).status?.listeners?.map(
        ({ attachedRoutes }: Json) => attachedRoutes,
      );
    await until('the Gateway counts it', async () => String(await attached()) === '1,1');
    const [vip] = (await read(at('gateways', 'shop'))).status.addresses;
    await until(
      'it is served',
      async () => (await ask({ address: vip.value, port: 8082 }).catch(() => '')) === host.address(11),
    );

    const why = async (name: string) => {
      const { status, stdout } = await host.command('why', [name]);
      return `${status} ${stdout}`;
    };
    t.regex(
      await why('gateway:default/shop'),
      /^0 Gateway default\/shop: served, ONLINE\n.*TCP port 8082 on .*: ONLINE, 1 rule\n/s,
    );
    t.regex(await why('pool:default/web'), /^0 Pool default\/web: served/);
    t.regex(
      await why('HTTPRoute/default/web'),
      /^0 HTTPRoute default\/web: served\n.*to pool:default\/web port 80 \(weight 1\): 1 of 1 member ready/s,
    );
    t.regex(
      await why(`http://${vip.value}:8083/any`),
      /^0 http.*: Gateway default\/shop on .*, listener "b"\n +HTTPRoute default\/web#0 forwards/,
    );
    t.regex((await host.command('list')).stdout, /gateway:default\/shop .* served/);

    await kube.must('PATCH', `${GATEWAY_API}/${path}`, { spec: { parentRefs: parents.slice(0, 2) } });
    await until('the entry goes with its parent', async () => (await entries()).length === 2);
    t.deepEqual((await entries())[0], foreign);
    const [, left] = await entries();
    t.is(left?.conditions[0].observedGeneration, 2);
    await kube.must('DELETE', `${GATEWAY_API}/${at('gateways', 'shop')}`);
    await until('the entry goes with the Gateway', async () => (await entries()).length === 1);
    t.deepEqual(await entries(), [foreign]);
  },
);

test.serial('An agent that starts removes its entries for parents that a route no longer has', async (t) => {
  await create('httproutes', routeJson('old', [{ name: 'gone' }]));
  const path = at('httproutes', 'old');
  const entry = (name: string, controllerName: string) => ({
    parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name },
    controllerName,
    conditions: [condition('Accepted')],
  });
  const foreign = entry('gone', 'example.org/other');
  await kube.must('PATCH', `${GATEWAY_API}/${path}/status`, {
    status: { parents: [entry('before', CONTROLLER), foreign] },
  });
  await started(t);
  await until('it is gone', async () => (await read(path)).status?.parents?.length === 1);
  t.deepEqual((await read(path)).status.parents, [foreign]);
});

test.serial('A Gateway gets the address that it names, or its status says why not', async (t) => {
  const host = await started(t);
  await kube.must('POST', POOLS, pool('static', { blocks: [host.address(110)], auto: false }));
  const ipAddress = (value: string) => ({ type: 'IPAddress', value });
  const addresses = [ipAddress(host.address(110)), { type: 'example.org/Name', value: 'edge' }];
  await create('gateways', gatewayJson('static', { addresses, listeners: [listener(8084)] }));
  const path = at('gateways', 'static');
  const has = async (type: string, status: string, reason: string) => {
    const found = await conditionOf(path, type);
    return found?.status === status && found.reason === reason;
  };
  await until('the type is refused', () => has('Accepted', 'False', 'UnsupportedAddress'));
  const change = (value: string) =>
    kube.must('PATCH', `${GATEWAY_API}/${path}`, { spec: { addresses: [ipAddress(value)] } });
  await change('198.51.100.1');
  await until('the type is accepted', async () => (await conditionOf(path, 'Accepted')).status === 'True');
  await until('the address is not usable', () => has('Programmed', 'False', 'AddressNotUsable'));
  await change(host.address(110));
  await until('it is programmed', () => has('Programmed', 'True', 'Programmed'));
  t.deepEqual((await read(path)).status.addresses, [ipAddress(host.address(110))]);
});

test.serial(
  'An Ingress shows the address of its class, and an Event tells its author of its problems',
  async (t) => {
    const host = await started(t);
    await createPool('fourth', [host.address(106)]);
    const annotations = { 'headgate.io/address-pool': 'fourth' };
    await kube.must('POST', `${INGRESS_API}/ingressclasses`, asNew(ingressClassJson('edge', annotations)));
    const ofIngress = { 'nginx.ingress.kubernetes.io/proxy-buffer-size': '8k' };
    const path = `${INGRESS_API}/namespaces/default/ingresses`;
    await kube.must('POST', path, asNew(ingressJson('web', {}, ofIngress)));
    const shown = async () => (await kube.must('GET', `${path}/web`)).status.loadBalancer.ingress;
    await until('it has its address', async () => (await shown()) !== undefined);
    t.deepEqual(await shown(), [{ ip: host.address(106), ports: [{ port: 80, protocol: 'TCP' }] }]);
    await until('the Event is there', async () => {
      const { items } = await kube.must('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
      return items.some(
        ({ regarding, reason }: Json) => regarding.kind === 'Ingress' && reason === 'AnnotationIgnored',
      );
    });
  },
);

test.serial(
  'The address of an Ingress or Gateway that leaves its class is withdrawn, also by the next agent',
  async (t) => {
    const { host, agent } = await startedAgent(t);
    await createPool('leaving', [host.address(108)]);
    const annotations = { 'headgate.io/address-pool': 'leaving' };
    const classes = `${INGRESS_API}/ingressclasses`;
    const path = `${INGRESS_API}/namespaces/default/ingresses`;
    await kube.must('POST', classes, asNew(ingressClassJson('leaving', annotations)));
    for (const name of ['moved', 'left'])
      await kube.must('POST', path, asNew(ingressJson(name, { ingressClassName: 'leaving' })));
    const shown = async (name: string) =>
      (await kube.must('GET', `${path}/${name}`)).status.loadBalancer.ingress;
    await until(
      'both have it',
      async () => !(await Promise.all([shown('moved'), shown('left')])).includes(undefined),
    );
    await kube.must('PATCH', `${path}/moved`, { spec: { ingressClassName: 'other' } });
    await until('it is withdrawn', async () => (await shown('moved')) === undefined);
    t.not(await shown('left'), undefined);
    // While no agent runs.
    await agent.stop();
    await kube.must('PATCH', `${path}/left`, { spec: { ingressClassName: 'other' } });
    await kube.must('PATCH', `${path}/moved/status`, {
      status: { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } },
    });
    const next = await host.start();
    t.teardown(() => next.stop());
    await until('the next agent withdraws it', async () => (await shown('left')) === undefined);
    t.deepEqual(await shown('moved'), [{ ip: '192.0.2.9' }], 'That of another controller stays');

    await createGatewayClass(kube, 'leaving', CONTROLLER);
    const gateway = gatewayJson('leaving', { gatewayClassName: 'leaving', listeners: [listener(8087)] });
    await createPool('leaving-2', [host.address(109)]);
    await create('gateways', gateway);
    const status = async () => (await read(at('gateways', 'leaving'))).status;
    await until('it has an address', async () => (await status())?.addresses?.length === 1);
    await kube.must('DELETE', `${GATEWAY_API}/gatewayclasses/leaving`);
    await until('its address is withdrawn', async () => ((await status()).addresses ?? []).length === 0);
    for (const type of ['Accepted', 'Programmed']) {
      const found = await conditionOf(at('gateways', 'leaving'), type);
      t.is(found?.status, 'Unknown', type);
      t.is(found?.observedGeneration, 1, type);
    }
  },
);

test.serial(
  'A Gateway whose definition vanishes is no fault, and is served again when it is back',
  async (t) => {
    const host = await started(t);
    await createPool('fifth', [host.address(107)]);
    const own = asNew(gatewayJson('back', { listeners: [listener(8086)] }));
    await create('gateways', own);
    const serves = async () => (await host.why('gateway:default/back')).verdict === 'served';
    await host.until('it is served', serves);
    const name = 'gateways.gateway.networking.k8s.io';
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const { spec, metadata } = await kube.must('GET', `${definitions}/${name}`);
    await kube.must('DELETE', `${definitions}/${name}`);
    await host.until('it is not served', async () => !(await serves()));
    t.is((await host.status()).fault, '');
    await until('it is gone', async () => (await kube.api('GET', `${definitions}/${name}`)).status === 404);
    await kube.must('POST', definitions, { metadata: { name, annotations: metadata.annotations }, spec });
    await until(
      'the kind is there',
      async () => (await kube.api('GET', `${GATEWAY_API}/gateways`)).status === 200,
    );
    await create('gateways', own);
    await host.until('it is served again', serves, APPEARS_SECONDS * 1_000);
  },
);

test.serial('A thousand routes of one Gateway cost at most 1,200 writes of statuses', async (t) => {
  const host = await started(t);
  await createPool('third', [host.address(104)]);
  await create('gateways', gatewayJson('many', { listeners: [listener(8085)] }));
  const attached = async () => (await read(at('gateways', 'many'))).status?.listeners?.[0]?.attachedRoutes;
  await until('the Gateway has a status', async () => (await attached()) === 0);
  const writes = async () =>
    (await kube.writes()).filter(({ resource }) => /^(gateways|httproutes)\/status$/.test(resource)).length;
  const before = await writes();
  const began = performance.now();
  await each(ROUTES, (at) =>
    create('httproutes', routeJson(`many-${at}`, [{ name: 'many' }], { hostnames: [`h${at}.example.org`] })),
  );
  const created = performance.now();
  await until('all are attached', async () => (await attached()) === ROUTES, { seconds: 60 });
  const names = Array.from({ length: ROUTES }, (_, at) => `many-${at}`);
  const lacking = async () => {
    const { items } = await read('namespaces/default/httproutes');
    const done = new Set(
      items
        .filter(({ status }: Json) => status?.parents?.length === 1)
        .map(({ metadata }: Json) => metadata.name),
    );
    return names.filter((name) => !done.has(name));
  };
  await until('all have a status', async () => (await lacking()).length === 0, { seconds: 60 });
  const count = (await writes()) - before;
  t.log(
    `${count} writes; created in ${Math.round(created - began)} ms, ${Math.round(performance.now() - created)} ms later all had their status`,
  );
  t.true(count <= 1_200, `${count} writes`);
});

async function started(t: ExecutionContext): Promise<TestHost> {
  return (await startedAgent(t)).host;
}

async function startedAgent(t: ExecutionContext) {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const agent = await host.start();
  // It gives the lead back, so that the next one need not wait for it.
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  return { host, agent };
}

const at = (plural: string, name: string) => `namespaces/default/${plural}/${name}`;
const listener = (port: number, name = 'http') => ({ name, port, protocol: 'HTTP' });

const read = (path: string): Promise<Json> => kube.must('GET', `${GATEWAY_API}/${path}`);

async function conditionOf(path: string, type: string): Promise<Json> {
  return (await read(path)).status?.conditions?.find((each: Json) => each.type === type);
}

function create(plural: string, object: Json): Promise<Json> {
  return kube.must('POST', `${GATEWAY_API}/namespaces/default/${plural}`, asNew(object));
}

function condition(type: string): Json {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  return { type, status: 'True', reason: type, message: 'As it wants it', lastTransitionTime };
}

const pool = (name: string, spec: object) => ({
  apiVersion: ADDRESS_API_VERSION,
  kind: 'AddressPool',
  metadata: { name },
  spec,
});

const createPool = (name: string, blocks: readonly string[]) =>
  kube.must('POST', POOLS, pool(name, { blocks }));

/** A Service of type ClusterIP; its slice is in the host's folder, because the API allows no loopback addresses there. */
async function createBackend(host: TestHost, name: string, members: readonly string[]): Promise<void> {
  await kube.must('POST', servicePath('default'), {
    metadata: { name },
    spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  });
  await host.write(`${name}.yaml`, [
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: MEMBER_PORT, protocol: 'TCP' }],
      endpoints: members.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    },
  ]);
}
