// The whole agent on a real API server: Services, EndpointSlices and a real HAProxy.

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, sliceJson, slicePath } from '../support/kube/kube-objects.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
});
test.after.always(() => kube?.stop());
// The agent of the last test was killed: the next one must not wait until its Lease expires.
test.beforeEach(() => kube.api('DELETE', LEASE));

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/headgate-system/leases/headgate';

/** A Service at an address of the host's, as its author writes it. */
function service(name: string, address: string) {
  return {
    metadata: { name, annotations: { 'headgate.io/load-balancer-ips': address } },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }] },
  };
}

test.serial(
  'A Service of the API is served, follows its slices without a reload, and goes when it is deleted',
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
    await host.until('its finalizer is gone', async () => (await host.why()).verdict === 'not found');
    const metric = await agent.metrics();
    t.is(metric('headgate_api_lists_total', { kind: 'Service', reason: 'start' }), 1);
    t.true(metric('headgate_api_events_total', { kind: 'EndpointSlice', type: 'MODIFIED' }) >= 1);
    await kube.must('DELETE', slicePath('default', 'web-1'));
  },
);

test.serial(
  "The agent uses the API servers of the settings if the kubeconfig's does not answer; finalizers are optional",
  async (t) => {
    const kubeconfig = join(kube.directory, 'without-user');
    await kube.writeKubeconfig(kubeconfig, { server: 'https://127.0.0.1:1', token: kube.adminToken });
    const flags = ['--kubeconfig', kubeconfig, '--api-servers', kube.url, '--no-finalizer'];
    const host = await TestHost.create(t, { flags });
    await kube.must('POST', servicePath('default'), service('bare', host.address(1)));
    await host.start();
    const told = async () => kube.must('GET', servicePath('default', 'bare'));
    await host.until(
      'its status is there',
      async () => (await told()).status.loadBalancer.ingress?.[0]?.ip === host.address(1),
    );
    t.is((await told()).metadata.finalizers, undefined);
    await kube.must('DELETE', servicePath('default', 'bare'));
  },
);

test.serial('Manifests add members to a Service of the API, and serve without an API server', async (t) => {
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
});

test.serial('A Service of the API that a manifest shadows gets an Event, and no status', async (t) => {
  const flags = ['--kubeconfig', kube.kubeconfig];
  const host = await TestHost.create(t, { flags });
  const events = async (name: string): Promise<readonly string[]> => {
    const query = encodeURIComponent(`involvedObject.name=${name}`);
    const { items } = await kube.must('GET', `/api/v1/namespaces/default/events?fieldSelector=${query}`);
    const all = items as readonly Record<'type' | 'reason' | 'reportingComponent', string>[];
    // The API server reports, too.
    const own = all.filter(({ reportingComponent }) => reportingComponent === 'headgate.io/agent');
    return own.map(({ type, reason }) => `${type} ${reason}`);
  };
  await kube.must('POST', servicePath('default'), service('early', host.address(1)));
  await kube.must('POST', servicePath('default'), service('taken', host.address(1)));
  await host.serve({ name: 'early', address: host.address(2), members: [host.address(12)] });
  // Another agent leads while this one starts, and has sent nothing.
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  await kube.must('POST', LEASE.replace(/\/headgate$/, ''), {
    metadata: { name: 'headgate' },
    spec: { holderIdentity: 'other', leaseDurationSeconds: 8, acquireTime: renewTime, renewTime },
  });
  await host.start();
  t.deepEqual(await events('early'), []);
  await host.until('one that was there is told so', async () =>
    (await events('early')).includes('Warning DuplicateObject'),
  );
  const taken = async () => kube.must('GET', servicePath('default', 'taken'));
  await host.until(
    'the other one has a status',
    async () => (await taken()).status.loadBalancer.ingress !== undefined,
  );
  await host.serve({ name: 'taken', address: host.address(3), members: [host.address(13)] });
  await host.until('one that was served is told so', async () =>
    (await events('taken')).includes('Warning DuplicateObject'),
  );
  await host.until('what was told of it is gone', async () => {
    const { metadata, status } = await taken();
    const said = [status.loadBalancer.ingress, status.conditions, metadata.finalizers];
    return said.every((list) => list === undefined || list.length === 0);
  });
  const { metadata, status } = await kube.must('GET', servicePath('default', 'early'));
  t.deepEqual([status, metadata.finalizers], [{ loadBalancer: {} }, undefined]);
  t.is((await host.why('default/early')).problems[0]?.reason, 'DuplicateObject');
  for (const name of ['early', 'taken']) await kube.must('DELETE', servicePath('default', name));
  await host.until(
    'the folder is served alone',
    async () => (await host.why('default/early')).problems.length === 0,
  );
});

