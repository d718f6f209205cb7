// Pods whose connections leave from a VIP, by a real API server: which may, what a tenant may write into EndpointSlices, and what
// holds without the API server.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, nftFlags } from '../support/host/nft.ts';
import { apply, deploy, kubeconfigOf, NAMESPACE } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, {
  ...kubeNeeds(),
  haproxy: true,
  root: true,
  programs: ['ip', 'nft', 'nsenter', 'sysctl'],
});

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
});
test.after.always(() => kube?.stop());

const [VIP, TRAP] = ['10.9.0.100', '10.9.0.101'];
const [WEB, BANK, DONE, ENDED_POD] = ['10.8.8.13', '10.8.8.20', '10.8.8.21', '10.8.8.22'];

test.serial(
  'A pod counts if it has the address, whatever slices say, and stays without the API server',
  async (t) => {
    await deploy(kube);
    const network = await TestNetwork.create(t, ['a']);
    await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
    const flags = ['--kubeconfig', kubeconfig, '--netns', network.netns('a'), ...nftFlags];
    const host = await TestHost.create(t, { flags });
    for (const namespace of ['evil', 'shop', 'bank']) {
      await kube.must('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
      await kube.must('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {
        metadata: { name: 'default' },
      });
    }
    // The tenant's Service is the oldest.
    await kube.must('POST', servicePath('evil'), service('trap', TRAP));
    await kube.must('POST', servicePath('shop'), service('web', VIP));
    await pod('shop', 'web-1', WEB);
    await pod('bank', 'vault-1', BANK);
    await pod('evil', 'trap-1', '10.8.8.30');
    await pod('evil', 'host-1', network.v4('a'), { hostNetwork: true });
    await pod('evil', 'done-1', DONE, {}, 'Succeeded');
    await slice('shop', 'web', [[WEB, 'web-1']]);
    await slice('evil', 'trap', [
      [WEB, 'trap-1'],
      [BANK, 'trap-1'],
      [BANK, 'vault-1'],
      [network.v4('a'), 'host-1'],
      [DONE, 'done-1'],
      [ENDED_POD, ''],
      ['10.8.8.30', 'trap-1'],
    ]);
    const agent = await host.start();
    const map = async (): Promise<readonly string[]> => {
      const text = await network.run('a', nftExecutable, 'list', 'ruleset');
      const elements =
        /map pods \{\s*type ipv4_addr : ipv4_addr\s*elements = \{([^}]*)\}/.exec(text)?.[1] ?? '';
      return elements
        .split(',')
        .map((each) => each.trim())
        .sort();
    };
    const reasons = async (key: string) => (await host.why(key)).reasons.join('\n');
    await host.until('the missing right is named', async () =>
      (await reasons('shop/web')).includes('(403): apply deploy/egress/'),
    );
    t.deepEqual(await map(), ['']);
    for (const namespace of ['shop', 'evil']) await apply(kube, 'egress/namespace.yaml', namespace);
    const own = [`${WEB} : ${VIP}`, `10.8.8.30 : ${TRAP}`].sort();
    await host.until('own pods are mapped', async () => (await map()).join() === own.join());
    const condition = async (namespace: string, name: string) => {
      const { status } = await kube.must('GET', servicePath(namespace, name));
      const all: readonly { readonly type: string; readonly status: string; readonly reason: string }[] =
        status.conditions ?? [];
      return all.find(({ type }) => type === 'headgate.io/Egress');
    };
    await host.until('it is said', async () => (await condition('shop', 'web'))?.reason === 'Mapped');
    await host.until(
      'the tenant is told',
      async () => (await condition('evil', 'trap'))?.reason === 'EgressPodRefused',
    );
    t.regex(
      await reasons('evil/trap'),
      new RegExp(`${WEB}: Pod "trap-1" has another address \\(and \\d more\\)`),
    );

    await pod('shop', 'web-2', '10.8.8.14');
    await slice('shop', 'web', [
      [WEB, 'web-1'],
      ['10.8.8.14', 'web-2'],
    ]);
    await host.until('a new pod is mapped', async () => (await map()).includes(`10.8.8.14 : ${VIP}`));
    await agent.stop();
    const before = await map();
    await kube.killApiServer();
    const next = await host.start();
    await host.until('the status says so', async () => (await host.status()).egress?.pods === 3);
    t.deepEqual(await map(), before);
    await next.stop();
    await kube.startApiServer();
  },
);

function service(name: string, vip: string): Json {
  const annotations = { 'headgate.io/egress': 'true', 'headgate.io/load-balancer-ips': vip };
  return {
    metadata: { name, annotations },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  };
}

async function pod(namespace: string, name: string, ip: string, spec: Json = {}, phase = 'Running') {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const containers = [{ name: 'web', image: 'web' }];
  await kube.must('POST', path, {
    metadata: { name },
    spec: { containers, automountServiceAccountToken: false, ...spec },
  });
  await kube.must(
    'PATCH',
    `${path}/${name}/status`,
    { status: { phase, podIP: ip, podIPs: [{ ip }] } },
    'application/merge-patch+json',
  );
}

async function slice(
  namespace: string,
  name: string,
  endpoints: readonly (readonly [address: string, pod: string])[],
): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const object = {
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: endpoints.map(([address, target]) => ({
      addresses: [address],
      ...(target !== '' && { targetRef: { kind: 'Pod', namespace, name: target } }),
    })),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
  const { status } = await kube.api('GET', `${path}/${name}-1`);
  if (status === 200) await kube.must('PATCH', `${path}/${name}-1`, object, 'application/merge-patch+json');
  else await kube.must('POST', path, object);
}
