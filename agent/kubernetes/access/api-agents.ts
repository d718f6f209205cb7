// The kept-alive connections to the API server: an agent of Node's for each proxy, made anew where a certificate has
// changed. Owns connections and close().

import type { Agent } from 'node:http';
import type { Agent as TlsAgent } from 'node:https';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { http, https } from '../../host/node-http.ts';
import type { Credentials } from './credentials.ts';
import { type Environment, proxyOf, throughProxy } from './proxy.ts';

interface Agents {
  readonly tls: Credentials['tls'];
  readonly http: Agent;
  readonly https: TlsAgent;
}

/** TCP's own search for a peer that is gone without a word; the kernel then asks once a second, ten times. */
const KEEP_ALIVE_MS = 15_000;

export class ApiAgents {
  readonly #env: Environment;
  /** By the URL of the proxy, '' for none. */
  readonly #agents = new Map<string, Agents>();

  /** `env` says where there is a proxy. */
  constructor(env: Environment) {
    this.#env = env;
  }

  /** A new one only where a certificate has changed; requests under way over the old one end as they will. */
  for(url: URL, { tls, proxy }: Credentials): Agent {
    const through = proxy ?? proxyOfEnvironment(url, this.#env);
    let agents = this.#agents.get(through ?? '');
    if (agents === undefined || agents.tls !== tls) {
      for (const socket of Object.values(agents?.https.freeSockets ?? {}).flat()) socket?.destroy();
      const kept = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, scheduling: 'lifo' } as const;
      const options = { ...kept, ...throughProxy(through) };
      agents = { tls, http: new http.Agent(options), https: new (https().Agent)({ ...options, ...tls }) };
      this.#agents.set(through ?? '', agents);
    }
    return url.protocol === 'http:' ? agents.http : agents.https;
  }

  close(): void {
    for (const { http, https } of this.#agents.values()) {
      http.destroy();
      https.destroy();
    }
  }
}

function proxyOfEnvironment(url: URL, env: Environment): string | undefined {
  try {
    return proxyOf(url, env);
  } catch (error) {
    const message = `Cannot go through the proxy of the environment: ${messageOf(error)}`;
    throw new HeadgateError('API_CREDENTIALS', message);
  }
}
