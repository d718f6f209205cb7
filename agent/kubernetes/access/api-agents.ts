// The kept-alive connections to the API server: Node's agents for each proxy on the way, replaced when a certificate has
// changed. The only file that imports @kubernetes/client-node, and only for a SOCKS proxy: the library takes 90 MB.
// Owns connections and close().

import type { Agent, RequestOptions } from 'node:https';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { http, https, tls } from '../../host/node-http.ts';
import type { Credentials, TlsOptions } from './credentials.ts';
import { type Environment, isSocks, proxyOf, throughProxy } from './proxy.ts';

interface Agents {
  readonly tls: TlsOptions;
  readonly http: Agent;
  readonly https: Agent;
}

/** TCP's own probes of an idle connection begin after this time; the kernel repeats them once a second, ten times. */
const KEEP_ALIVE_MS = 15_000;

export class ApiAgents {
  readonly #env: Environment;
  /** By the URL of the proxy, '' for none. */
  readonly #agents = new Map<string, Agents>();

  /** `env`: the proxies of a configuration that names none. */
  constructor(env: Environment) {
    this.#env = env;
  }

  /** Requests under way over the agent of an old certificate end over it. Errors: API_CREDENTIALS. */
  async for(url: URL, credentials: Credentials): Promise<RequestOptions> {
    const proxy = credentials.proxy ?? proxyOfEnvironment(url, this.#env) ?? '';
    let agents = this.#agents.get(proxy);
    if (agents?.tls !== credentials.tls) {
      for (const socket of Object.values(agents?.https.freeSockets ?? {}).flat()) socket?.destroy();
      agents = await (isSocks(proxy) ? socksAgents(proxy, credentials) : agentsThrough(proxy, credentials));
      this.#agents.set(proxy, agents);
    }
    if (isSocks(proxy)) return { agent: agents.https, ...serverIdentity(url, credentials.tls) };
    return { agent: url.protocol === 'http:' ? agents.http : agents.https };
  }

  close(): void {
    for (const { http, https } of this.#agents.values()) {
      http.destroy();
      https.destroy();
    }
  }
}

function agentsThrough(proxy: string, { tls }: Credentials): Agents {
  const kept = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, scheduling: 'lifo' } as const;
  const options = { ...kept, ...throughProxy(proxy) };
  return { tls, http: new http.Agent(options) as Agent, https: new (https().Agent)({ ...options, ...tls }) };
}

async function socksAgents(proxyUrl: string, { server, tls }: Credentials): Promise<Agents> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const cluster = { name: 'cluster', server, proxyUrl, skipTLSVerify: tls.rejectUnauthorized === false };
  config.loadFromClusterAndUser(cluster, { name: 'user' });
  const options: RequestOptions = { ...tls };
  await config.applyToHTTPSOptions(options);
  const agent = options.agent as Agent;
  return { tls, http: agent, https: agent };
}

/** The SOCKS agent would check the certificate of a server without a DNS name against the name "localhost". */
function serverIdentity({ hostname }: URL, { servername }: TlsOptions): RequestOptions {
  const name = servername ?? hostname.replace(/^\[(.*)\]$/, '$1');
  return { checkServerIdentity: (_, certificate) => tls().checkServerIdentity(name, certificate) };
}

function proxyOfEnvironment(url: URL, env: Environment): string | undefined {
  try {
    return proxyOf(url, env);
  } catch (error) {
    const message = `Cannot use the proxy of the environment: ${messageOf(error)}`;
    throw new HeadgateError('API_CREDENTIALS', message);
  }
}
