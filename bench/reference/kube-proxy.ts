// Starts kube-proxy in nftables mode in its own network, with the fastest settings that it has.

import { writeFileSync } from 'node:fs';
import { type Running, start } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';

export interface KubeProxyOptions {
  readonly program: string;
  readonly kubeconfig: string;
  /** A command that executes the words after it in kube-proxy's network. */
  readonly within: readonly string[];
}

/** Returns at once. kube-proxy then serves cluster IPs. */
export function startKubeProxy(
  scratch: Scratch,
  name: string,
  { program, kubeconfig, within }: KubeProxyOptions,
): Running {
  const config = scratch.path(`${name}.json`);
  const unchanged = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' };
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      nftables: { minSyncPeriod: '1ms' },
      clientConnection: { kubeconfig },
      conntrack: unchanged,
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
