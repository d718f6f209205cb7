// The permissions in deploy/kubernetes/rbac.yaml on a real API server: it allows all requests of the agent with the token
// of the agent's account, and no others.

import ava from 'ava';
import type { ApiClient } from '../../agent/kubernetes/api/client.ts';
import type { ApiRequest } from '../../agent/kubernetes/api/kubernetes-api.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { agentClient, clientOf, deploy, kubeconfigOf, NAMESPACE } from '../support/kube/deploy.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { asNew, gatewayJson, ingressClassJson, routeJson } from '../support/values/gateways.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const MERGE = 'application/merge-patch+json';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const CLAIMS = '/apis/headgate.io/v1alpha1/addressclaims';
const POOLS = '/apis/headgate.io/v1alpha1/addresspools';
const PEERS = '/apis/headgate.io/v1alpha1/bgppeers';
const OWN_SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:headgate`;
const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const INGRESS_API = '/apis/networking.k8s.io/v1';
/** Whose status the agent writes. */
const OF_GATEWAYS = [
  'gateways',
  'listenersets',
  'httproutes',
  'grpcroutes',
  'tlsroutes',
  'tcproutes',
  'udproutes',
];
/** As in rbac.yaml. */
const DEFINITION_NAMES = ['gatewayclasses', ...OF_GATEWAYS, 'referencegrants', 'backendtlspolicies'].map(
  (plural) => `${plural}.gateway.networking.k8s.io`,
);
const SERVICE = '/api/v1/namespaces/default/services/kubernetes';
const watch = { watch: 'true', timeoutSeconds: '1', allowWatchBookmarks: 'true' };

type Call = readonly [
  method: ApiRequest['method'],
  path: string,
  more?: { readonly query?: Record<string, string>; readonly body?: object },
];

const allowed: readonly Call[] = [
  ['GET', '/api/v1/services'],
  ['GET', '/api/v1/services', { query: watch }],
  ['GET', '/api/v1/namespaces/default/services'],
  ['GET', SERVICE],
  ['PATCH', `${SERVICE}/status`, { body: { metadata: { finalizers: [] } } }],
  ['GET', '/apis/discovery.k8s.io/v1/endpointslices'],
  ['GET', '/apis/discovery.k8s.io/v1/endpointslices', { query: watch }],
  ['GET', '/api/v1/nodes'],
  ['GET', '/api/v1/nodes', { query: watch }],
  ['GET', POOLS],
  ['GET', POOLS, { query: watch }],
  ['PATCH', `${POOLS}/any/status`, { body: {} }],
  ['GET', PEERS],
  ['GET', PEERS, { query: watch }],
  ['PATCH', `${PEERS}/any/status`, { body: {} }],
  ['GET', OWN_SECRETS, { query: { fieldSelector: 'metadata.name=any' } }],
  ['GET', OWN_SECRETS, { query: { ...watch, fieldSelector: 'metadata.name=any' } }],
  ['GET', CLAIMS],
  ['GET', CLAIMS, { query: watch }],
  ['GET', `${CLAIMS}/any`],
  ['POST', CLAIMS, { body: claim() }],
  ['PUT', `${CLAIMS}/any`, { body: claim() }],
  ['DELETE', `${CLAIMS}/any`],
  ['POST', '/apis/events.k8s.io/v1/namespaces/default/events', { body: event() }],
  ['PATCH', '/apis/events.k8s.io/v1/namespaces/default/events/any', { body: {} }],
  ['POST', LEASES, { body: lease('headgate') }],
  ['GET', `${LEASES}/headgate`],
  ['PUT', `${LEASES}/headgate`, { body: lease('headgate') }],
  ['GET', `${GATEWAY_API}/gatewayclasses`],
  ['GET', `${GATEWAY_API}/gatewayclasses`, { query: watch }],
  ['PATCH', `${GATEWAY_API}/gatewayclasses/any/status`, { body: {} }],
  ...[...OF_GATEWAYS, 'backendtlspolicies'].flatMap((plural): Call[] => [
    ['GET', `${GATEWAY_API}/${plural}`],
    ['GET', `${GATEWAY_API}/${plural}`, { query: watch }],
    ['GET', `${GATEWAY_API}/namespaces/default/${plural}/any`],
    ['PATCH', `${GATEWAY_API}/namespaces/default/${plural}/any/status`, { body: {} }],
  ]),
  ['GET', `${GATEWAY_API}/referencegrants`],
  ['GET', `${GATEWAY_API}/referencegrants`, { query: watch }],
  ...DEFINITION_NAMES.map((name): Call => ['GET', `${DEFINITIONS}/${name}`]),
  ['GET', '/api/v1/namespaces'],
  ['GET', '/api/v1/namespaces', { query: watch }],
  ['GET', `${INGRESS_API}/ingressclasses`],
  ['GET', `${INGRESS_API}/ingressclasses`, { query: watch }],
  ['GET', `${INGRESS_API}/ingresses`],
  ['GET', `${INGRESS_API}/ingresses`, { query: watch }],
  ['GET', `${INGRESS_API}/namespaces/default/ingresses/any`],
  ['PATCH', `${INGRESS_API}/namespaces/default/ingresses/any/status`, { body: {} }],
];

const refused: readonly Call[] = [
  ['GET', '/api/v1/secrets'],
  ['GET', '/api/v1/namespaces/default/secrets/any'],
  ['GET', '/api/v1/namespaces/default/secrets'],
  ['GET', `${OWN_SECRETS}/any`],
  ['PATCH', `${OWN_SECRETS}/any`, { body: {} }],
  ['POST', OWN_SECRETS, { body: {} }],
  ['POST', PEERS, { body: {} }],
  ['PUT', `${PEERS}/any`, { body: {} }],
  ['PATCH', `${PEERS}/any`, { body: {} }],
  ['DELETE', `${PEERS}/any`],
  ['GET', '/api/v1/pods'],
  ['POST', '/api/v1/namespaces/default/pods', { body: {} }],
  ['GET', '/api/v1/configmaps'],
  ['GET', '/api/v1/namespaces/default'],
  ['PATCH', '/api/v1/namespaces/default', { body: {} }],
  ...OF_GATEWAYS.flatMap((plural): Call[] => [
    ['POST', `${GATEWAY_API}/namespaces/default/${plural}`, { body: {} }],
    ['PATCH', `${GATEWAY_API}/namespaces/default/${plural}/any`, { body: {} }],
    ['PUT', `${GATEWAY_API}/namespaces/default/${plural}/any/status`, { body: {} }],
    ['DELETE', `${GATEWAY_API}/namespaces/default/${plural}/any`],
  ]),
  ['PATCH', `${GATEWAY_API}/gatewayclasses/any`, { body: {} }],
  ['PATCH', `${GATEWAY_API}/namespaces/default/referencegrants/any`, { body: {} }],
  ['PATCH', `${INGRESS_API}/namespaces/default/ingresses/any`, { body: {} }],
  ['PATCH', `${INGRESS_API}/ingressclasses/any`, { body: {} }],
  ['GET', `${INGRESS_API}/networkpolicies`],
  ['GET', '/api/v1/endpoints'],
  ['GET', '/api/v1/nodes/any'],
  ['PATCH', '/api/v1/nodes/any', { body: {} }],
  ['PATCH', '/api/v1/nodes/any/status', { body: {} }],
  ['GET', '/api/v1/nodes/any/proxy/metrics'],
  ['POST', '/api/v1/namespaces/default/services', { body: {} }],
  ['PUT', SERVICE, { body: {} }],
  ['PATCH', SERVICE, { body: { spec: { externalIPs: ['192.0.2.1'] } } }],
  ['PUT', `${SERVICE}/status`, { body: {} }],
  ['DELETE', SERVICE],
  ['DELETE', '/api/v1/namespaces/default/services'],
  ['GET', `${SERVICE}/proxy/`],
  ['POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', { body: {} }],
  ['PATCH', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/any', { body: {} }],
  ['POST', POOLS, { body: {} }],
  ['PUT', `${POOLS}/any`, { body: {} }],
  ['PATCH', `${POOLS}/any`, { body: {} }],
  ['DELETE', `${POOLS}/any`],
  ['PATCH', `${CLAIMS}/any`, { body: {} }],
  ['PATCH', `${CLAIMS}/any/status`, { body: {} }],
  ['PUT', `${CLAIMS}/any/status`, { body: {} }],
  ['DELETE', CLAIMS],
  ['PATCH', `${CLAIMS}/any`, { body: {} }],
  ['PATCH', `${CLAIMS}/any/status`, { body: {} }],
  ['GET', '/apis/events.k8s.io/v1/events'],
  ['DELETE', '/apis/events.k8s.io/v1/namespaces/default/events/any'],
  ['POST', '/api/v1/namespaces/default/events', { body: {} }],
  ['GET', LEASES],
  ['GET', `${LEASES}/another`],
  ['PUT', `${LEASES}/another`, { body: lease('another') }],
  ['DELETE', `${LEASES}/headgate`],
  ['GET', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/headgate'],
  ['PUT', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/headgate', { body: lease('headgate') }],
  ['POST', '/apis/coordination.k8s.io/v1/namespaces/default/leases', { body: lease('headgate') }],
  ['POST', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/headgate/token`, { body: {} }],
  ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'],
  ['PATCH', '/apis/rbac.authorization.k8s.io/v1/clusterroles/headgate', { body: {} }],
  ['GET', DEFINITIONS],
  ['GET', `${DEFINITIONS}/addresspools.headgate.io`],
  ['PATCH', `${DEFINITIONS}/gateways.gateway.networking.k8s.io`, { body: {} }],
];

