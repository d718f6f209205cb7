// Runs kubectl and helm as a cluster's administrator, or with another kubeconfig. kube-assets.sh brings them.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Kube, kubePrograms } from './kube.ts';

const run = promisify(execFile);

export interface Tool {
  /** Resolves with stdout. Errors: with stderr, if the status is not 0. */
  (args: readonly string[], input?: string): Promise<string>;
  readonly path: string;
}

export async function tool(name: 'kubectl' | 'helm', kubeconfig: string): Promise<Tool> {
  const { [name]: path = '' } = await kubePrograms([name]);
  const call = async (args: readonly string[], input = '') => {
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    const running = run(path, args, { env, maxBuffer: 1 << 24 });
    running.child.stdin?.end(input);
    return (await running).stdout;
  };
  return Object.assign(call, { path });
}

export function kubectlOf(kube: Kube): Promise<Tool> {
  return tool('kubectl', kube.kubeconfig);
}