test.serial(
  "A manifest's Service that the agent does not serve takes nothing from one of the API",
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    const copy = { apiVersion: 'v1', kind: 'Service', ...service('copied', host.address(1)) };
    await host.write('copied.yaml', [{ ...copy, spec: { ...copy.spec, type: 'ClusterIP' } }]);
    await host.start();
    t.is((await host.why('default/copied')).verdict, 'not ours');
    await kube.must('POST', servicePath('default'), service('copied', host.address(1)));
    await kube.must('POST', slicePath('default'), sliceJson('copied', ['10.1.0.9']));
    await host.until('it is served', async () => (await host.why('default/copied')).verdict === 'served');
    await host.until('its status says so', async () => {
      const { status } = await kube.must('GET', servicePath('default', 'copied'));
      return status.loadBalancer.ingress?.[0].ip === host.address(1);
    });
    await kube.must('DELETE', servicePath('default', 'copied'));
  },
);

// Conformance: no API server at the start
test.serial(
  'An agent that restarts without an API server continues, and does not reload when it is back',
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
    // What is not known is not denied.
    t.regex(
      (await host.why('default/other')).reasons.join(),
      /The API server has not been read yet: Cannot reach/,
    );
    const { status, stdout } = await host.command('status');
    t.is(status, 0);
    t.regex(
      stdout,
      /^API server: +not read since the start, no answer yet: Cannot reach the API server at /m,
    );
    await kube.startApiServer();
    await kube.must(
      'PUT',
      slicePath('default', 'steady-1'),
      sliceJson('steady', ['10.1.0.1', '10.1.0.2', '10.1.0.3']),
    );
    await host.until('news arrive', async () => (await host.servers()).length === 3, 60_000);
    t.is(await host.worker(), worker);
    await host.until('it is followed again', async () => (await host.status()).api?.fault === '');
    t.regex((await host.command('status')).stdout, /^API server: +connected, last answer /m);
    t.deepEqual((await host.why('default/other')).reasons, ['There is no Service "default/other"']);
    t.is((await second.metrics())('headgate_haproxy_commands_total', { command: 'AddServer' }), 1);
    await kube.must('DELETE', servicePath('default', 'steady'));
  },
);

// Conformance: metadata.deletionTimestamp
test.serial('A Service is not served during its deletion, although a finalizer holds it', async (t) => {
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
});

// Conformance: spec.type
test.serial('The status of a Service follows what HAProxy serves, and goes with its type', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  await kube.must('POST', servicePath('default'), service('told', host.address(1)));
  await host.start();
  const read = () => kube.must('GET', servicePath('default', 'told'));
  const programmed = async (): Promise<string | undefined> =>
    (await read()).status.conditions?.find(({ type }: { type: string }) => type === 'headgate.io/Programmed')
      ?.status;
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
});

