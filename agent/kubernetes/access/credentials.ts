// Who we are to the API server, and where it is: kubeconfig or the service account of a pod, with every kind of
// credential that the Kubernetes client library knows. Follows files that rotate. The only file that imports
// @kubernetes/client-node, and only for what plain-credentials.ts leaves to it (plugins, SOCKS): it costs 90 MB.
// No error here quotes a file, a plugin's output or a token.

import { readFile, stat } from 'node:fs/promises';
import type { Agent, RequestOptions } from 'node:https';
import { dirname, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { isMapping } from '../../base/validate.ts';
import { parseYamlDocuments } from '../../base/yaml.ts';
import { type AuthProvider, AuthProviderTokens, readAuthProvider } from './auth-provider.ts';
import { CredentialFault } from './credential-fault.ts';
import { limitPlugins, PluginTooSlow } from './credential-plugin.ts';
import { type Credentials, plainCredentials, podConfig, readPlainKubeconfig } from './plain-credentials.ts';
import { proxyUrl } from './proxy.ts';

export type { Credentials } from './plain-credentials.ts';

export type CredentialsPlace =
  | { readonly kind: 'Kubeconfig'; readonly path: string }
  /** `root` stands for `/` in tests. */
  | { readonly kind: 'InCluster'; readonly root?: string };

/** Milliseconds that credentials are used before the files are looked at again. */
const FRESH = 30_000;
/** Milliseconds that a credential plugin may take. */
const PLUGIN_TIMEOUT = 15_000;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const TLS_FIELDS = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'servername', 'rejectUnauthorized'] as const;

