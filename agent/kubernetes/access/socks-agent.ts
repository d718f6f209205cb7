// An agent for HTTP through a SOCKS proxy, made by the Kubernetes client library. The only file that imports
// @kubernetes/client-node, and only when a kubeconfig names such a proxy: the library takes 90 MB.

import type { Agent, RequestOptions } from 'node:https';

/** For requests to `server` with these options of TLS. */
export async function socksAgent(proxyUrl: string, server: string, tls: RequestOptions): Promise<Agent> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const cluster = { name: 'cluster', server, proxyUrl, skipTLSVerify: tls.rejectUnauthorized === false };
  config.loadFromClusterAndUser(cluster, { name: 'user' });
  const options = { ...tls };
  await config.applyToHTTPSOptions(options);
  return options.agent as Agent;
}
