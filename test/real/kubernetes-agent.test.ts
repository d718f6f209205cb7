// The whole agent on a real API server: Services, EndpointSlices and a real HAProxy.

import ava from 'ava';
import { TestHost } from '../support/agent.ts';
import { KUBE_BUILD_TIMEOUT, type Kube, kubeNeeds, startKube } from '../support/kube.ts';
import { servicePath, sliceJson, slicePath } from '../support/kube-objects.ts';
import { requires } from '../support/requirements.ts';
import { VIP_PORT } from '../support/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

let kube: Kube;
test.before(async (t) => {
  t.timeout(KUBE_BUILD_TIMEOUT);
  kube = await startKube();
});
test.after.always(() => kube?.stop());

/** A Service at an address of the host's, as its author writes it. */
function service(name: string, address: string): object {
  return {
    metadata: { name, annotations: { 'headgate.io/load-balancer-ips': address } },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }] },
  };
}

test.serial(
  'A Service of the API is served, follows its slices without a reload, and goes with its Service',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    await kube.must('POST', servicePath('default'), service('web', host.address(1)));
    await kube.must('POST', slicePath('default'), sliceJson('web', ['10.1.0.1']));
    const agent = await host.start();
    const names = async (): Promise<string> => (await host.servers()).map(({ server }) => server).join(' ');
    await host.until('the first member is there', async () => (await names()) === '10.1.0.1:8080');

    const reloads = await host.reloads();
    await kube.must('PUT', slicePath('default', 'web-1'), sliceJson('web', ['10.1.0.1', '10.1.0.2']));
    await host.until(
      'the second member is there',
      async () => (await names()) === '10.1.0.1:8080 10.1.0.2:8080',
    );
    t.is(await host.reloads(), reloads);
    t.is((await host.why()).verdict, 'served');

    await kube.must('DELETE', servicePath('default', 'web'));
    await host.until('nothing is served', async () => (await names()) === '');
    t.is((await host.why()).verdict, 'not found');
    const metric = await agent.metrics();
    t.is(metric('headgate_api_lists_total', { kind: 'Service', reason: 'start' }), 1);
    t.true(metric('headgate_api_events_total', { kind: 'EndpointSlice', type: 'MODIFIED' }) >= 1);
    await kube.must('DELETE', slicePath('default', 'web-1'));
  },
);

test.serial(
  'Members of a folder serve a Service of the API, and a folder serves without any API server',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    await host.serve({ name: 'local', address: host.address(2), members: [host.address(12)] });
    await kube.killApiServer();
    await host.start();
    await host.until(
      'the folder is served',
      async () => (await host.why('default/local')).verdict === 'served',
    );
    await kube.startApiServer();
    await kube.must('POST', servicePath('default'), service('shared', host.address(3)));
    await host.until(
      'the API is there',
      async () => (await host.why('default/shared')).verdict !== 'not found',
    );
    await host.write('shared.yaml', [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        ...sliceJson('shared', [host.address(13)]),
      },
    ]);
    await host.until('both are served', async () => (await host.why('default/shared')).verdict === 'served');
    t.is((await host.why('default/local')).verdict, 'served');
    await kube.must('DELETE', servicePath('default', 'shared'));
  },
);

test.serial(
  'An agent that restarts without an API server serves on, and reloads nothing when it is back',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    await kube.must('POST', servicePath('default'), service('steady', host.address(1)));
    await kube.must('POST', slicePath('default'), sliceJson('steady', ['10.1.0.1', '10.1.0.2']));
    const first = await host.start();
    await host.until('it is served', async () => (await host.why('default/steady')).verdict === 'served');
    const worker = await host.worker();
    await first.stop();
    await kube.killApiServer();
    const second = await host.start();
    t.is((await host.why('default/steady')).verdict, 'served');
    await kube.startApiServer();
    await kube.must(
      'PUT',
      slicePath('default', 'steady-1'),
      sliceJson('steady', ['10.1.0.1', '10.1.0.2', '10.1.0.3']),
    );
    await host.until('news arrive', async () => (await host.servers()).length === 3, 60_000);
    t.is(await host.worker(), worker);
    t.is((await second.metrics())('headgate_haproxy_commands_total', { command: 'AddServer' }), 1);
    await kube.must('DELETE', servicePath('default', 'steady'));
  },
);

