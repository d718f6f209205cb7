// NetworkPolicies at the load balancer, on a real API server with the rights of deploy/: who is answered by the kernel and by
// HAProxy while policies, pods and their labels change, and what the author is told.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftFlags } from '../support/host/nft.ts';
import { apply, deploy, kubeconfigOf, NAMESPACE } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, slicePath } from '../support/kube/kube-objects.ts';
import { answerDatagrams, askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true, programs: ['ip', 'nft'], root: true });

const VIP = '10.9.0.100';
const PORT = 53;
const PODS = '/api/v1/namespaces/default/pods';
const POLICIES = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
const MERGE = 'application/merge-patch+json';
const PORTS = [
  { name: 'udp', port: PORT, protocol: 'UDP' },
  { name: 'tcp', port: PORT, protocol: 'TCP' },
];

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
  await deploy(kube);
});
test.after.always(() => kube?.stop());

test.serial('Clients are those that the NetworkPolicies of all members let in, on both paths', async (t) => {
  const { network, host, agent, refusal } = await served(t);
  const from = { client: network.v4('client'), other: network.v4('other') };
  const answered = async () => {
    const all = await Promise.all(
      Object.keys(from).flatMap((name) => [
        isAnsweredByUdp(network, name).then((yes) => (yes ? [`${name} udp`] : [])),
        isAnsweredByTcp(network, name).then((yes) => (yes ? [`${name} tcp`] : [])),
      ]),
    );
    return all.flat().join(', ');
  };
  const EVERYBODY = 'client udp, client tcp, other udp, other tcp';
  const until = (what: string, who: string) => host.until(what, async () => (await answered()) === who);
  t.regex(refusal, /Cannot list (?:networkpolicies|pods): .*deploy\/policies\/rbac\.yaml/);
  await until('there is no policy', EVERYBODY);

  await setPolicy('web', { ingress: [{ from: [{ ipBlock: { cidr: `${from.client}/32` } }] }] });
  await until('one client is let in', 'client udp, client tcp');
  const reloads = await host.reloads();
  await setPolicy('web', {
    ingress: [{ from: [{ ipBlock: { cidr: '10.9.0.0/16', except: [`${from.client}/32`] } }] }],
  });
  await until('all but one are let in', 'other udp, other tcp');
  t.is(await host.reloads(), reloads);

  // The number is the pod's port, and so is its name.
  await setPolicy('web', {
    ingress: [
      { from: [{ ipBlock: { cidr: `${from.client}/32` } }], ports: [{ protocol: 'UDP', port: 'dns' }] },
      { from: [{ ipBlock: { cidr: `${from.other}/32` } }], ports: [{ port: 5000, endPort: 6000 }] },
      { ports: [{ port: PORT }] },
    ],
  });
  await until('each is let in on its port', 'client udp, other tcp');

  // A member with another policy: what both let in.
  await setPolicy('web', { ingress: [{ from: [{ ipBlock: { cidr: '10.9.0.0/16' } }] }] });
  await until('both are let in', EVERYBODY);
  await setPolicy('canary', { ingress: [{ from: [{ ipBlock: { cidr: `${from.other}/32` } }] }] });
  await createPod('canary-1', 'canary', network.v4('m2'));
  await setSlice(network, ['m1', 'm2'], ['web-1', 'canary-1']);
  await until('the canary decides', 'other udp, other tcp');
  t.regex((await told(host)).join('\n'), /TCP port 53: its members have different NetworkPolicies/);
  await relabel('canary-1', 'free');
  await until('the canary has no policy any more', EVERYBODY);

  await setPolicy('web', { ingress: [{ from: [{ podSelector: {} }] }] });
  await until('no client is let in', '');
  const messages = (await told(host)).join('\n');
  t.regex(messages, /NetworkPolicy "default\/web" also lets in what is no "ipBlock"/);
  t.regex(messages, /UDP port 53: they let in no address of IPv4/);
  const condition = async () => {
    const { status } = await kube.must('GET', servicePath('default', 'echo'));
    return status.conditions.find(({ type }: Json) => type === 'headgate.io/Programmed');
  };
  await host.until('the condition says so', async () => (await condition())?.reason === 'ClosedByPolicy');
  t.regex((await condition()).message, /^All ports are served\. NetworkPolicies restrict UDP port 53/);
  const query = encodeURIComponent('involvedObject.name=echo');
  await host.until('an Event says so', async () => {
    const { items } = await kube.must('GET', `/api/v1/namespaces/default/events?fieldSelector=${query}`);
    return items.some(({ reason }: Json) => reason === 'ClosedByPolicy');
  });

  // The agent starts again without an API server: what protects is still there.
  await setPolicy('web', { ingress: [{ from: [{ ipBlock: { cidr: `${from.client}/32` } }] }] });
  await until('one client is let in again', 'client udp, client tcp');
  t.deepEqual(await told(host), []);
  await agent.stop();
  await kube.killApiServer();
  await host.start();
  await until('one client is let in still', 'client udp, client tcp');
  t.deepEqual(await told(host), []);
  await kube.startApiServer();
  await kube.must('DELETE', `${POLICIES}/web`);
  await until('everybody is let in at the end', EVERYBODY);
});

