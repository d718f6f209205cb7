// A real API server with everything that the benchmarks put beside it: the agent, the bound and kube-proxy, each with a
// namespace of its own. All of it goes with the scratch.

import { writeFileSync } from 'node:fs';
import { type Kube, kubePrograms, startKube } from '../../test/support/kube.ts';
import { startKubeProxy } from '../reference/kube-proxy.ts';
import { type Agent, startAgent } from '../support/agent.ts';
import { type Running, startModule } from '../support/processes.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { prepareNetwork, startNetworks } from './networks.ts';

/** The name of the Node, and kube-proxy's idea of its own. */
const NODE = { metadata: { name: 'bench' } };
const NODE_STATUS = { status: { addresses: [{ type: 'InternalIP', address: '10.255.255.1' }] } };
const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-proxy'];

/** Builds what is missing of them, which takes some minutes, once; says so. */
export async function buildPrograms(): Promise<void> {
  await kubePrograms(PROGRAMS);
}

export class Rig {
  readonly kube: Kube;
  /** A command that becomes what follows it, in the network of kube-proxy. */
  readonly other: readonly string[];
  readonly #bench: Bench;
  readonly #scratch: Scratch;

  private constructor(bench: Bench, scratch: Scratch, kube: Kube, other: readonly string[]) {
    this.kube = kube;
    this.other = other;
    this.#bench = bench;
    this.#scratch = scratch;
  }

  static async start(bench: Bench, scratch: Scratch): Promise<Rig> {
    prepareNetwork();
    const kube = await startKube();
    scratch.defer(() => kube.stop());
    const other = await startNetworks(scratch, bench.haproxy, kube.url);
    await kube.must('POST', '/api/v1/nodes', NODE);
    await kube.must('PATCH', '/api/v1/nodes/bench/status', NODE_STATUS);
    writeFileSync(scratch.path('ca.crt'), kube.ca);
    return new Rig(bench, scratch, kube, other);
  }

  startAgent(name: string, namespace: string): Agent {
    const source = ['--kubeconfig', this.kube.kubeconfig, '--namespaces', namespace];
    source.push('--lease-namespace', namespace);
    return startAgent(this.#scratch, source, { name, haproxy: this.#bench.haproxy });
  }

  /** Answers `ask` once it serves. */
  startBound(
    name: string,
    namespace: string,
  ): Running & { readonly ask: <T>(question: object) => Promise<T> } {
    const module = new URL('../reference/bound-api-process.ts', import.meta.url);
    const { url, adminToken } = this.kube;
    const args = [url, this.#scratch.path('ca.crt'), adminToken, namespace, this.#bench.haproxy];
    return startModule(this.#scratch, name, module, args);
  }

  /** Serves what is of type ClusterIP, in all namespaces. */
  async startKubeProxy(name: string): Promise<Running> {
    const { 'kube-proxy': program = '' } = await kubePrograms(['kube-proxy']);
    const { kubeconfig } = this.kube;
    return startKubeProxy(this.#scratch, name, { program, kubeconfig, within: this.other });
  }
}
