// The API server is gone for a while: traffic does not notice, whatever happens to the agent and its host meanwhile, and
// nothing is done over when it is back. SOAK_MINUTES makes it longer (`make soak`).

import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, signal, TestHost } from '../support/host/agent.ts';
import { removeFolder } from '../support/host/remove-folder.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { each, serviceJson, servicePath, sliceJson, slicePath } from '../support/kube/kube-objects.ts';
import { createNodeService, nodePath } from '../support/kube/node-service.ts';
import { Load } from '../support/traffic/traffic.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const OTHERS = 9;
/** Requests that are answered in each state of things; one client makes somewhat less than 200 a second. */
const { SOAK_MINUTES } = process.env;
const MANY = SOAK_MINUTES === undefined ? 100 : 200 * 60 * Number(SOAK_MINUTES);

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
});
test.after.always(() => kube?.stop());

for (const how of ['SIGTERM', 'SIGKILL'] as const) {
  // Conformance: an API server that is away
  test.serial(`Traffic continues without an API server, over a restart after ${how}`, async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    t.timeout(120_000 + MANY * 30);
    await createNodeService(t, kube, host, 'shop');
    await each(OTHERS, async (index) => {
      const address = { 'headgate.io/load-balancer-ips': host.address(20 + index) };
      await kube.must('POST', servicePath('default'), serviceJson(`other-${index}`, address));
      await kube.must('POST', slicePath('default'), sliceJson(`other-${index}`, [`10.7.0.${index + 1}`]));
    });
    t.teardown(() =>
      each(OTHERS, async (index) => {
        await kube.api('DELETE', servicePath('default', `other-${index}`));
        await kube.api('DELETE', slicePath('default', `other-${index}-1`));
      }),
    );
    const first = await host.start();
    const count = async () => (await host.servers()).filter(({ state }) => state === 'ready').length;
    await host.until('all is served', async () => (await count()) === 3 + OTHERS);
    await host.until('the snapshot has it', () => isKept(host, `other-${OTHERS - 1}`));
    const before = [await host.worker(), await host.reloads()];
    const load = new Load(t, host.place());

    await kube.killApiServer();
    await host.until('it is noticed', async () => first.hasLogged('Cannot read from the API server'));
    await load.answered(MANY);
    first.signal(how);
    await first.exited;
    await load.answered(MANY);
    const second = await host.start();
    t.is((await host.why('default/shop')).verdict, 'served');
    await load.answered(MANY);
    t.is(await count(), 3 + OTHERS);

    const log = second.log.length;
    await kube.startApiServer();
    await kube.must('PUT', slicePath('default', 'other-0-1'), sliceJson('other-0', ['10.7.0.1', '10.7.1.1']));
    await host.until('news arrive', async () => (await count()) === 4 + OTHERS, 45_000);
    await kube.must('DELETE', nodePath('n3'));
    await host.until('removals do, too', async () => (await count()) === 3 + OTHERS);
    await load.answered(50);
    const { failures, requests, slowest } = await load.stop();
    t.log(`${requests} requests, the slowest one took ${slowest} ms`);
    t.deepEqual(failures, []);
    t.deepEqual([await host.worker(), await host.reloads()], before);
    const metric = await second.metrics();
    t.is(metric('headgate_haproxy_commands_total', { command: 'AddServer' }), 1);
    t.false(second.hasLogged('A list lacks most objects', log));
  });
}

// Conformance: an API server that is away
test.serial('A host that boots without an API server serves its last load balancers', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  await createNodeService(t, kube, host, 'boot');
  const first = await host.start();
  await host.until('it is served', () => host.answers());
  await host.until('the snapshot has it', () => isKept(host, 'boot'));
  await first.kill();
  for (const pid of processesOf(host.directory)) signal(pid, 'SIGKILL');
  await host.until('HAProxy is gone', async () => !(await host.answers()));
  await removeFolder(join(host.runtimeDir, 'haproxy'));

  await kube.killApiServer();
  const second = await host.start();
  t.true(await host.answers());
  const load = new Load(t, host.place());
  const worker = await host.worker();
  await kube.startApiServer();
  await kube.must('DELETE', nodePath('n1'));
  await host.until(
    'the API server is back',
    async () => (await host.servers()).filter(({ state }) => state === 'ready').length === 2,
    45_000,
  );
  t.deepEqual((await load.stop()).failures, []);
  t.deepEqual([await host.worker(), await host.reloads()], [worker, 0]);
  await host.until('the lists are logged', async () => second.hasLogged('Listed the objects'));
});

// Conformance: an API server that is away
test.serial(
  'A host tells that its cluster may be gone, serves on, and is quiet once it answers',
  async (t) => {
    const flags = ['--kubeconfig', kube.kubeconfig, '--cluster-lost-after', '3s'];
    const host = await TestHost.create(t, { flags });
    await createNodeService(t, kube, host, 'lost');
    const first = await host.start();
    const isLost = async (): Promise<boolean> => (await first.metrics())('headgate_cluster_lost') === 1;
    const saysSo = async (): Promise<boolean> =>
      (await host.command('status')).stdout.includes('the cluster may be gone; this host serves on');
    await host.until('it is served', () => host.answers());
    await host.until('the snapshot has it', () => isKept(host, 'lost'));
    t.deepEqual([await isLost(), await saysSo()], [false, false]);

    await kube.killApiServer();
    try {
      await host.until('the metric says it', isLost);
      t.deepEqual([await saysSo(), await host.answers()], [true, true]);
      t.is((await host.why('default/lost')).verdict, 'served');
      await first.stop();
      const second = await host.start();
      await host.until(
        'the next agent says it too',
        async () => (await second.metrics())('headgate_cluster_lost') === 1,
      );
      t.true(await host.answers());
    } finally {
      await kube.startApiServer();
    }
    await host.until('it is quiet', async () => !(await saysSo()), 45_000);
    t.true(await host.answers());
  },
);

test.serial('An agent that stops before it has a desired state leaves HAProxy unchanged', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  await createNodeService(t, kube, host, 'left');
  const first = await host.start();
  await host.until('it is served', () => host.answers());
  await first.stop();
  await removeFolder(join(host.stateDir, 'api'));
  const before = [await host.worker(), await host.stateFile('haproxy/haproxy.cfg')];

  kube.freezeApiServer();
  try {
    const second = await host.launch();
    await host.until('it waits', async () => second.hasLogged('leaving HAProxy unchanged'));
    await second.stop();
    t.false(second.hasLogged('Adopted'));
  } finally {
    kube.thawApiServer();
  }
  t.true(await host.answers());
  t.deepEqual([await host.worker(), await host.stateFile('haproxy/haproxy.cfg')], before);
});

/** Whether an object of this name stands on the disk, for an agent that is killed now. */
async function isKept(host: TestHost, name: string): Promise<boolean> {
  return (await host.stateFile('api/objects.json')).includes(`"${name}"`);
}