async function served(t: ExecutionContext<unknown>) {
  const network = await TestNetwork.create(t, ['client', 'other', 'a', 'm1', 'm2']);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  for (const member of ['m1', 'm2']) {
    answerDatagrams(network, member);
    answerConnections(network, member);
  }
  const kubeconfig = await kubeconfigOf(kube, NAMESPACE, 'headgate');
  const flags = ['--enforce-network-policy', 'ingress', '--kubeconfig', kubeconfig];
  const host = await TestHost.create(t, { flags: [...flags, '--netns', network.netns('a'), ...nftFlags] });
  const { stdout: refusal } = await host.command('check');
  await apply(kube, 'policies/rbac.yaml');
  await createPod('web-1', 'web', network.v4('m1'));
  await kube.must('POST', servicePath('default'), {
    metadata: {
      name: 'echo',
      annotations: { 'headgate.io/load-balancer-ips': VIP },
    },
    spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports: PORTS },
  });
  await kube.must('POST', slicePath('default'), sliceOf(network, ['m1'], ['web-1']));
  const agent = await host.start();
  return { network, host, agent, refusal };
}

function sliceOf(network: TestNetwork, members: readonly string[], pods: readonly string[]): Json {
  return {
    metadata: { name: 'echo-1', labels: { 'kubernetes.io/service-name': 'echo' } },
    addressType: 'IPv4',
    ports: PORTS.map((port) => ({ ...port, port: UDP_MEMBER_PORT })),
    endpoints: members.map((member, at) => ({
      addresses: [network.v4(member)],
      targetRef: { kind: 'Pod', name: pods[at], namespace: 'default' },
    })),
  };
}

async function setSlice(network: TestNetwork, members: readonly string[], pods: readonly string[]) {
  await kube.must('PUT', slicePath('default', 'echo-1'), sliceOf(network, members, pods));
}

async function createPod(name: string, app: string, address: string): Promise<void> {
  await kube.must('POST', PODS, {
    metadata: { name, labels: { app } },
    spec: {
      containers: [
        {
          name: 'echo',
          image: 'echo',
          ports: [{ name: 'dns', containerPort: UDP_MEMBER_PORT, protocol: 'UDP' }],
        },
      ],
    },
  });
  const status = { phase: 'Running', podIP: address, podIPs: [{ ip: address }] };
  await kube.must('PATCH', `${PODS}/${name}/status`, { status }, MERGE);
}

async function relabel(name: string, app: string): Promise<void> {
  await kube.must('PATCH', `${PODS}/${name}`, { metadata: { labels: { app } } }, MERGE);
}

/** For pods with the label `app` of this value. */
async function setPolicy(app: string, spec: Json): Promise<void> {
  const policy = {
    metadata: { name: app },
    spec: { podSelector: { matchLabels: { app } }, policyTypes: ['Ingress'], ...spec },
  };
  const { status } = await kube.api('GET', `${POLICIES}/${app}`);
  if (status === 404) await kube.must('POST', POLICIES, policy);
  else await kube.must('PUT', `${POLICIES}/${app}`, policy);
}

async function told(host: TestHost): Promise<readonly string[]> {
  return (await host.why('default/echo')).problems.map(({ message }) => message);
}

async function isAnsweredByUdp(network: TestNetwork, host: string): Promise<boolean> {
  return (await askByDatagrams(network, VIP, PORT, { host })).by[0]?.startsWith('m') === true;
}

async function isAnsweredByTcp(network: TestNetwork, host: string): Promise<boolean> {
  const script = `const socket = require('net').connect(${PORT}, '${VIP}'); socket.setTimeout(2000, () => socket.destroy());
    let text = ''; socket.on('data', (data) => { text += data; }); socket.on('error', () => 0); socket.on('close', () => process.exit(text.startsWith('m') ? 0 : 1));`;
  const child = network.start(host, process.execPath, '-e', script);
  return (await new Promise((resolve) => child.once('close', resolve))) === 0;
}

/** A host answers each connection with its name. */
function answerConnections(network: TestNetwork, host: string): void {
  const script = `require('net').createServer((socket) => { socket.on('error', () => 0); socket.end('${host}'); }).listen(${UDP_MEMBER_PORT})`;
  network.start(host, process.execPath, '-e', script);
}