test.serial("The status has a Service's new address once HAProxy serves it", async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  await kube.must('POST', servicePath('default'), service('moved', host.address(1)));
  await host.start();
  const told = async (): Promise<readonly unknown[]> => {
    const { loadBalancer, conditions } = (await kube.must('GET', servicePath('default', 'moved'))).status;
    const programmed = conditions?.find(({ type }: { type: string }) => type === 'headgate.io/Programmed');
    return [loadBalancer.ingress?.map(({ ip }: { ip: string }) => ip), programmed?.status];
  };
  const saying = async (...wanted: readonly unknown[]) => isDeepStrictEqual(await told(), wanted);
  await host.until('it has its address', () => saying([host.address(1)], 'True'));

  // As long as the master stands still, the worker of before serves on.
  const master = await host.master();
  process.kill(master, 'SIGSTOP');
  try {
    const other = { metadata: { annotations: { 'headgate.io/load-balancer-ips': host.address(2) } } };
    await kube.must('PATCH', servicePath('default', 'moved'), other, 'application/merge-patch+json');
    await host.until('nothing is said to be there', () => saying(undefined, 'False'));
  } finally {
    process.kill(master, 'SIGCONT');
  }
  await host.until('it has the other one', () => saying([host.address(2)], 'True'));
  t.is(await host.master(), master);
  await kube.must('DELETE', servicePath('default', 'moved'));
});

test.serial('A deleted Service is released at once if HAProxy serves nothing of it', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const datagrams = service('datagrams', host.address(1));
  await kube.must('POST', servicePath('default'), {
    ...datagrams,
    spec: { ...datagrams.spec, ports: [{ port: VIP_PORT, protocol: 'UDP' }] },
  });
  await kube.must('POST', servicePath('default'), {
    metadata: { name: 'pending' },
    spec: { type: 'LoadBalancer', ports: [{ port: VIP_PORT }] },
  });
  await host.start(['--nft', '/nowhere/nft']);
  for (const name of ['datagrams', 'pending']) {
    const path = servicePath('default', name);
    await host.until(
      `${name} has its status`,
      async () => (await kube.must('GET', path)).status.conditions?.length > 1,
      30_000,
    );
    await kube.must('DELETE', path);
    await host.soon(`${name} is gone`, async () => (await kube.api('GET', path)).status === 404);
  }
  t.pass();
});

test.serial('A Service that no longer matches the selector is released, and can be deleted', async (t) => {
  const flags = ['--kubeconfig', kube.kubeconfig, '--service-selector', 'lb=yes'];
  const host = await TestHost.create(t, { flags });
  const path = servicePath('default', 'labelled');
  const { metadata, spec } = service('labelled', host.address(1));
  await kube.must('POST', servicePath('default'), {
    metadata: { ...metadata, labels: { lb: 'yes' } },
    spec,
  });
  await host.start();
  const read = () => kube.must('GET', path);
  await host.until(
    'it is served',
    async () => (await read()).status.loadBalancer.ingress !== undefined,
    30_000,
  );
  await kube.must('PATCH', path, { metadata: { labels: { lb: null } } });
  await host.until('nothing of ours is left', async () => {
    const { metadata: now, status } = await read();
    return now.finalizers === undefined && status.loadBalancer.ingress === undefined;
  });
  t.false((await host.config()).includes('listen default:labelled'));
  // Back again, and gone.
  await kube.must('PATCH', path, { metadata: { labels: { lb: 'yes' } } });
  await host.until(
    'it is served again',
    async () => (await read()).status.loadBalancer.ingress !== undefined,
  );
  await kube.must('DELETE', path);
  await host.until('it is gone', async () => (await kube.api('GET', path)).status === 404);
});

