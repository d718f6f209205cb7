// Credentials that need no library: of a kubeconfig whose user has a token, a client certificate, a password or an auth
// provider, and of a pod's service account. Everything else that a kubeconfig may hold is left to credentials.ts, which
// then loads the Kubernetes client library: 90 MB and most of a second.
// Reads the files that the configuration names. Format: client-go's api/v1 (Config, Cluster, AuthInfo).

import { readFile } from 'node:fs/promises';
import type { Agent } from 'node:https';
import { isIPv6 } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { isMapping } from '../../base/validate.ts';
import { parseYamlDocuments } from '../../base/yaml.ts';
import { type AuthProvider, readAuthProvider } from './auth-provider.ts';

/** What a request needs; a new value whenever anything of it may have changed. */
export interface Credentials {
  /** URL of the API server, as the configuration says it. */
  readonly server: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** `name:password` of HTTP's basic authentication. */
  readonly basic: string | undefined;
  /** Options of TLS: ca, cert, key, servername and so on. */
  readonly tls: Readonly<Record<string, unknown>>;
  /** URL of the HTTP proxy that the configuration names; undefined: the environment says whether there is one. */
  readonly proxy: string | undefined;
  /** Where the configuration names a SOCKS proxy. */
  readonly proxyAgent: Agent | undefined;
}

/** Where the credentials are; a file has precedence over what stands beside it, as kubectl has it. */
export interface PlainConfig {
  readonly server: string;
  readonly ca: Source | undefined;
  readonly cert: Source | undefined;
  readonly key: Source | undefined;
  readonly token: Source | undefined;
  /** `name:password`. */
  readonly basic: string | undefined;
  readonly serverName: string | undefined;
  readonly skipsVerification: boolean;
  /** As in Credentials. */
  readonly proxy: string | undefined;
  /** Whose token is used where there is no other. */
  readonly provider: AuthProvider | undefined;
  /** Headers that say as whom the user acts. */
  readonly impersonation: Readonly<Record<string, string | string[]>>;
}

type Source = { readonly file: string } | { readonly content: Buffer };

type Texts = Readonly<Record<string, string | undefined>>;

const CLUSTER_TEXTS = [
  'server',
  'certificate-authority',
  'certificate-authority-data',
  'tls-server-name',
  'proxy-url',
];
const SKIP = 'insecure-skip-tls-verify';
const CLUSTER_OTHERS = [SKIP, 'disable-compression'];
const USER_TEXTS = [
  'token',
  'tokenFile',
  'client-certificate',
  'client-certificate-data',
  'client-key',
  'client-key-data',
  'username',
  'password',
  'as',
  'as-uid',
];
const USER_OTHERS = ['auth-provider', 'as-groups', 'as-user-extra'];

/** undefined where it holds anything that is not known here, or is not right. `path`: of the file, for those it names. */
export function readPlainKubeconfig(text: string, path: string): PlainConfig | undefined {
  const root = rootOf(text);
  if (!isMapping(root)) return undefined;
  const context = named(root.contexts, root['current-context'], 'context');
  const cluster = named(root.clusters, context?.cluster, 'cluster');
  const user = named(root.users, context?.user, 'user');
  if (cluster === undefined || user === undefined) return undefined;
  const skips = cluster[SKIP] ?? false;
  const [ofCluster, ofUser] = [
    textsOf(cluster, CLUSTER_TEXTS, CLUSTER_OTHERS),
    textsOf(user, USER_TEXTS, USER_OTHERS),
  ];
  if (typeof skips !== 'boolean' || !ofCluster?.server || ofUser === undefined) return undefined;
  // The library refuses a token in clear text unless the kubeconfig says that it knows.
  if (!/^https:/i.test(ofCluster.server) && !skips) return undefined;
  const { username, password } = ofUser;
  if (username && password === undefined) return undefined;
  const proxy = ofCluster['proxy-url'] || undefined;
  if (proxy !== undefined && !/^https?:/i.test(proxy)) return undefined;
  const provider = readAuthProvider(user['auth-provider'], dirname(path));
  if (user['auth-provider'] && provider === undefined) return undefined;
  const impersonation = impersonationOf(user, ofUser);
  if (impersonation === undefined) return undefined;
  const source = (file: string | undefined, content: Buffer | undefined): Source | undefined => {
    if (file) return { file: resolve(dirname(path), file) };
    return content && { content };
  };
  const of = (texts: Texts, name: string) => source(texts[name], decoded(texts[`${name}-data`]));
  return {
    server: ofCluster.server.replace(/\/$/, ''),
    ca: of(ofCluster, 'certificate-authority'),
    cert: of(ofUser, 'client-certificate'),
    key: of(ofUser, 'client-key'),
    token: source(ofUser.tokenFile, ofUser.token ? Buffer.from(ofUser.token) : undefined),
    basic: username ? `${username}:${password}` : undefined,
    serverName: ofCluster['tls-server-name'] || undefined,
    skipsVerification: skips,
    proxy,
    provider,
    impersonation,
  };
}