test.serial(
  'A Service that is being deleted is served no more, though a finalizer still holds it',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    const held = service('held', host.address(1)) as { metadata: { finalizers?: string[] } };
    held.metadata.finalizers = ['example.org/hold'];
    await kube.must('POST', servicePath('default'), held);
    await kube.must('POST', slicePath('default'), sliceJson('held', ['10.1.0.1']));
    await host.start();
    await host.until('it is served', async () => (await host.why('default/held')).verdict === 'served');
    await kube.must('DELETE', servicePath('default', 'held'));
    await host.until('it is not', async () => (await host.servers()).length === 0);
    const { verdict, reasons } = await host.why('default/held');
    t.is(verdict, 'not ours');
    t.deepEqual(reasons, ['It is being deleted']);
    const release = { metadata: { finalizers: null } };
    await kube.must('PATCH', servicePath('default', 'held'), release, 'application/merge-patch+json');
  },
);

test.serial(
  'The status of a Service says what is served, once it is served, and goes with its type',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'headgate-system' } });
    await kube.must('POST', servicePath('default'), service('told', host.address(1)));
    await host.start();
    const read = () => kube.must('GET', servicePath('default', 'told'));
    const programmed = async (): Promise<string | undefined> =>
      (await read()).status.conditions?.find(
        ({ type }: { type: string }) => type === 'headgate.io/Programmed',
      )?.status;
    await host.until('the status says so', async () => (await programmed()) === 'True');
    const told = await read();
    t.like(told.status.loadBalancer.ingress[0], {
      ip: host.address(1),
      ipMode: 'Proxy',
      ports: [{ port: VIP_PORT, protocol: 'TCP' }],
    });
    t.deepEqual(told.metadata.finalizers, ['service.kubernetes.io/load-balancer-cleanup']);

    const plain = { spec: { type: 'ClusterIP' } };
    await kube.must('PATCH', servicePath('default', 'told'), plain, 'application/merge-patch+json');
    await host.until('the finalizer is gone', async () => (await read()).metadata.finalizers === undefined);
    t.deepEqual((await read()).status.loadBalancer, {});

    const again = { spec: { type: 'LoadBalancer' } };
    await kube.must('PATCH', servicePath('default', 'told'), again, 'application/merge-patch+json');
    await host.until('it is served again', async () => (await programmed()) === 'True');
    await kube.must('DELETE', servicePath('default', 'told'));
    await host.until(
      'nothing holds it',
      async () => (await kube.api('GET', servicePath('default', 'told'))).status === 404,
    );
  },
);

test.serial('A Service that ceased to be ours while no agent ran is let go of by the next one', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  await kube.must('POST', servicePath('default'), service('left', host.address(1)));
  const read = () => kube.must('GET', servicePath('default', 'left'));
  const first = await host.start();
  // The host of the test before was ended with the Lease in its hands.
  await host.until(
    'it has the finalizer',
    async () => (await read()).metadata.finalizers !== undefined,
    30_000,
  );
  await first.stop();
  const plain = { spec: { type: 'ClusterIP' } };
  await kube.must('PATCH', servicePath('default', 'left'), plain, 'application/merge-patch+json');
  await host.start();
  await host.until(
    'the finalizer is gone',
    async () => (await read()).metadata.finalizers === undefined,
    30_000,
  );
  t.deepEqual((await read()).status.loadBalancer, {});
  await kube.must('DELETE', servicePath('default', 'left'));
});