test.serial(
  'A Service with only cluster IPs or external IPs is not written, and is released if it becomes one',
  async (t) => {
    const flags = ['--kubeconfig', kube.kubeconfig, '--cluster-ips', '--external-ips'];
    const host = await TestHost.create(t, { flags });
    const ports = [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }];
    const read = (name: string) => kube.must('GET', servicePath('default', name));
    const plain = { metadata: { name: 'plain' }, spec: { ports, externalIPs: ['192.0.2.77'] } };
    const foreign = {
      metadata: { name: 'foreign', finalizers: ['service.kubernetes.io/load-balancer-cleanup'] },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'example.org/other', ports },
    };
    for (const each of [plain, foreign]) await kube.must('POST', servicePath('default'), each);
    const status = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.78' }] } } };
    await kube.must('PATCH', `${servicePath('default', 'foreign')}/status`, status);
    const before = [await read('plain'), await read('foreign')];
    await host.start();
    await kube.must('POST', servicePath('default'), service('mine', host.address(1)));
    await host.until('ours has its status', async () => {
      const { status: told } = await read('mine');
      return told.loadBalancer.ingress?.[0].ip === host.address(1);
    });
    for (const name of ['plain', 'foreign'])
      t.not((await host.why(`default/${name}`)).verdict, 'not ours', name);
    t.deepEqual([await read('plain'), await read('foreign')], before);

    await kube.must('PATCH', servicePath('default', 'mine'), { spec: { type: 'ClusterIP' } });
    await host.until('it is let go of', async () => (await read('mine')).metadata.finalizers === undefined);
    t.deepEqual((await read('mine')).status, { loadBalancer: {} });
    t.not((await host.why('default/mine')).verdict, 'not ours');
    await kube.must('PATCH', servicePath('default', 'foreign'), { metadata: { finalizers: null } });
    for (const name of ['plain', 'foreign', 'mine']) await kube.must('DELETE', servicePath('default', name));
  },
);