let kube: Kube;
let api: ApiClient;

test.before(async (t) => {
  kube = await startKube(t, { audit: true });
  await deploy(kube);
  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
  await kube.must('POST', `${INGRESS_API}/ingressclasses`, asNew(ingressClassJson()));
  api = await agentClient(kube);
});

test.after.always(async () => {
  api?.close();
  await kube?.stop();
});

// Conformance: RBAC
test('The API server allows every request of the agent', async (t) => {
  for (const call of allowed) {
    const { status, body } = call[2]?.query === undefined ? await ask(call) : await watched(call);
    t.false(status === 401 || status === 403, `${nameOf(call)}: ${JSON.stringify(body)}`);
  }
});

// Conformance: spec.externalTrafficPolicy
// Conformance: RBAC
test('The API server allows no other request', async (t) => {
  for (const call of refused) t.is((await ask(call)).status, 403, nameOf(call));
});

// Conformance: RBAC
test('The API server lists exactly these permissions', async (t) => {
  const inDefault = await rulesIn('default');
  t.deepEqual(
    inDefault,
    [
      'addressclaims.headgate.io create',
      'addressclaims.headgate.io delete',
      'addressclaims.headgate.io get',
      'addressclaims.headgate.io list',
      'addressclaims.headgate.io update',
      'addressclaims.headgate.io watch',
      'addresspools.headgate.io list',
      'addresspools.headgate.io watch',
      'addresspools/status.headgate.io patch',
      'bgppeers.headgate.io list',
      'bgppeers.headgate.io watch',
      'bgppeers/status.headgate.io patch',
      ...[...OF_GATEWAYS, 'backendtlspolicies', 'gatewayclasses'].flatMap((plural) => [
        `${plural}.gateway.networking.k8s.io get`,
        `${plural}.gateway.networking.k8s.io list`,
        `${plural}.gateway.networking.k8s.io watch`,
        `${plural}/status.gateway.networking.k8s.io patch`,
      ]),
      'referencegrants.gateway.networking.k8s.io list',
      'referencegrants.gateway.networking.k8s.io watch',
      'namespaces list',
      'namespaces watch',
      'ingressclasses.networking.k8s.io list',
      'ingressclasses.networking.k8s.io watch',
      'ingresses.networking.k8s.io get',
      'ingresses.networking.k8s.io list',
      'ingresses.networking.k8s.io watch',
      'ingresses/status.networking.k8s.io patch',
      ...DEFINITION_NAMES.map((name) => `customresourcedefinitions.apiextensions.k8s.io get ${name}`),
      'endpointslices.discovery.k8s.io list',
      'endpointslices.discovery.k8s.io watch',
      'events.events.k8s.io create',
      'events.events.k8s.io patch',
      'nodes list',
      'nodes watch',
      'services get',
      'services list',
      'services watch',
      'services/status patch',
    ].toSorted(),
  );
  const inOwn = await rulesIn(NAMESPACE);
  t.deepEqual(
    inOwn.filter((rule) => !inDefault.includes(rule)),
    [
      'leases.coordination.k8s.io create',
      'leases.coordination.k8s.io get headgate',
      'leases.coordination.k8s.io update headgate',
      'secrets list',
      'secrets watch',
    ],
  );
});