export class CredentialsSource {
  readonly #place: CredentialsPlace;
  readonly #pluginTimeoutMs: number;
  readonly #now: () => number;
  readonly #tokens: AuthProviderTokens;
  #config: (Loaded & { readonly stamp: string }) | undefined;
  #current: { readonly credentials: Credentials; readonly since: number } | undefined;
  /** One at a time, for all who ask. */
  #reading: Promise<Credentials> | undefined;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(
    place: CredentialsPlace,
    pluginTimeoutMs: number = PLUGIN_TIMEOUT,
    now: () => number = () => performance.now(),
  ) {
    this.#place = place;
    this.#pluginTimeoutMs = pluginTimeoutMs;
    this.#tokens = new AuthProviderTokens({ timeoutMs: pluginTimeoutMs });
    this.#now = now;
  }

  /**
   * Read again when they are older than half a minute; where that fails, the old ones are used on.
   * Errors: API_CREDENTIALS where there have never been any.
   */
  async current(): Promise<Credentials> {
    const current = this.#current;
    if (current !== undefined && this.#now() - current.since < FRESH) return current.credentials;
    try {
      return await this.#read(false);
    } catch (error) {
      if (current === undefined) throw error;
      this.#current = { credentials: current.credentials, since: this.#now() };
      return current.credentials;
    }
  }

  /** After a 401: everything from the beginning, plugins too, unless someone has done so since `refused` was given. */
  async renewed(refused: Credentials): Promise<Credentials> {
    const current = this.#current?.credentials;
    if (current !== undefined && current !== refused) return current;
    return this.#read(true);
  }

  #read(anew: boolean): Promise<Credentials> {
    this.#reading ??= this.#readNow(anew).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(anew: boolean): Promise<Credentials> {
    try {
      const credentials = (await this.#plain(anew)) ?? (await this.#byLibrary(anew));
      this.#current = { credentials, since: this.#now() };
      return credentials;
    } catch (error) {
      throw new HeadgateError('API_CREDENTIALS', `Cannot use ${this.#name()}: ${harmless(error)}`);
    }
  }

  /** undefined for a kubeconfig that takes the library. */
  async #plain(anew: boolean): Promise<Credentials | undefined> {
    if (this.#place.kind === 'InCluster') {
      const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
      if (!host || !port)
        throw new CredentialFault('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
      return plainCredentials(podConfig(host, port, join(this.#place.root ?? '/', SERVICE_ACCOUNT)));
    }
    const config = readPlainKubeconfig(await readFile(this.#place.path, 'utf8'), this.#place.path);
    return config && plainCredentials(config, (provider) => this.#tokens.token(provider, anew));
  }

  async #byLibrary(anew: boolean): Promise<Credentials> {
    const stamp = await this.#stamp();
    if (anew || this.#config?.stamp !== stamp) this.#config = { ...(await this.#load()), stamp };
    const { config, provider } = this.#config;
    const token = provider && (await this.#tokens.token(provider, anew));
    return credentialsOf(config, token);
  }

  async #load(): Promise<Loaded> {
    const { KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    limitPlugins(config, this.#pluginTimeoutMs);
    if (this.#place.kind === 'Kubeconfig') {
      config.loadFromFile(this.#place.path);
      await addTokenFiles(config, this.#place.path);
    }
    if (!config.getCurrentCluster()?.server) throw new CredentialFault('it names no API server');
    if (config.getCurrentUser() === null) throw new CredentialFault('its current context names no user');
    refuseUnusable(config);
    return {
      config,
      provider: this.#place.kind === 'Kubeconfig' ? takeProvider(config, this.#place.path) : undefined,
    };
  }

  /** Differs when a file has changed that the library reads only once. */
  async #stamp(): Promise<string> {
    const paths = this.#place.kind === 'Kubeconfig' ? [this.#place.path] : [];
    const tokenFile = this.#tokenFile();
    if (tokenFile !== undefined) paths.push(tokenFile);
    const stamps = paths.map(async (path) => {
      const { mtimeMs, size, ino } = await stat(path);
      return `${path} ${ino} ${size} ${mtimeMs}`;
    });
    return (await Promise.all(stamps)).join('\n');
  }

  #tokenFile(): string | undefined {
    const provider: unknown = this.#config?.config.getCurrentUser()?.authProvider;
    const file = (provider as { config?: { tokenFile?: unknown } } | null | undefined)?.config?.tokenFile;
    return typeof file === 'string' ? file : undefined;
  }

  #name(): string {
    return this.#place.kind === 'Kubeconfig'
      ? `the kubeconfig ${quote(this.#place.path)}`
      : "the pod's service account";
  }
}

interface Loaded {
  readonly config: KubeConfig;
  /** Taken out of the library's hands. */
  readonly provider: AuthProvider | undefined;
}

/** What the library would say in words that we could not repeat, or would pass over without a word. */
function refuseUnusable(config: KubeConfig): void {
  const { server = '', skipTLSVerify } = config.getCurrentCluster() ?? {};
  if (/^http:/i.test(server) && !skipTLSVerify) {
    throw new CredentialFault(
      'its server has no TLS, and "insecure-skip-tls-verify" does not say that this is meant',
    );
  }
  const { authProvider, exec } = config.getCurrentUser() ?? {};
  if (!authProvider) return;
  if (exec) throw new CredentialFault('its user has both "exec" and "auth-provider"');
  const { name, config: own } = authProvider as { readonly name?: unknown; readonly config?: unknown };
  const [isOurs, isPlugin] = [readAuthProvider(authProvider, '') !== undefined, name === 'exec'];
  const isKnown = isOurs || isPlugin || (isMapping(own) && (own.exec || own.tokenFile));
  if (!isKnown) throw new CredentialFault(`its auth provider ${quote(String(name))} is not known`);
}

/** The library's own ways with these are not ours, see auth-provider.ts. */
function takeProvider(config: KubeConfig, path: string): AuthProvider | undefined {
  const own = config.getCurrentUser();
  const provider = readAuthProvider(own?.authProvider, dirname(path));
  if (provider !== undefined)
    config.users = config.users.map((user) => (user === own ? { ...user, authProvider: undefined } : user));
  return provider;
}

/** `tokenFile` of a user (client-go's api/v1, AuthInfo) is unknown to the library: we tell it in words it knows. */
async function addTokenFiles(config: KubeConfig, path: string): Promise<void> {
  const root: unknown = parseYamlDocuments(await readFile(path, 'utf8')).documents[0]?.value;
  const entries = isMapping(root) && Array.isArray(root.users) ? root.users : [];
  const files = new Map<unknown, string>();
  for (const entry of entries) {
    const file: unknown = entry?.user?.tokenFile ?? entry?.user?.['token-file'];
    if (typeof file === 'string') files.set(entry.name, resolve(dirname(path), file));
  }
  config.users = config.users.map((user) => {
    const tokenFile = files.get(user.name);
    if (tokenFile === undefined) return user;
    // The file has precedence over a token, as kubectl has it.
    const { token: _, ...rest } = user;
    return { ...rest, authProvider: { name: 'tokenFile', config: { tokenFile } } };
  });
}

/** `token`: counts where the library has none. */
async function credentialsOf(config: KubeConfig, token = ''): Promise<Credentials> {
  const options: RequestOptions = { headers: {} };
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    const exec: unknown = config.getCurrentUser()?.exec;
    const command = (exec as { command?: unknown } | null | undefined)?.command;
    if (typeof command !== 'string' || isOfTheSystem(error)) throw error;
    const what = error instanceof PluginTooSlow ? error.message : 'failed';
    throw new CredentialFault(`the credential plugin ${quote(command)} ${what}`);
  }
  const cluster = config.getCurrentCluster();
  const headers = Object.entries(options.headers ?? {}).map(([name, value]) => [name, String(value).trim()]);
  const bearer = token === '' ? {} : { Authorization: `Bearer ${token}` };
  const isSocks = cluster?.proxyUrl?.startsWith('socks') === true;
  const tls = TLS_FIELDS.filter((field) => options[field] !== undefined).map((field) => [
    field,
    options[field],
  ]);
  return {
    server: cluster?.server ?? '',
    headers: { ...bearer, ...Object.fromEntries(headers) },
    basic: options.auth ?? undefined,
    tls: Object.fromEntries(tls),
    proxy: cluster?.proxyUrl && !isSocks ? proxyUrl(cluster.proxyUrl, 'its "proxy-url"') : undefined,
    proxyAgent: isSocks ? (options.agent as Agent) : undefined,
  };
}

/** Parsers and plugins quote what they read; the system does not. */
function harmless(error: unknown): string {
  if (error instanceof CredentialFault || isOfTheSystem(error)) return error.message;
  return 'it cannot be read as one';
}

function isOfTheSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}
