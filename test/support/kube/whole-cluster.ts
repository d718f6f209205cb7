// Starts a whole Kubernetes cluster with a load-balancer host beside it, each host a network namespace: API server, scheduler
// and controllers in this one, which is also the client outside, and nodes that run pods as processes. For a process that
// has network, mount and PID namespaces of its own (`unshare`): it removes nothing, because all ends with them.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inNamespace } from '../../../agent/host/namespace.ts';
import { runCommand } from '../../../agent/host/run-command.ts';
import { until } from '../basics/until.ts';
import { apply, deploy, kubeconfigOf, NAMESPACE } from './deploy.ts';
import { Kube } from './kube.ts';

/** What every cluster needs. */
export const CLUSTER_PROGRAMS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
] as const;

export interface ClusterOptions {
  /** For logs and files. */
  readonly folder: string;
  readonly nodes: readonly string[];
  /** Name → path, of CLUSTER_PROGRAMS and perhaps kube-proxy; without it, cluster IPs and node ports lead nowhere. */
  readonly programs: Readonly<Record<string, string>>;
  /** Name of an image → the program that its containers run. */
  readonly images: Readonly<Record<string, string>>;
  /** Settings; with `clusterIPs`, packets for cluster IPs and external IPs go past kube-proxy to Headgate's host. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Packets of pods to others than their node go through Headgate's host, as gateway mode needs. */
  readonly isGateway?: boolean;
}

/** This namespace's address on the network of hosts. */
const CONTROL_PLANE = '10.20.0.1';
const LOAD_BALANCER = '10.20.0.2';
const HOSTS_PREFIX = 16;
/** The address of this namespace as a client of VIPs: outside the network of hosts. */
const CLIENT = '198.51.100.1';
/** Addresses for Services of type LoadBalancer and for Gateways. */
const VIPS = '10.245.0.0/24';
const PODS = '10.244.0.0/16';
const CLUSTER_IPS = '10.96.0.0/16';
/** External IPs of the tests. */
const EXTERNAL_IPS = '203.0.113.0/24';
const LOAD_BALANCER_HOST = 'load-balancer';

const CONTROLLERS = [
  'daemonset-controller',
  'endpoints-controller',
  'root-ca-certificate-publisher-controller',
];

/** Packets that are not tracked skip the rules of kube-proxy for these addresses. */
const PAST_KUBE_PROXY = `table ip past-kube-proxy {
  set balanced { type ipv4_addr; flags interval; elements = { ${CLUSTER_IPS}, ${EXTERNAL_IPS} } }
  chain prerouting {
    type filter hook prerouting priority raw;
    ip daddr @balanced notrack
    ip saddr @balanced notrack
  }
  chain output { type filter hook output priority raw; ip daddr @balanced notrack; }
}`;

const nodeAddress = (at: number) => `10.20.0.${11 + at}`;
const podsOf = (at: number) => `10.244.${1 + at}.0/24`;

export class WholeCluster {
  readonly kube: Kube;
  readonly #options: ClusterOptions;

  static async start(options: ClusterOptions): Promise<WholeCluster> {
    await makeNetwork(options);
    const kube = await Kube.start({
      address: CONTROL_PLANE,
      controllerManager: true,
      controllers: CONTROLLERS,
      clusterIPs: CLUSTER_IPS,
      flags: [
        '--service-node-port-range=30000-32767',
        // It gives new Nodes a taint that the node lifecycle controller removes, which does not run here.
        '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
        '--kubelet-preferred-address-types=InternalIP',
      ],
    });
    const cluster = new WholeCluster(options, kube);
    await cluster.#startNodes();
    return cluster;
  }

  private constructor(options: ClusterOptions, kube: Kube) {
    this.#options = options;
    this.kube = kube;
  }

  /** As deployed on a load-balancer host: its own account's rights, an address pool, HAProxy and the kernel. */
  async startHeadgate(program: string): Promise<ChildProcess> {
    await deploy(this.kube);
    await apply(this.kube, 'tls/all-namespaces.yaml');
    const folder = join(this.#options.folder, 'headgate');
    await mkdir(folder);
    const settings = {
      kubeconfig: await kubeconfigOf(this.kube, NAMESPACE, 'headgate'),
      stateDir: join(folder, 'state'),
      runtimeDir: join(folder, 'run'),
      pools: [{ name: 'vips', blocks: [VIPS] }],
      logLevel: 'debug',
      ...this.#options.settings,
    };
    const config = join(folder, 'headgate.yaml');
    await writeFile(config, JSON.stringify(settings));
    return this.#start(LOAD_BALANCER_HOST, 'headgate', program, ['run', '--config', config]);
  }

  async #startNodes(): Promise<void> {
    const { folder, nodes, images, programs } = this.#options;
    const withKubeconfig = `--kubeconfig=${this.kube.kubeconfig}`;
    this.#start(undefined, 'kube-scheduler', this.#program('kube-scheduler'), [
      withKubeconfig,
      '--leader-elect=false',
      '--secure-port=0',
    ]);
    for (const [at, node] of nodes.entries()) {
      await mkdir(join(folder, node));
      this.#start(node, `kubelet-${node}`, this.#program('kubelet'), [
        withKubeconfig,
        `--node=${node}`,
        `--address=${nodeAddress(at)}`,
        `--pods=${podsOf(at)}`,
        `--folder=${join(folder, node)}`,
        ...Object.entries(images).map(([name, program]) => `--image=${name}=${program}`),
      ]);
      await until(
        `${node} is ready`,
        async () => (await this.kube.api('GET', `/api/v1/nodes/${node}`)).status === 200,
      );
      if (programs['kube-proxy'] !== undefined) this.#startKubeProxy(node, withKubeconfig);
    }
  }

  #startKubeProxy(node: string, kubeconfig: string): void {
    this.#start(node, `kube-proxy-${node}`, this.#program('kube-proxy'), [
      kubeconfig,
      `--hostname-override=${node}`,
      '--proxy-mode=nftables',
      `--cluster-cidr=${PODS}`,
      // These are the machine's, not the node's.
      '--conntrack-max-per-core=0',
      '--conntrack-min=0',
      '--conntrack-tcp-timeout-established=0s',
      '--conntrack-tcp-timeout-close-wait=0s',
    ]);
  }

  #program(name: string): string {
    return this.#options.programs[name] ?? name;
  }

  #start(host: string | undefined, name: string, program: string, args: readonly string[]): ChildProcess {
    const [outer, words] = host === undefined ? [program, args] : inNamespace(host, program, args);
    const log = openSync(join(this.#options.folder, `${name}.log`), 'a');
    return spawn(outer, words, { stdio: ['ignore', log, log] });
  }
}