/** Programs write a kubeconfig as JSON, too: that needs no package, which would take 40 ms of a start. */
function rootOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const { documents, errors } = parseYamlDocuments(text);
    return errors.length === 0 && documents.length === 1 ? documents[0]?.value : undefined;
  }
}

/** `directory`: of the service account. */
export function podConfig(host: string, port: string, directory: string): PlainConfig {
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    ca: { file: join(directory, 'ca.crt') },
    cert: undefined,
    key: undefined,
    token: { file: join(directory, 'token') },
    basic: undefined,
    serverName: undefined,
    skipsVerification: false,
    proxy: undefined,
    provider: undefined,
    impersonation: {},
  };
}

/** Reads the files anew. `tokenOf`: asked where nothing else has a token. Errors: of the file system, and its own. */
export async function plainCredentials(
  config: PlainConfig,
  tokenOf?: (provider: AuthProvider) => Promise<string>,
): Promise<Credentials> {
  const [ca, cert, key, token] = await Promise.all(
    [config.ca, config.cert, config.key, config.token].map(contentOf),
  );
  const tls = {
    ca,
    cert,
    key,
    servername: config.serverName,
    rejectUnauthorized: config.skipsVerification ? false : undefined,
  };
  const { provider, proxy } = config;
  const bearer = token?.toString('utf8').trim() || (provider && (await tokenOf?.(provider)));
  return {
    server: config.server,
    headers: { ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}), ...config.impersonation },
    basic: config.basic,
    tls: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
    proxy,
    proxyAgent: undefined,
  };
}

/** client-go's transport/round_trippers.go. undefined where it is not as it has to be. */
function impersonationOf(
  user: Readonly<Record<string, unknown>>,
  { as, 'as-uid': uid }: Texts,
): PlainConfig['impersonation'] | undefined {
  const { 'as-groups': groups = [], 'as-user-extra': extra = {} } = user;
  const isTexts = (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((text) => typeof text === 'string');
  if (!isTexts(groups) || !isMapping(extra)) return undefined;
  const headers: Record<string, string | string[]> = {};
  if (as) headers['Impersonate-User'] = as;
  if (uid) headers['Impersonate-Uid'] = uid;
  if (groups.length > 0) headers['Impersonate-Group'] = groups;
  for (const [name, values] of Object.entries(extra)) {
    if (!isTexts(values)) return undefined;
    headers[`Impersonate-Extra-${encodeURIComponent(name)}`] = values;
  }
  // Alone they would make nobody of us.
  return Object.keys(headers).length > 0 && !as ? undefined : headers;
}

async function contentOf(source: Source | undefined): Promise<Buffer | undefined> {
  return source !== undefined && 'file' in source ? readFile(source.file) : source?.content;
}

/** What stands under `key` of the one entry with that name. */
function named(entries: unknown, name: unknown, key: string): Readonly<Record<string, unknown>> | undefined {
  if (!Array.isArray(entries) || typeof name !== 'string' || name === '') return undefined;
  const found = entries.filter((entry) => isMapping(entry) && entry.name === name);
  const value: unknown = found.length === 1 ? found[0][key] : undefined;
  return isMapping(value) ? value : undefined;
}

/** undefined where one is no text, or there is something else; `extensions` are for other programs. */
function textsOf(
  value: Readonly<Record<string, unknown>>,
  names: readonly string[],
  others: readonly string[] = [],
): Texts | undefined {
  const texts: Record<string, string> = {};
  for (const [name, text] of Object.entries(value)) {
    if (name === 'extensions' || others.includes(name)) continue;
    if (!names.includes(name) || typeof text !== 'string') return undefined;
    texts[name] = text;
  }
  return texts;
}

function decoded(text: string | undefined): Buffer | undefined {
  return text ? Buffer.from(text, 'base64') : undefined;
}
