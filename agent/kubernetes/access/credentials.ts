// The API server's URL and the credentials for it, from a kubeconfig or the service account of a pod. Reads the files
// again as they rotate, runs credential plugins, and keeps the last credentials while it cannot get new ones.
// No error here quotes a file, a plugin's output or a token.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { ExecPlugins, type PluginCredential } from './exec-plugin.ts';
import { type AccessConfig, podAccess, readKubeconfig, type Source } from './kubeconfig.ts';
import { isSocks, proxyUrl } from './proxy.ts';

export type CredentialsLocation =
  | { readonly kind: 'Kubeconfig'; readonly path: string }
  /** `root` stands for `/` in tests. */
  | { readonly kind: 'InCluster'; readonly root?: string };

/** What a request needs; a new value whenever anything of it may have changed. */
export interface Credentials {
  /** URL of the API server, as in the configuration. */
  readonly server: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** The same value until something of it changes. */
  readonly tls: TlsOptions;
  /** URL of the proxy in the configuration; undefined: that of the environment, if any. */
  readonly proxy: string | undefined;
}

export interface TlsOptions {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** From one reading of the files to the next. */
const FRESH_MS = 30_000;
const PLUGIN_TIMEOUT_MS = 15_000;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

export class CredentialsSource {
  readonly #place: CredentialsLocation;
  readonly #now: () => number;
  readonly #plugins: ExecPlugins;
  #current: { readonly credentials: Credentials; readonly since: number } | undefined;
  /** Under way, for all callers. */
  #reading: Promise<Credentials> | undefined;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(
    place: CredentialsLocation,
    pluginTimeoutMs: number = PLUGIN_TIMEOUT_MS,
    now: () => number = () => performance.now(),
  ) {
    this.#place = place;
    this.#plugins = new ExecPlugins(pluginTimeoutMs);
    this.#now = now;
  }

  /**
   * Reads them again if they are older than half a minute; if that fails, the old ones stay in use.
   * Errors: API_CREDENTIALS if there have never been any.
   */
  async current(): Promise<Credentials> {
    const current = this.#current;
    if (current !== undefined && this.#now() - current.since < FRESH_MS) return current.credentials;
    try {
      return await this.#read(false);
    } catch (error) {
      if (current === undefined) throw error;
      this.#current = { credentials: current.credentials, since: this.#now() };
      return current.credentials;
    }
  }

  /** After a 401: reads the files and runs the plugin again, unless that has happened since `refused` was returned. */
  async renewed(refused: Credentials): Promise<Credentials> {
    const current = this.#current?.credentials;
    if (current !== undefined && current !== refused) return current;
    return this.#read(true);
  }

  #read(isRefused: boolean): Promise<Credentials> {
    this.#reading ??= this.#readNow(isRefused).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(isRefused: boolean): Promise<Credentials> {
    try {
      const config = await configOf(this.#place);
      const credentials = await this.#credentialsOf(config, isRefused);
      this.#current = { credentials, since: this.#now() };
      return credentials;
    } catch (error) {
      throw new HeadgateError('API_CREDENTIALS', `Cannot use ${nameOf(this.#place)}: ${harmless(error)}`);
    }
  }

  async #credentialsOf(config: AccessConfig, isRefused: boolean): Promise<Credentials> {
    const { server, impersonation, plugin, proxy } = config;
    const [ca, cert, key, token] = await Promise.all(
      [config.ca, config.cert, config.key, config.token].map(contentOf),
    );
    const given = plugin && (await this.#plugins.credential(plugin, clusterInfo(config, ca), isRefused));
    const bearer = token?.toString('utf8').trim() || given?.token;
    return {
      server,
      headers: { ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}), ...impersonation },
      tls: this.#known(tlsOf(config, { ca, cert, key }, given)),
      proxy: proxy && (isSocks(proxy) ? proxy : proxyUrl(proxy, 'its "proxy-url"')),
    };
  }

  /** The last value if it is equal: each value has connections of its own. */
  #known(tls: TlsOptions): TlsOptions {
    const last = this.#current?.credentials.tls;
    return last !== undefined && isDeepStrictEqual(last, tls) ? last : tls;
  }
}

async function configOf(place: CredentialsLocation): Promise<AccessConfig> {
  if (place.kind === 'Kubeconfig') return readKubeconfig(await readFile(place.path, 'utf8'), place.path);
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port) {
    const message = 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set';
    throw new HeadgateError('API_CREDENTIALS', message);
  }
  return podAccess(host, port, join(place.root ?? '/', SERVICE_ACCOUNT));
}

async function contentOf(source: Source | undefined): Promise<Buffer | undefined> {
  return source !== undefined && 'file' in source ? readFile(source.file) : source?.content;
}

function tlsOf(
  { serverName, skipsVerification }: AccessConfig,
  own: Readonly<Record<'ca' | 'cert' | 'key', Buffer | undefined>>,
  given: PluginCredential | undefined,
): TlsOptions {
  const options = {
    ca: own.ca,
    cert: given?.cert === undefined ? own.cert : Buffer.from(given.cert),
    key: given?.key === undefined ? own.key : Buffer.from(given.key),
    servername: serverName,
    rejectUnauthorized: skipsVerification ? false : undefined,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** ExecCredentialSpec's `cluster`. */
function clusterInfo({ server, serverName, skipsVerification, proxy }: AccessConfig, ca: Buffer | undefined) {
  return {
    server,
    'tls-server-name': serverName,
    'insecure-skip-tls-verify': skipsVerification ?? false,
    'certificate-authority-data': ca?.toString('base64'),
    'proxy-url': proxy,
  };
}

function nameOf(place: CredentialsLocation): string {
  return place.kind === 'Kubeconfig' ? `the kubeconfig ${quote(place.path)}` : "the pod's service account";
}

/** Messages of the agent and of the operating system; others may quote what they read. */
function harmless(error: unknown): string {
  const isOfTheSystem =
    error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
  return error instanceof HeadgateError || isOfTheSystem ? error.message : 'it cannot be read';
}