// Conformance: spec.loadBalancerIP
test('A patch of the status subresource never changes the spec', async (t) => {
  const services = '/api/v1/namespaces/default/services';
  await kube.must('POST', services, { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } });
  const body = { metadata: { finalizers: ['example.org/x'] }, spec: { externalIPs: ['192.0.2.1'] } };
  const { status } = await ask(['PATCH', `${services}/web/status`, { body }]);
  t.is(status, 200);
  const { metadata, spec } = await kube.must('GET', `${services}/web`);
  t.deepEqual(metadata.finalizers, ['example.org/x']);
  t.is(spec.externalIPs, undefined);
});

// Conformance: RBAC
test.serial(
  'A working agent writes all its objects with these permissions, and the API server refuses nothing',
  async (t) => {
    const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kubeconfig] });
    const path = '/api/v1/namespaces/default/services';
    const annotations = { 'headgate.io/load-balancer-ips': host.address(1) };
    const spec = { type: 'LoadBalancer', ports: [{ port: VIP_PORT }] };
    await kube.must('POST', path, { metadata: { name: 'worked', annotations }, spec });
    const addresses = [{ type: 'IPAddress', value: host.address(2) }];
    const listeners = [{ name: 'http', port: VIP_PORT, protocol: 'HTTP' }];
    const inDefault = `${GATEWAY_API}/namespaces/default`;
    await kube.must('POST', `${inDefault}/gateways`, asNew(gatewayJson('edge', { addresses, listeners })));
    await kube.must('POST', `${inDefault}/httproutes`, asNew(routeJson('api', [{ name: 'edge' }])));
    const agent = await host.start();
    const read = () => kube.api('GET', `${path}/worked`);
    await host.until(
      'its status is there',
      async () => (await read()).body.status.loadBalancer.ingress !== undefined,
    );
    const attached = async () => (await kube.must('GET', `${inDefault}/gateways/edge`)).status.listeners;
    await host.until('the Gateway has its status', async () => (await attached())?.[0].attachedRoutes === 1);
    await kube.must('DELETE', `${path}/worked`);
    await host.until('it is let go', async () => (await read()).status === 404);
    await agent.stop();
    const own = (await kube.writes()).filter(({ user }) => user === ACCOUNT);
    t.deepEqual(
      [...new Set(own.map(({ verb, resource, status }) => `${verb} ${resource} ${status}`))].sort(),
      [
        'create events 201',
        'create leases 201',
        'patch gatewayclasses/status 200',
        'patch gateways/status 200',
        'patch httproutes/status 200',
        'patch services/status 200',
        'update leases 200',
      ],
    );
    t.false(agent.log.some(({ code }) => code === 'API_REFUSED'));
  },
);

