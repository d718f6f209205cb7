// A HAProxy that is dead for good: its Services cannot be torn down in a way that anybody could confirm, and still no
// namespace waits for it forever. The whole agent, on a real API server with the controller that deletes namespaces.

import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { signal, TestHost } from '../support/host/agent.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, sliceJson, slicePath } from '../support/kube/kube-objects.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds('kube-controller-manager'), haproxy: true });

/** Milliseconds that the agent waits for a teardown, and that a busy machine may take besides. */
const ESCAPE = 120_000;
const BESIDES = 60_000;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { controllerManager: true });
});
test.after.always(() => kube?.stop());

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test('A HAProxy that hangs delays the deletion of a namespace by two minutes at most', async (t) => {
  const host = await hostOf(t, 'hung');
  await served(host, 'hung');
  for (const pid of [await host.worker(), await host.master()]) signal(pid, 'SIGSTOP');
  await deletedAfterEscape(t, host, 'hung');
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test('A HAProxy that cannot be started delays it by two minutes at most', async (t) => {
  const host = await hostOf(t, 'died', async (directory) => {
    const path = join(directory, 'mortal-haproxy');
    const script = `#!/bin/sh\n[ -e ${directory}/dead ] && exit 1\nexec '${haproxyExecutable}' "$@"\n`;
    await writeFile(path, script);
    await chmod(path, 0o755);
    return path;
  });
  await served(host, 'died');
  await writeFile(join(host.directory, 'dead'), '');
  for (const pid of [await host.master(), await host.worker()]) signal(pid, 'SIGKILL');
  await host.until('HAProxy is gone', async () => !(await host.answers()));
  await host.until('its status says that it is not served', async () => {
    const { status } = await kube.must('GET', servicePath('died', 'web'));
    const programmed = status.conditions.find(
      ({ type }: { type: string }) => type === 'headgate.io/Programmed',
    );
    return programmed.status === 'False' && status.loadBalancer.ingress.length === 1;
  });
  await deletedAfterEscape(t, host, 'died');
});

/** Each with a Lease of its own, so that both may write. */
async function hostOf(
  t: ExecutionContext,
  namespace: string,
  haproxy: string | ((directory: string) => Promise<string>) = haproxyExecutable,
): Promise<TestHost> {
  const lease = `${namespace}-lease`;
  for (const name of [namespace, lease])
    await kube.must('POST', '/api/v1/namespaces', { metadata: { name } });
  const flags = ['--kubeconfig', kube.kubeconfig, '--namespaces', namespace, '--lease-namespace', lease];
  const host = await TestHost.create(t, { flags, haproxy });
  t.timeout(2 * (ESCAPE + BESIDES));
  await host.start();
  return host;
}

async function served(host: TestHost, namespace: string): Promise<void> {
  const annotations = { 'headgate.io/load-balancer-ips': host.address(1) };
  await kube.must('POST', servicePath(namespace), {
    metadata: { name: 'web', annotations },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }] },
  });
  await kube.must('POST', slicePath(namespace), sliceJson('web', ['10.1.0.1']));
  await host.until('its status says that it is served', async () => {
    const { metadata, status } = await kube.must('GET', servicePath(namespace, 'web'));
    return metadata.finalizers?.length === 1 && status.loadBalancer.ingress?.length === 1;
  });
}

async function deletedAfterEscape(t: ExecutionContext, host: TestHost, namespace: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}`;
  await kube.must('DELETE', path);
  const began = performance.now();
  await host.until(
    'the namespace is gone',
    async () => (await kube.api('GET', path)).status === 404,
    ESCAPE + BESIDES,
  );
  const took = performance.now() - began;
  t.log(`The namespace was gone after ${Math.round(took / 1_000)} s`);
  // It was the finalizer that held it, and the escape that let it go.
  t.true(took > ESCAPE - 10_000, `${took} ms`);
}
