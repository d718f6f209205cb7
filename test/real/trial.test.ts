// A trial of Headgate in a cluster that has a load balancer already, with a real API server: it writes nothing to the
// Services of the other controller, and one command takes out what it has written to its own.

import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { asNew, gatewayJson, ingressClassJson, ingressJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const MERGE = 'application/merge-patch+json';
const POOLS = `/apis/${apiVersion}/addresspools`;
const GATEWAYS = '/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways';
const ROUTES = '/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes';
const INGRESSES = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';
const THEIRS = {
  type: 'example.org/Announced',
  status: 'True',
  reason: 'Announced',
  message: 'By the other',
  lastTransitionTime: '2026-01-31T12:00:00Z',
};

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true, audit: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
});
test.after.always(() => kube?.stop());

test.serial(
  'A Service of another controller is not written, and an address of a pool makes it served',
  async (t) => {
    // As MetalLB leaves it; that of a cloud has a name only, and asks for the address that it once had.
    await create('metallb', { 'metallb.io/loadBalancerIPs': '192.0.2.77' });
    await given('metallb', [{ ip: '192.0.2.77' }]);
    await create('cloud', {}, { loadBalancerIP: '192.0.2.78' });
    await given('cloud', [{ hostname: 'lb.example.org' }]);
    await create('asks', { 'headgate.io/weight': '10' });
    const before = [await read('metallb'), await read('cloud')];

    const { host } = await started(t);
    await until('a Service without an address is told so', async () => (await marker('asks')) !== undefined);
    const check = await host.command('check');
    t.regex(check.stdout, /Services of another controller: 2, such as default\/cloud: each is left alone/);
    // The other controller gives it an address after Headgate has written that it has none.
    await create('slow', {});
    await until('it is told so', async () => (await marker('slow')) !== undefined);
    await given('slow', [{ ip: '192.0.2.79' }]);
    await until('nothing of Headgate is left', async () => {
      const { metadata, status } = await read('slow');
      const types = status.conditions.map(({ type }: { type: string }) => type);
      return metadata.finalizers === undefined && types.join() === THEIRS.type;
    });
    t.deepEqual((await read('slow')).status.loadBalancer.ingress, [{ ip: '192.0.2.79', ipMode: 'VIP' }]);

    const first = host.address(100);
    await kube.must('POST', POOLS, pool('trial', { blocks: [`${first}/31`] }));
    await create('mine', {});
    await until('its own is served', async () => (await published('mine')).length === 1);
    t.deepEqual([await read('metallb'), await read('cloud')], before);
    t.regex(
      (await host.command('why', ['default/metallb'])).stdout,
      /Another controller has given it an address: .*192\.0\.2\.77/,
    );

    // Its address moves over with the pool that has it.
    await kube.must('POST', POOLS, pool('moved', { blocks: ['192.0.2.77'], auto: false }));
    await until('the address is adopted', async () => (await marker('metallb'))?.status === 'True');
    t.deepEqual(await published('metallb'), ['192.0.2.77']);
    t.deepEqual(await read('cloud'), before[1]);
  },
);

