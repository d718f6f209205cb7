// `headgate release --namespace` and `--all` with a real API server that answers or is gone: what is withdrawn, what stays, and
// that nothing leaks.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import type { ReleaseOutcome } from '../../agent/release/release-order.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { createNodeService } from '../support/kube/node-service.ts';
import { ask, Load } from '../support/traffic/traffic.ts';
import { asNew, gatewayJson, ingressClassJson, ingressJson, routeJson } from '../support/values/gateways.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const POOLS = `/apis/${apiVersion}/addresspools`;
const CLAIMS = `/apis/${apiVersion}/addressclaims`;
const GATEWAYS = '/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways';
const ROUTES = '/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes';
const INGRESSES = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';

let kube: Kube;
test.beforeEach(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
  await deployGatewayApi(kube);
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
});
test.afterEach.always(() => kube?.stop());

interface Call {
  readonly action: string;
  readonly address: string;
  readonly service: string;
}

test.serial(
  'A released namespace keeps nothing, others are served on; what the provisioner refuses is left, and done the next time',
  async (t) => {
    const world = await World.create(t);
    const { host, agent } = world;
    await createNodeService(t, kube, host, 'kept');
    await world.serve();
    await host.until('the kept one is served', () => host.answers());
    const load = new Load(t, host.place());
    const others = await claims();

    const unasked = await host.command('release', ['--namespace', 'shop']);
    t.is(unasked.status, 2);
    t.regex(unasked.stderr, /There is no terminal to ask at: add --yes/);
    const dry = await host.command('release', ['--namespace', 'shop', '--dry-run']);
    t.regex(dry.stdout, /Would release 3 load balancers with 3 addresses/);
    t.is((await claims()).length, others.length);

    const refused = world.addressOf('shop/two');
    await writeFile(world.at('fails'), await refused);
    const first = await world.release(['--namespace', 'shop']);
    t.is(first.status, 1);
    t.is(first.outcome.left.length, 1, first.outcome.left.join('\n'));
    t.regex(
      first.outcome.left[0] ?? '',
      new RegExp(`^${await refused} of Service shop/two: the provisioner failed with status 1: "no route"$`),
    );
    for (const object of ['Service shop/one', 'Service shop/two', 'Gateway shop/edge', 'HTTPRoute shop/api'])
      t.true(first.outcome.released.includes(object), `${object} of ${first.outcome.released.join('\n')}`);
    await nothingIn(t, 'shop');
    t.deepEqual(
      await claims(),
      others.filter(({ service }) => !/^(gateway:)?shop\//.test(service)),
    );
    await t.throwsAsync(ask({ address: world.first, port: VIP_PORT }));

    await rm(world.at('fails'));
    const second = await world.release(['--namespace', 'shop']);
    t.deepEqual(second, {
      status: 0,
      outcome: { ok: true, released: [`${await refused} at the provisioner`], left: [], notes: [] },
    });
    const third = await world.release(['--namespace', 'shop']);
    t.deepEqual(third, { status: 0, outcome: { ok: true, released: [], left: [], notes: [] } });
    t.regex(
      (await host.command('release', ['--namespace', 'shop', '--yes'])).stdout,
      /^Nothing is left to release\n$/,
    );
    const releases = (await world.calls()).filter(({ action }) => action === 'release');
    t.is(new Set(releases.map(({ address }) => address)).size, 3);

    // The objects still stand: the agent takes none of it again, also after a restart.
    const count = (await world.calls()).length;
    t.regex((await host.command('why', ['shop/one'])).stdout, /An operator has released it/);
    t.regex((await host.command('status')).stdout, /Released: +namespaces shop, since .*--undo/);
    await agent.stop();
    const again = await world.start();
    await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
    await kube.must('PATCH', servicePath('shop', 'one'), { metadata: { labels: { a: 'b' } } }, MERGE);
    await host.until('it serves the others', () => host.answers());
    await nothingIn(t, 'shop');
    t.deepEqual(
      (await world.calls()).slice(count).filter(({ service }) => /shop\//.test(service)),
      [],
    );

    const undone = await world.release(['--undo']);
    t.is(undone.status, 0);
    await host.until('it is served again', async () => (await published('one')).length === 1);
    await host.until('the Gateway, too', async () => (await read(GATEWAYS, 'edge')).addresses?.length === 1);
    const { failures, requests } = await load.stop();
    t.deepEqual(failures, []);
    t.log(`${requests} requests to the other namespace, none failed`);
    await again.stop();
  },
);

test.serial('At the end of a cluster nothing is left in it, nor on the host', async (t) => {
  const world = await World.create(t);
  const { host } = world;
  await createNodeService(t, kube, host, 'kept');
  await world.serve();
  await host.until('the kept one is served', () => host.answers());
  const { status, outcome } = await world.release(['--all']);
  t.deepEqual(outcome.left, []);
  t.is(status, 0);
  await nothingIn(t, 'shop');
  await nothingIn(t, 'default');
  t.deepEqual(await claims(), []);
  t.deepEqual(
    (await kube.must('GET', '/apis/gateway.networking.k8s.io/v1/gatewayclasses/edge')).status.conditions ??
      [],
    [],
  );
  await t.throwsAsync(ask({ address: host.address(1), port: VIP_PORT }));
  const again = await world.release(['--all']);
  t.deepEqual(again, { status: 0, outcome: { ok: true, released: [], left: [], notes: [] } });
  await kube.must('DELETE', '/api/v1/namespaces/shop');
  for (const name of ['one', 'two']) {
    await kube.must('DELETE', servicePath('shop', name));
    t.is((await kube.api('GET', servicePath('shop', name))).status, 404, 'kubectl delete returns');
  }
});

for (const runs of [true, false])
  test.serial(
    `A cluster that is gone is released from what is on disk ${runs ? 'by the agent' : 'if no agent runs'}`,
    async (t) => {
      const world = await World.create(t, ['--cluster-lost-after', '1s']);
      const { host, agent } = world;
      await createNodeService(t, kube, host, 'kept');
      await world.serve();
      await host.until('the kept one is served', () => host.answers());
      await host.until('the snapshot has it', async () =>
        (await host.stateFile('api/objects.json')).includes('"edge"'),
      );
      await kube.killApiServer();
      t.teardown(() => kube.startApiServer());
      await host.until(
        'it is lost',
        async () => (await agent.metrics())('headgate_cluster_lost') === 1,
        60_000,
      );
      t.true(await host.answers(), 'It is never released automatically');
      await host.until('it leads no more', async () => !(await host.status()).addresses.leading, 60_000);
      if (!runs) await agent.kill();
      await writeFile(world.at('fails'), world.first);
      const first = await world.release(['--all']);
      t.is(first.status, 1);
      t.is(first.outcome.left.length, 1, first.outcome.left.join('\n'));
      t.regex(first.outcome.notes.join(), /its API does not answer/);
      await t.throwsAsync(ask({ address: host.address(1), port: VIP_PORT }));
      await rm(world.at('fails'));
      const second = await world.release(['--all']);
      t.deepEqual(second.outcome.released, [`${world.first} at the provisioner`]);
      t.is(second.status, 0);
      const third = await world.release(['--all']);
      t.deepEqual([third.status, third.outcome.released, third.outcome.left], [0, [], []]);
      const releases = (await world.calls()).filter(({ action }) => action === 'release');
      t.is(new Set(releases.map(({ address }) => address)).size, 5);
      if (runs) t.is((await agent.metrics())('headgate_cluster_lost'), 0);
      else await t.throwsAsync(host.status(), undefined, 'The agent that was started for it has ended');
    },
  );

/** A host with a provisioner that fails for one address, and three owners of addresses in the namespace shop. */
class World {
  readonly host: TestHost;
  agent: RunningAgent = undefined as never;

  private constructor(host: TestHost) {
    this.host = host;
  }

  static async create(t: ExecutionContext, more: readonly string[] = []): Promise<World> {
    const flags: string[] = ['--kubeconfig', kube.kubeconfig, ...more];
    const host = await TestHost.create(t, { flags });
    const world = new World(host);
    const script = `#!/bin/sh
read -r told
echo "$told" >>${world.at('calls')}
case "$told" in
  *'"action":"release","address":"'"$(cat ${world.at('fails')} 2>/dev/null || echo none)"'"'*) echo 'no route' >&2; exit 1 ;;
esac
`;
    await writeFile(world.at('program'), script, { mode: 0o755 });
    flags.push('--provisioner', world.at('program'));
    t.teardown(async () => {
      if (!world.agent.hasExited) await world.agent.stop();
    });
    await world.start();
    await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
    return world;
  }

  async start(): Promise<RunningAgent> {
    this.agent = await this.host.start();
    return this.agent;
  }

  /** The first address of the pool. */
  get first(): string {
    return this.host.address(100);
  }

  at(name: string): string {
    return join(this.host.directory, name);
  }

  async serve(): Promise<void> {
    const { host } = this;
    await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
    await kube.must('POST', '/apis/networking.k8s.io/v1/ingressclasses', asNew(ingressClassJson()));
    for (const [name, spec] of [
      ['all', { blocks: [`${this.first}-${host.address(110)}`] }],
      ['named', { blocks: [host.address(1)], auto: false }],
    ] as const)
      await kube.must('POST', POOLS, { apiVersion, kind: 'AddressPool', metadata: { name }, spec });
    for (const name of ['one', 'two']) {
      await kube.must('POST', servicePath('shop'), {
        metadata: { name },
        spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }] },
      });
      await host.until(`${name} has an address`, async () => (await published(name)).length === 1);
    }
    const listeners = [{ name: 'http', port: VIP_PORT, protocol: 'HTTP' }];
    await kube.must('POST', GATEWAYS, inShop(gatewayJson('edge', { listeners })));
    await kube.must('POST', ROUTES, inShop(routeJson('api', [{ name: 'edge' }])));
    await kube.must('POST', INGRESSES, inShop(ingressJson()));
    await host.until(
      'the Gateway has one',
      async () => (await read(GATEWAYS, 'edge')).addresses?.length === 1,
    );
    await host.until('the route has a parent', async () => (await read(ROUTES, 'api')).parents?.length === 1);
    await host.until('the Ingress has one', async () => (await read(INGRESSES, 'web')).loadBalancer.ingress);
    await host.until('the provisioner knows all', async () => (await this.calls()).length === 5);
  }

  async addressOf(service: string): Promise<string> {
    return (await this.host.why(service)).addresses[0] ?? '';
  }

  async release(
    args: readonly string[],
  ): Promise<{ readonly status: number | null; readonly outcome: ReleaseOutcome }> {
    const { status, stdout, stderr } = await this.host.command('release', [...args, '--yes', '--json']);
    if (stdout === '') throw new Error(stderr);
    return { status, outcome: JSON.parse(stdout) as ReleaseOutcome };
  }

  async calls(): Promise<readonly Call[]> {
    const text = await readFile(this.at('calls'), 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Call);
  }
}

