// kube-proxy in nftables mode as fast as its settings allow, in a network of its own.

import { writeFileSync } from 'node:fs';
import { type Running, start } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';

export interface KubeProxyOptions {
  readonly program: string;
  readonly kubeconfig: string;
  /** A command that becomes what follows it, in the network whose packets it is to rule. */
  readonly within: readonly string[];
}

/** Returns at once. Serves cluster IPs. */
export function startKubeProxy(
  scratch: Scratch,
  name: string,
  { program, kubeconfig, within }: KubeProxyOptions,
): Running {
  const config = scratch.path(`${name}.json`);
  const keepsAsItIs = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' };
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      nftables: { minSyncPeriod: '1ms' },
      clientConnection: { kubeconfig },
      conntrack: keepsAsItIs,
      oomScoreAdj: 0,
      hostnameOverride: 'bench',
      bindAddress: '127.0.0.1',
      healthzBindAddress: '127.0.0.1:10256',
      metricsBindAddress: '127.0.0.1:10249',
      clusterCIDR: '10.128.0.0/9',
    }),
  );
  const [command = program, ...rest] = [...within, program, '--config', config];
  return start(scratch, name, command, rest);
}
