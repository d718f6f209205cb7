// A real API server with the agent, the lower bound and kube-proxy. All of it ends with the scratch.

import { writeFileSync } from 'node:fs';
import { Kube, kubePrograms } from '../../test/support/kube/kube.ts';
import { run } from '../pair/network.ts';
import { startKubeProxy } from '../reference/kube-proxy.ts';
import { type Agent, startAgent } from '../support/agent.ts';
import { type Running, startModule } from '../support/processes.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { type Networks, startNetworks } from './networks.ts';
import { Prober } from './prober.ts';

/** kube-proxy reads the Node with its own name. */
const NODE = { metadata: { name: 'bench' } };
const NODE_STATUS = { status: { addresses: [{ type: 'InternalIP', address: '10.255.255.1' }] } };
/** For rows without kube-proxy. */
export const API_SERVER = ['etcd', 'kube-apiserver'];

/** Builds the missing programs, which takes some minutes the first time. */
export async function buildPrograms(
  programs: readonly string[] = [...API_SERVER, 'kube-proxy'],
): Promise<void> {
  await kubePrograms(programs);
}

export class Rig {
  readonly kube: Kube;
  readonly #bench: Bench;
  readonly #networks: Networks;
  readonly #ca: string;

  private constructor(bench: Bench, kube: Kube, networks: Networks, ca: string) {
    this.kube = kube;
    this.#bench = bench;
    this.#networks = networks;
    this.#ca = ca;
  }

  static async start(bench: Bench, scratch: Scratch): Promise<Rig> {
    const { api, networks } = await startNetworks(scratch, bench.haproxy, async () => {
      const kube = await Kube.start();
      scratch.defer(() => kube.stop());
      return kube;
    });
    await api.must('POST', '/api/v1/nodes', NODE);
    await api.must('PATCH', '/api/v1/nodes/bench/status', NODE_STATUS);
    const ca = scratch.path('ca.crt');
    writeFileSync(ca, api.ca);
    return new Rig(bench, api, networks, ca);
  }

  /** `within`: a command that executes the words after it in another network. */
  startAgent(scratch: Scratch, name: string, namespace: string, within: readonly string[] = []): Agent {
    const source = ['--kubeconfig', this.kube.kubeconfig, '--namespaces', namespace];
    // Each agent has its own Lease.
    source.push('--lease-namespace', namespace);
    return startAgent(scratch, source, { name, haproxy: this.#bench.haproxy, within });
  }

  /** The process answers `ask` when it serves. */
  startBound(scratch: Scratch, name: string, namespace: string): Bound {
    return this.#startBound(scratch, name, namespace, this.#bench.haproxy);
  }

  /** A network for contenders of the kernel path, with a prober. */
  async networkOfKernel(scratch: Scratch): Promise<KernelNetwork> {
    const { within } = await this.#networks.other(scratch);
    run([...within, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    return {
      prober: new Prober(scratch, 'other', within),
      startAgent: (namespace) => this.startAgent(scratch, namespace, namespace, within),
      startBound: (namespace) => this.#startBound(scratch, namespace, namespace, '', within),
    };
  }

  /** Without `haproxy` a bound of the kernel path. */
  #startBound(
    scratch: Scratch,
    name: string,
    namespace: string,
    haproxy: string,
    within: readonly string[] = [],
  ): Bound {
    const module = new URL('../reference/bound-api-process.ts', import.meta.url);
    const { url, adminToken } = this.kube;
    return startModule(scratch, name, module, [url, this.#ca, adminToken, namespace, haproxy], within);
  }

  /** A network for kube-proxy without any rule, with a prober. */
  async networkOfKubeProxy(scratch: Scratch): Promise<KubeProxyNetwork> {
    const { within } = await this.#networks.other(scratch);
    const { 'kube-proxy': program = '' } = await kubePrograms(['kube-proxy']);
    const { kubeconfig } = this.kube;
    return {
      prober: new Prober(scratch, 'other', within),
      start: () => startKubeProxy(scratch, 'kube-proxy', { program, kubeconfig, within }),
    };
  }
}

export type Bound = ReturnType<typeof startModule>;

export interface KernelNetwork {
  readonly prober: Prober;
  /** Return at once. */
  readonly startAgent: (namespace: string) => Agent;
  readonly startBound: (namespace: string) => Bound;
}

export interface KubeProxyNetwork {
  readonly prober: Prober;
  /** Returns at once. kube-proxy then serves the cluster IPs of all namespaces. */
  readonly start: () => Running;
}