const MERGE = 'application/merge-patch+json';

function inShop(json: unknown): object {
  const { metadata, ...rest } = asNew(json as never) as { readonly metadata: object };
  return { ...rest, metadata: { ...metadata, namespace: 'shop' } };
}

async function claims(): Promise<readonly { readonly service: string }[]> {
  const { items } = await kube.must('GET', CLAIMS);
  return items.map(({ spec }: { spec: { service: string; address: string } }) => ({
    service: spec.service,
    address: spec.address,
  }));
}

async function published(name: string): Promise<readonly string[]> {
  const { status } = await kube.must('GET', servicePath('shop', name));
  return (status.loadBalancer.ingress ?? []).map(({ ip }: { ip: string }) => ip);
}

const read = async (path: string, name: string) => (await kube.must('GET', `${path}/${name}`)).status;

/** No finalizer, address or condition of an agent. */
async function nothingIn(t: ExecutionContext, namespace: string): Promise<void> {
  for (const { metadata, status } of (await kube.must('GET', servicePath(namespace))).items) {
    if (metadata.name === 'kubernetes') continue;
    t.deepEqual(metadata.finalizers ?? [], [], metadata.name);
    t.deepEqual(status, { loadBalancer: {} }, metadata.name);
  }
  if (namespace !== 'shop') return;
  const gateway = await read(GATEWAYS, 'edge');
  t.deepEqual([gateway.addresses ?? [], gateway.conditions ?? []], [[], []]);
  t.deepEqual((await read(ROUTES, 'api')).parents, []);
  t.deepEqual((await read(INGRESSES, 'web')).loadBalancer, {});
}