test.serial('`check` names each missing permission, and nothing if none is missing', async (t) => {
  const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kubeconfig, '--listen', '127.0.0.1:0'] });
  const check = async () => (await host.command('check')).stdout.match(/^.* API server: .*$/m)?.[0] ?? '';
  t.regex(await check(), /^ok /);
  const roles = [
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/headgate',
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/roles/headgate`,
  ];
  const before = await Promise.all(roles.map((path) => kube.must('GET', path)));
  const narrowed = (rules: readonly Rule[]) =>
    rules.map((rule) => ({ ...rule, verbs: rule.verbs.filter((verb) => verb === 'list') }));
  const wanted = before
    .flatMap(({ rules }: { rules: readonly Rule[] }) => rules)
    .flatMap(({ resources, verbs }) =>
      verbs.filter((verb) => verb !== 'list').map((verb) => `${verb} ${resources[0]}`),
    );
  t.true(wanted.length > 15);
  // A rule must have a verb.
  const some = (rules: readonly Rule[]) => narrowed(rules).filter(({ verbs }) => verbs.length > 0);
  for (const [index, path] of roles.entries())
    await kube.must('PATCH', path, { rules: some(before[index].rules) });
  await until('the rights are gone', async () => (await ask(['GET', `${LEASES}/headgate`])).status === 403);
  const said = await check();
  for (const [index, path] of roles.entries()) await kube.must('PATCH', path, { rules: before[index].rules });
  await until('they are back', async () => (await ask(['GET', `${LEASES}/headgate`])).status !== 403);
  t.regex(said, /^BAD .*: apply deploy\/kubernetes\/rbac\.yaml$/);
  for (const right of wanted) t.true(said.includes(right), right);
});

test.serial('An agent without permission to write reports that in `status`', async (t) => {
  const rolePath = '/apis/rbac.authorization.k8s.io/v1/clusterroles/headgate';
  const { rules } = await kube.must('GET', rolePath);
  const reading = (rules as readonly Rule[])
    .map((rule) => ({ ...rule, verbs: rule.verbs.filter((verb) => ['get', 'list', 'watch'].includes(verb)) }))
    .filter(({ verbs }) => verbs.length > 0);
  await kube.must('PATCH', rolePath, { rules: reading });
  const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kubeconfig] });
  const path = '/api/v1/namespaces/default/services';
  const annotations = { 'headgate.io/load-balancer-ips': host.address(1), 'headgate.io/unknown': '' };
  const spec = { type: 'LoadBalancer', ports: [{ port: VIP_PORT }] };
  await kube.must('POST', path, { metadata: { name: 'untold', annotations }, spec });
  await kube.must('POST', POOLS, {
    apiVersion: 'headgate.io/v1alpha1',
    kind: 'AddressPool',
    metadata: { name: 'untold' },
    spec: { blocks: [host.address(1)] },
  });
  const agent = await host.start();
  await host.until('it says so', async () => {
    const { stdout } = await host.command('status');
    return [
      /Writer: +this agent\n/,
      /Cannot write the status of a Service: .* 403 /,
      /Cannot send an Event: .* 403 /,
      /The status of pools cannot be written: .* 403 /,
    ].every((said) => said.test(stdout));
  });
  t.pass();
  await agent.stop();
  await kube.must('PATCH', rolePath, { rules });
  await kube.must('DELETE', `${path}/untold`);
  await kube.must('DELETE', `${POOLS}/untold`);
});

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

test.serial(
  'An agent without permission for pools and claims serves everything else, reports it, and continues when it has it',
  async (t) => {
    const rolePath = '/apis/rbac.authorization.k8s.io/v1/clusterroles/headgate';
    const role = await kube.must('GET', rolePath);
    const rules = role.rules.filter(
      ({ apiGroups }: { apiGroups: readonly string[] }) => !apiGroups.includes('headgate.io'),
    );
    t.true(rules.length < role.rules.length);
    await kube.must('PUT', rolePath, { ...role, rules });
    const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
    await until('the right is gone', async () => (await ask(['GET', POOLS])).status === 403);

    const host = await TestHost.create(t, { flags: ['--kubeconfig', kubeconfig] });
    const path = '/api/v1/namespaces/default/services';
    const annotations = { 'headgate.io/load-balancer-ips': host.address(1) };
    const spec = { type: 'LoadBalancer', ports: [{ port: VIP_PORT }] };
    await kube.must('POST', path, { metadata: { name: 'named', annotations }, spec });
    const agent = await host.start();
    const reasons = async () => (await host.status()).problems.map(({ reason }) => reason);
    await host.until('its status is there', async () => {
      const { body } = await kube.api('GET', `${path}/named`);
      return body.status.loadBalancer.ingress !== undefined;
    });
    t.true((await reasons()).includes('NotPermitted'));

    const { body: narrowed } = await kube.api('GET', rolePath);
    await kube.must('PUT', rolePath, { ...narrowed, rules: role.rules });
    await host.until('nothing is missing', async () => !(await reasons()).includes('NotPermitted'), 60_000);
    await kube.must('DELETE', `${path}/named`);
    await agent.stop();
  },
);

function ask([method, path, { query, body } = {}]: Call) {
  return api.request({
    method,
    path,
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
    ...(method === 'PATCH' ? { contentType: MERGE } : {}),
  });
}

/** Reads only the beginning of a watch, which has no end. */
async function watched([method, path, { query = {} } = {}]: Call) {
  const controller = new AbortController();
  const { status } = await api.open({ method, path, query, signal: controller.signal });
  controller.abort();
  return { status, body: '' };
}

function nameOf([method, path, { query } = {}]: Call): string {
  return `${method} ${path}${query === undefined ? '' : ' as a watch'}`;
}

/** `resource.group verb name`, without the permissions of every account. */
async function rulesIn(namespace: string): Promise<readonly string[]> {
  const stranger = await clientOf(kube, 'default', 'stranger');
  try {
    const everybodys = await rulesOf(stranger, namespace);
    return (await rulesOf(api, namespace)).filter((rule) => !everybodys.includes(rule));
  } finally {
    stranger.close();
  }
}

async function rulesOf(client: ApiClient, namespace: string): Promise<readonly string[]> {
  const { status, body } = await client.request({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    body: { spec: { namespace } },
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  const { resourceRules } = (body as { status: { resourceRules: readonly Rule[] } }).status;
  return resourceRules.flatMap(textsOf).sort();
}

function textsOf({ apiGroups, resources, verbs, resourceNames = [''] }: Rule): readonly string[] {
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        resourceNames.map((name) => `${[resource, group].filter(Boolean).join('.')} ${verb} ${name}`.trim()),
      ),
    ),
  );
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

function lease(name: string): object {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec: {} };
}

function claim(): object {
  return { apiVersion: 'headgate.io/v1alpha1', kind: 'AddressClaim', metadata: { name: 'any' }, spec: {} };
}

function event(): object {
  return { apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'any' } };
}