test.serial('headgate release takes out what agents have written, and nothing else', async (t) => {
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
  await kube.must('POST', '/apis/networking.k8s.io/v1/ingressclasses', asNew(ingressClassJson()));
  const port = await freePort('::1');
  await create('foreign', {});
  await given('foreign', [{ ip: '192.0.2.80' }]);
  const { host, agent } = await started(t);
  await kube.must('POST', POOLS, pool('release', { blocks: [`${host.address(64)}/27`] }));
  await create('left', {});
  await kube.must(
    'PATCH',
    servicePath('default', 'foreign'),
    { metadata: { finalizers: [FINALIZER] } },
    MERGE,
  );
  const listeners = [{ name: 'http', port, protocol: 'HTTP' }];
  await kube.must('POST', GATEWAYS, asNew(gatewayJson('edge', { listeners })));
  await kube.must('POST', ROUTES, asNew(routeJson('api', [{ name: 'edge' }])));
  await kube.must('POST', INGRESSES, asNew(ingressJson()));
  await until('the Service is served', async () => (await published('left')).length === 1);
  await until(
    'the Gateway has an address',
    async () => (await status(GATEWAYS, 'edge')).addresses?.length === 1,
  );
  await until('the route has a parent', async () => (await status(ROUTES, 'api')).parents?.length === 1);
  await until(
    'the Ingress has an address',
    async () => (await status(INGRESSES, 'web')).loadBalancer.ingress,
  );
  const { status: ofAnother } = await read('foreign');
  await kube.must(
    'PATCH',
    `${servicePath('default', 'left')}/status`,
    { status: { conditions: [...(await read('left')).status.conditions, THEIRS] } },
    MERGE,
  );

  const refused = await host.command('release');
  t.is(refused.status, 1);
  t.regex(refused.stderr, /writes to this cluster: stop it/);
  await agent.kill();
  const would = await host.command('release', ['--dry-run']);
  t.regex(would.stdout, /Would release Service default\/left\n/);
  t.true((await read('left')).metadata.finalizers.includes(FINALIZER), 'A dry run writes nothing');
  await until(
    'it is released',
    async () => {
      const { status: exit, stdout } = await host.command('release');
      if (exit === 0)
        for (const name of [
          'Service default/left',
          'Gateway default/edge',
          'HTTPRoute default/api',
          'Ingress default/web',
          'GatewayClass edge',
        ])
          t.true(stdout.includes(`Released ${name}\n`), name);
      return exit === 0;
    },
    { seconds: 60 },
  );

  t.deepEqual((await read('left')).status, { loadBalancer: {}, conditions: [THEIRS] });
  t.deepEqual((await read('foreign')).status, ofAnother);
  t.deepEqual(
    (await read('foreign')).metadata.finalizers,
    [FINALIZER],
    'Another load balancer has the same finalizer',
  );
  t.deepEqual((await status(GATEWAYS, 'edge')).addresses ?? [], []);
  t.deepEqual((await status(GATEWAYS, 'edge')).conditions ?? [], []);
  t.deepEqual((await status(ROUTES, 'api')).parents, []);
  t.deepEqual((await status(INGRESSES, 'web')).loadBalancer, {});
  await kube.must('DELETE', servicePath('default', 'left'));
  t.is((await kube.api('GET', servicePath('default', 'left'))).status, 404, 'kubectl delete returns');
  t.regex((await host.command('release')).stdout, /^Released 0 objects\n$/);
});

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

async function started(
  t: ExecutionContext,
): Promise<{ readonly host: TestHost; readonly agent: RunningAgent }> {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const agent = await host.start();
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  return { host, agent };
}

const pool = (name: string, spec: object) => ({ apiVersion, kind: 'AddressPool', metadata: { name }, spec });

async function create(name: string, annotations: object, spec: object = {}): Promise<void> {
  const ports = [{ name: 'http', port: 8080, protocol: 'TCP' }];
  await kube.must('POST', servicePath('default'), {
    metadata: { name, annotations },
    spec: { type: 'LoadBalancer', ports, ...spec },
  });
}

/** What the other controller writes. */
async function given(name: string, ingress: readonly { ip?: string; hostname?: string }[]): Promise<void> {
  const shown = ingress.map((each) => (each.ip === undefined ? each : { ipMode: 'VIP', ...each }));
  const { conditions = [] } = (await read(name)).status;
  const body = { status: { loadBalancer: { ingress: shown }, conditions: [...conditions, THEIRS] } };
  await kube.must('PATCH', `${servicePath('default', name)}/status`, body, MERGE);
}

const read = (name: string) => kube.must('GET', servicePath('default', name));

const status = async (path: string, name: string) => (await kube.must('GET', `${path}/${name}`)).status;

async function published(name: string): Promise<readonly string[]> {
  const { status: now } = await read(name);
  return (now.loadBalancer.ingress ?? []).map(({ ip }: { ip: string }) => ip);
}

async function marker(name: string): Promise<{ readonly status: string } | undefined> {
  const { status: now } = await read(name);
  const conditions: { type: string; status: string }[] = now.conditions ?? [];
  return conditions.find(({ type }) => type === 'headgate.io/IPAllocated');
}
