// The API servers behind a load balancer of the agent that watches them: examples/control-plane on real API servers.
// Three masters as in the example, of which the third one is never there.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { serviceJson, servicePath, sliceJson, slicePath } from '../support/kube/kube-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const example = fileURLToPath(new URL('../../examples/control-plane/', import.meta.url));
const KEY = 'kube-system/control-plane';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
});
test.after.always(() => kube?.stop());

// Conformance: the API server behind a VIP of this host
test.serial('The agent serves a control plane before it exists, and then its Services', async (t) => {
  await kube.killApiServer();
  const { host, vip, second } = await balanced(t);
  const agent = await host.start();
  t.like(await host.why(KEY), { verdict: 'served', problems: [] });
  const [worker, reloads] = [await host.worker(), await host.reloads()];

  await kube.startApiServer();
  await kube.startSecondApiServer(second);
  await host.until('the VIP answers', async () => (await kube.once(vip, 'GET', '/readyz')).status === 200);
  await host.until(
    'the agent has listed through its own VIP',
    async () => agent.hasLogged('Listed the objects of the API server'),
    45_000,
  );
  t.deepEqual([await host.worker(), await host.reloads()], [worker, reloads]);
  await post(
    vip,
    servicePath('default'),
    serviceJson('web', { 'headgate.io/load-balancer-ips': host.address(2) }),
  );
  await post(vip, slicePath('default'), sliceJson('web', ['10.8.0.1']));
  await host.until('the Service is served', async () => (await host.why('default/web')).verdict === 'served');
  await post(vip, servicePath('default'), thief(host.address(1), Number(new URL(vip).port)));
  await host.until('a thief is found out', async () => {
    const { problems } = await host.why('default/thief');
    return problems.some(({ reason }) => reason === 'AddressInUse');
  });
  await host.until('HAProxy knows who is there', async () => {
    const up = await Promise.all(['127.0.0.1', second, host.address(23)].map((each) => isUp(host, each)));
    return up.join() === 'true,true,false';
  });
  const after = [await host.worker(), await host.reloads()];

  // Each master dies once; requests follow each other meanwhile, each on a connection of its own.
  // `dying` is odd from before a master dies until it is known to be dead.
  let [requests, dying, isOver] = [0, 0, false];
  const failures: string[] = [];
  t.teardown(() => {
    isOver = true;
  });
  const asking = (async () => {
    while (!isOver) {
      const method = requests++ % 2 === 0 ? 'GET' : 'POST';
      const [path, body] =
        method === 'GET'
          ? ['/api/v1/namespaces/default', undefined]
          : ['/api/v1/namespaces/default/configmaps', { metadata: { generateName: 'c-' } }];
      const death = dying;
      const said = await kube.once(vip, method, path, body).then(({ status }) => String(status), String);
      // What was under way to a master when it died is lost, and only that.
      const isUnderWay = death !== dying || death % 2 === 1;
      if (!/^20[01]$/.test(said) && !isUnderWay) failures.push(`${method}: ${said}`);
    }
  })();
  for (const [number, kill] of [() => kube.killApiServer(), () => kube.killSecondApiServer()].entries()) {
    const asked = requests;
    dying++;
    await kill();
    dying++;
    await host.until('requests continue', async () => requests > asked + 20);
    const address = `10.8.0.${number + 2}`;
    const changed = await kube.once(vip, 'PUT', slicePath('default', 'web-1'), sliceJson('web', [address]));
    t.is(changed.status, 200);
    await host.until(
      'the watch continues',
      async () => (await ready(host)).join() === `${address}:8080`,
      30_000,
    );
    if (number === 0) {
      await host.until('the first master is down', async () => !(await isUp(host, '127.0.0.1')));
      await kube.startApiServer();
      await host.until('the first master is up', () => isUp(host, '127.0.0.1'));
    }
  }
  isOver = true;
  await asking;
  t.deepEqual(failures, []);
  t.true(requests > 40);
  t.deepEqual([await host.worker(), await host.reloads()], after);
  t.false(agent.hasLogged('A list lacks most objects'));
});

// Conformance: the API server behind a VIP of this host
test.serial('An agent with manifests only reaches an API server behind one of their VIPs', async (t) => {
  const { host, flags, writeControlPlane } = await balanced(t, { later: true });
  await host.serve({ name: 'old', address: host.address(3), members: [host.address(11)] });
  const first = await host.start();
  await host.until('the folder is served', async () => (await host.why('default/old')).verdict === 'served');
  await first.stop();
  // HAProxy runs without the VIP, there is no snapshot, and the API server is reached through the VIP alone.
  await writeControlPlane();
  const second = await host.start(flags);
  await host.until('the VIP is served', async () => (await host.why(KEY)).verdict === 'served');
  await host.until(
    'the API is reached',
    async () => second.hasLogged('Listed the objects of the API server'),
    45_000,
  );
  t.is((await host.why('default/old')).verdict, 'served');
});

/** The example with addresses of the host's: the first master is the API server at 127.0.0.1. */
async function balanced(t: ExecutionContext<unknown>, { later = false } = {}) {
  const port = new URL(kube.url).port;
  const kubeconfig = join(kube.directory, 'through-the-vip');
  const flags = ['--kubeconfig', kubeconfig];
  const host = await TestHost.create(t, later ? {} : { flags });
  t.timeout(180_000);
  const vip = `https://${host.address(1)}:${port}`;
  const second = host.address(22);
  await kube.writeKubeconfig(kubeconfig, { server: vip, token: kube.adminToken });
  const manifest = await readFile(join(example, 'manifests/control-plane.yaml'), 'utf8');
  const own = manifest
    .replaceAll('6443', port)
    // A busy machine makes an API server slow, which is not what dies here.
    .replace('health-monitor-timeout: 1s', 'health-monitor-timeout: 2s')
    .replace('health-monitor-fall: "2"', 'health-monitor-fall: "3"')
    .replaceAll('192.0.2.10', host.address(1))
    .replaceAll('192.0.2.11', '127.0.0.1')
    .replaceAll('192.0.2.12', second)
    .replaceAll('192.0.2.13', host.address(23));
  const writeControlPlane = () => host.write('control-plane.yaml', own);
  if (!later) await writeControlPlane();
  return { host, vip, second, flags, writeControlPlane };
}

async function post(server: string, path: string, body: object): Promise<void> {
  const { status } = await kube.once(server, 'POST', path, body);
  if (status !== 201) throw new Error(`POST ${path}: ${status}`);
}

/** Wants the place of the API servers. */
function thief(address: string, port: number): object {
  return {
    metadata: { name: 'thief', annotations: { 'headgate.io/load-balancer-ips': address } },
    spec: { type: 'LoadBalancer', ports: [{ port, protocol: 'TCP' }] },
  };
}

async function ready(host: TestHost): Promise<readonly string[]> {
  return (await host.servers())
    .filter(({ backend, state }) => backend.startsWith('default:web:') && state === 'ready')
    .map(({ server }) => server);
}

async function isUp(host: TestHost, address: string): Promise<boolean> {
  // The second backend, for when all are down, has no checks.
  return (await host.servers()).some(
    ({ backend, operational, ...server }) =>
      !backend.endsWith(':all-down') && server.address === address && operational === 'up',
  );
}