// Conformance: spec.type
test.serial('The next agent releases a Service that changed its class while no agent ran', async (t) => {
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

// Conformance: a status that another writer changes
test.serial('The agent restores a status without reading the Service', async (t) => {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const others = Array.from({ length: 5 }, (_, at) => `other-${at}`);
  await kube.must('POST', servicePath('default'), service('mine', host.address(1)));
  for (const name of others)
    await kube.must('POST', servicePath('default'), {
      metadata: { name },
      spec: { ports: [{ port: 80 }] },
    });
  const questions = await kube.requests({ resource: 'services', verb: 'GET' });
  await host.start();
  // A list, so that the questions of this test are not counted.
  const read = async () =>
    (await kube.must('GET', `${servicePath('default')}?fieldSelector=metadata.name%3Dmine`)).items[0];
  const isOurs = async (): Promise<boolean> => {
    const { metadata, status } = await read();
    return (
      status.conditions?.some(
        ({ type, status }: Record<string, string>) => type === 'headgate.io/Programmed' && status === 'True',
      ) === true &&
      status.loadBalancer.ingress?.[0]?.ipMode === 'Proxy' &&
      metadata.finalizers?.length === 1
    );
  };
  await host.until('the status is written', isOurs);

  // Nothing of it is among what the agent reads of a Service to serve it.
  await kube.must('PATCH', `${servicePath('default', 'mine')}/status`, { status: { conditions: null } });
  await host.until('the conditions are back', isOurs);
  const ingress = [{ ip: host.address(1), ipMode: 'VIP' }];
  await kube.must('PATCH', `${servicePath('default', 'mine')}/status`, {
    status: { loadBalancer: { ingress } },
  });
  await host.until('the ipMode is back', isOurs);
  await kube.must('PATCH', servicePath('default', 'mine'), { metadata: { finalizers: null } });
  await host.until('the finalizer is back', isOurs);
  t.is(await kube.requests({ resource: 'services', verb: 'GET' }), questions);
  for (const name of ['mine', ...others]) await kube.must('DELETE', servicePath('default', name));
});

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test.serial(
  'The time from a change of pods to its traffic is counted, by commands and by reload, as kube-proxy counts it',
  async (t) => {
    const flags = ['--kubeconfig', kube.kubeconfig, '--reload-interval', '4s'];
    const host = await TestHost.create(t, { flags });
    const put = (name: string, addresses: readonly string[], trigger: number) =>
      kube.must('PUT', slicePath('default', `${name}-1`), sliceJson(name, addresses, trigger));
    await kube.must('POST', servicePath('default'), service('timed', host.address(1)));
    await kube.must('POST', slicePath('default'), sliceJson('timed', ['10.1.0.1'], Date.now()));
    const agent = await host.start();
    await host.until('it is served', async () => (await host.why('default/timed')).verdict === 'served');
    const read = async (part: 'count' | 'sum', path: string): Promise<number> =>
      (await agent.metrics())(`headgate_network_programming_duration_seconds_${part}`, { path });
    const serves = (members: number) => async () => (await host.servers()).length === members;
    t.is(await read('count', 'runtime'), 0);
    t.is(await read('count', 'reload'), 0);

    await put('timed', ['10.1.0.1', '10.1.0.2'], Date.now() - 60 * 60_000);
    await host.until('what changed before the agent began is served', serves(2));
    await put('timed', ['10.1.0.1', '10.1.0.2', '10.1.0.3'], Date.now());
    await host.until('commands are counted', async () => (await read('count', 'runtime')) === 1);
    t.true((await host.servers()).length === 3);
    await put('timed', ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4'], Date.now() + 60 * 60_000);
    await host.until('a clock that is ahead is counted', async () => (await read('count', 'runtime')) === 2);
    const seconds = await read('sum', 'runtime');
    t.true(seconds > 0 && seconds < 15, `${seconds}`);
    t.is(await read('count', 'reload'), 0);

    // After the first reload the next one is to come only after the interval, in which the slice comes.
    await kube.must('POST', servicePath('default'), service('first', host.address(2)));
    await host.until('it is there', async () => (await host.reloads()) === 1);
    await kube.must('POST', servicePath('default'), service('second', host.address(3)));
    // A slice that comes before its Service is nobody's, and not counted.
    await host.until(
      'the agent knows it',
      async () => (await host.why('default/second')).verdict !== 'not found',
    );
    await kube.must('POST', slicePath('default'), sliceJson('second', ['10.1.0.6'], Date.now()));
    await host.until('the reload is counted', async () => (await read('count', 'reload')) === 1);
    t.is((await host.why('default/second')).verdict, 'served');
    t.true((await read('sum', 'reload')) > 1);
    t.is(await read('count', 'runtime'), 2);
    for (const name of ['timed', 'first', 'second']) await kube.must('DELETE', servicePath('default', name));
  },
);

test.serial(
  '`check` reports whether the API server answers, knows the account and allows it to read',
  async (t) => {
    const host = await TestHost.create(t);
    const check = async (kubeconfig: string) => {
      const { status, stdout } = await host.command('check', [
        '--listen',
        '127.0.0.1:0',
        '--kubeconfig',
        kubeconfig,
      ]);
      return `${status}: ${stdout.match(/^.* API server: .*$/gm)?.join('\n')}`;
    };
    const kubeconfig = async (name: string, user: { token: string; server?: string }): Promise<string> => {
      const path = join(host.directory, name);
      await kube.writeKubeconfig(path, user);
      return path;
    };
    t.regex(
      await check(kube.kubeconfig),
      /^0: ok {3}API server: services, endpointslices, nodes.* can be listed/,
    );
    t.regex(
      await check('/no/such/file'),
      /^1: BAD {2}API server: Cannot use the kubeconfig "\/no\/such\/file": ENOENT/,
    );
    t.regex(
      await check(await kubeconfig('stranger', { token: 'unknown' })),
      /^1: BAD {2}API server: Cannot list services: The API server answers 401.*: correct the credentials$/,
    );
    const { adminToken: token } = kube;
    t.regex(
      await check(await kubeconfig('nowhere', { token, server: 'https://127.0.0.1:1' })),
      /^1: BAD {2}API server: Cannot reach the API server at "https:\/\/127.0.0.1:1": connect ECONNREFUSED/,
    );
    const account = await kube.serviceAccountToken('default', 'without-rights');
    const faults = (await check(await kubeconfig('without-rights', { token: account }))).split('\n');
    t.regex(
      faults[0] ?? '',
      /^1: BAD {2}API server: Cannot list services: .* 403 .*: apply deploy\/kubernetes\/rbac\.yaml$/,
    );
    t.true(faults.some((fault) => fault.includes('Cannot list nodes: ')));
  },
);