/** A bridge joins the hosts; each has routes to the pods of the nodes and to the VIPs. */
async function makeNetwork({ nodes, settings, isGateway = false }: ClusterOptions): Promise<void> {
  mkdirSync('/run/netns', { recursive: true });
  await run('mount', ['-t', 'tmpfs', 'netns', '/run/netns']);
  await run('ip', ['link', 'set', 'lo', 'up']);
  await run('ip', ['link', 'add', 'hosts', 'type', 'bridge', 'forward_delay', '0']);
  await run('ip', ['address', 'add', `${CONTROL_PLANE}/${HOSTS_PREFIX}`, 'dev', 'hosts']);
  await run('ip', ['link', 'set', 'hosts', 'up']);
  const addresses = [
    [LOAD_BALANCER_HOST, LOAD_BALANCER],
    ...nodes.map((node, at) => [node, nodeAddress(at)]),
  ] as const;
  const routes = nodes.map((_, at) => [podsOf(at), nodeAddress(at)]);
  const balanced = settings.clusterIPs === true ? [VIPS, CLUSTER_IPS, EXTERNAL_IPS] : [VIPS];
  for (const range of balanced) routes.push([range, LOAD_BALANCER]);
  for (const [host = '', address = ''] of addresses) {
    await run('ip', ['netns', 'add', host]);
    await run('ip', ['link', 'add', host, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', host]);
    await run('ip', ['link', 'set', host, 'master', 'hosts', 'up']);
    await ipIn(host, 'link', 'set', 'lo', 'up');
    await ipIn(host, 'address', 'add', `${address}/${HOSTS_PREFIX}`, 'dev', 'eth0');
    await ipIn(host, 'link', 'set', 'eth0', 'up');
    await ipIn(host, 'route', 'add', 'default', 'via', CONTROL_PLANE);
    await addRoutes(['-n', host], address, routes);
    await run(...inNamespace(host, 'sysctl', ['-qw', 'net.ipv4.ip_forward=1']));
  }
  await run('ip', ['address', 'add', `${CLIENT}/32`, 'dev', 'lo']);
  await addRoutes([], CONTROL_PLANE, routes);
  for (const range of balanced)
    await run('ip', ['route', 'replace', range, 'via', LOAD_BALANCER, 'src', CLIENT]);
  await run(...inNamespace(LOAD_BALANCER_HOST, 'sysctl', ['-qw', 'net.ipv4.ip_nonlocal_bind=1']));
  for (const range of balanced) await ipIn(LOAD_BALANCER_HOST, 'route', 'add', 'local', range, 'dev', 'lo');
  if (settings.clusterIPs === true)
    for (const node of nodes) await run(...inNamespace(node, 'nft', [PAST_KUBE_PROXY]));
  if (isGateway) await routePodsThroughLoadBalancer(nodes);
}

/** Also those to pods of the same node: a member answers its client past the load balancer otherwise. */
async function routePodsThroughLoadBalancer(nodes: readonly string[]): Promise<void> {
  const table = '100';
  for (const node of nodes) {
    await ipIn(node, 'rule', 'add', 'iif', 'eth0', 'lookup', 'main', 'priority', '100');
    await ipIn(node, 'rule', 'add', 'from', PODS, 'lookup', table, 'priority', '101');
    await ipIn(node, 'route', 'add', 'default', 'via', LOAD_BALANCER, 'table', table);
  }
  for (const each of ['all', 'eth0'])
    await run(
      ...inNamespace(LOAD_BALANCER_HOST, 'sysctl', ['-qw', `net.ipv4.conf.${each}.send_redirects=0`]),
    );
}

async function addRoutes(
  where: string[],
  own: string,
  routes: readonly (readonly string[])[],
): Promise<void> {
  for (const [range = '', via = ''] of routes) {
    if (via !== own) await run('ip', [...where, 'route', 'add', range, 'via', via]);
  }
}

function ipIn(host: string, ...args: readonly string[]): Promise<void> {
  return run('ip', ['-n', host, ...args]);
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runCommand(program, args, { timeout: 10_000 });
  if (exitCode !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
}
