// Reads a kubeconfig: the API server's URL and the credentials. Format: client-go's tools/clientcmd/api/v1.
// Refuses unsupported fields and values, with the allowed ones in the message; no message quotes a secret. Pure.

import { isIPv6 } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import {
  boolean,
  isMapping,
  listOf,
  object,
  oneOf,
  type Rule,
  string,
  type Valid,
} from '../../base/validate.ts';
import { parseYamlDocuments } from '../../base/yaml.ts';

/** A file has precedence over data in the kubeconfig, as in kubectl. */
export interface AccessConfig {
  readonly server: string;
  readonly ca?: Source | undefined;
  readonly cert?: Source | undefined;
  readonly key?: Source | undefined;
  readonly token?: Source | undefined;
  /** The program that prints a token or a certificate. */
  readonly plugin?: ExecPlugin | undefined;
  readonly serverName?: string | undefined;
  readonly skipsVerification?: boolean;
  /** URL of an HTTP or a SOCKS proxy. */
  readonly proxy?: string | undefined;
  /** Headers of the identity that the user takes on. */
  readonly impersonation?: Readonly<Record<string, string | string[]>>;
}

export type Source = { readonly file: string } | { readonly content: Buffer };

export interface ExecPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The plugin gets the kubeconfig's data of the cluster. */
  readonly wantsCluster: boolean;
}

/** https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ */
const EXEC_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;

const optionalText = string().nullish();
const clusterSchema = object({
  server: string(),
  'certificate-authority': optionalText,
  'certificate-authority-data': optionalText,
  'tls-server-name': optionalText,
  'insecure-skip-tls-verify': boolean().nullish(),
  'proxy-url': optionalText,
});
const execSchema = object({
  apiVersion: oneOf(...EXEC_VERSIONS),
  command: string(),
  args: listOf(string()).nullish(),
  env: listOf(object({ name: string(), value: string() })).nullish(),
  // `Always` is refused: such a plugin asks a person.
  interactiveMode: oneOf('Never', 'IfAvailable').nullish(),
  provideClusterInfo: boolean().nullish(),
});
const userSchema = object({
  token: optionalText,
  tokenFile: optionalText,
  'client-certificate': optionalText,
  'client-certificate-data': optionalText,
  'client-key': optionalText,
  'client-key-data': optionalText,
  exec: execSchema.nullish(),
  as: optionalText,
  'as-uid': optionalText,
  'as-groups': listOf(string()).nullish(),
});

/** `path`: of the kubeconfig, to which the files in it are relative. Errors: API_CREDENTIALS. */
export function readKubeconfig(content: string, path: string): AccessConfig {
  const root = rootOf(content);
  const context = entryOf(root, 'context', root['current-context']);
  const cluster = entryOf(root, 'cluster', context.value.cluster);
  const user = entryOf(root, 'user', context.value.user);
  const ofCluster = validated(clusterSchema, cluster);
  const ofUser = validated(userSchema, user);
  const unsupported = ['auth-provider', 'username'].find((field) => user.value[field]);
  if (unsupported !== undefined)
    throw fault(`${user.name}: "${unsupported}" is not supported, use a token, a certificate or "exec"`);
  const skipsVerification = ofCluster['insecure-skip-tls-verify'] ?? false;
  if (ofCluster.server === '') throw fault(`${cluster.name} names no API server`);
  // The agent sends a token in clear text only if the kubeconfig allows it.
  if (!/^https:/i.test(ofCluster.server) && !skipsVerification)
    throw fault('its server has no TLS, which is allowed only with "insecure-skip-tls-verify: true"');
  const directory = dirname(path);
  const source = (file = '', text = '', encoding: 'base64' | 'utf8' = 'base64'): Source | undefined => {
    if (file !== '') return { file: resolve(directory, file) };
    return text === '' ? undefined : { content: Buffer.from(text, encoding) };
  };
  const cert = source(ofUser['client-certificate'], ofUser['client-certificate-data']);
  const token = source(ofUser.tokenFile, ofUser.token, 'utf8');
  return {
    server: ofCluster.server.replace(/\/$/, ''),
    ca: source(ofCluster['certificate-authority'], ofCluster['certificate-authority-data']),
    cert,
    key: source(ofUser['client-key'], ofUser['client-key-data']),
    token,
    // As in client-go, a plugin is for a user without other credentials.
    plugin: token || cert ? undefined : ofUser.exec && pluginOf(ofUser.exec, directory),
    serverName: ofCluster['tls-server-name'] || undefined,
    skipsVerification,
    proxy: ofCluster['proxy-url'] || undefined,
    impersonation: impersonationOf(ofUser, user),
  };
}

/** The access of a pod. `directory`: of its service account. */
export function podAccess(host: string, port: string, directory: string): AccessConfig {
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    ca: { file: join(directory, 'ca.crt') },
    token: { file: join(directory, 'token') },
  };
}

interface Entry {
  /** For messages: `user "admin"`. */
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
}

function fault(message: string): HeadgateError {
  return new HeadgateError('API_CREDENTIALS', message);
}

/** A kubeconfig may be JSON, too, which is a part of YAML. */
function rootOf(content: string): Readonly<Record<string, unknown>> {
  const { documents, errors } = parseYamlDocuments(content);
  const value = documents[0]?.value;
  const [error] = errors;
  if (error !== undefined) throw fault(`it is not YAML: line ${error.line}, column ${error.column}`);
  if (documents.length !== 1 || !isMapping(value)) throw fault('it is not one YAML mapping');
  return value;
}

/** The one entry of that name in the list of the kind. */
function entryOf(root: Readonly<Record<string, unknown>>, kind: string, name: unknown): Entry {
  if (typeof name !== 'string' || name === '') throw fault(`its current context names no ${kind}`);
  const entries = root[`${kind}s`];
  const found = Array.isArray(entries) ? entries.filter((each) => isMapping(each) && each.name === name) : [];
  const shown = `${kind} ${quote(name)}`;
  if (found.length === 0) throw fault(`it has no ${shown}`);
  if (found.length > 1) throw fault(`it has ${shown} ${found.length} times`);
  const value: unknown = found[0][kind];
  if (!isMapping(value)) throw fault(`${shown} is not a mapping`);
  return { name: shown, value };
}

function validated<T>(schema: Rule<T>, { name, value }: Entry): T {
  const judgement = schema.judge(value);
  if (judgement.success) return judgement.data;
  const [{ path, message } = { path: [], message: '' }] = judgement.faults;
  throw fault(`${name}: ${path.join('.')} ${message}`);
}

function pluginOf(exec: Valid<typeof execSchema>, directory: string): ExecPlugin {
  const { apiVersion, command, args, env, provideClusterInfo } = exec;
  return {
    apiVersion,
    // A path is relative to the kubeconfig; a name is searched in PATH.
    command: command.includes('/') ? resolve(directory, command) : command,
    args: args ?? [],
    env: Object.fromEntries((env ?? []).map((each) => [each.name, each.value])),
    wantsCluster: provideClusterInfo ?? false,
  };
}

/** The headers of client-go's transport/round_trippers.go. */
function impersonationOf(
  user: Valid<typeof userSchema>,
  { name, value }: Entry,
): Readonly<Record<string, string | string[]>> {
  const { as, 'as-uid': uid, 'as-groups': groups = [] } = user;
  const { 'as-user-extra': extra } = value;
  const headers: Record<string, string | string[]> = {};
  if (as) headers['Impersonate-User'] = as;
  if (uid) headers['Impersonate-Uid'] = uid;
  if (groups.length > 0) headers['Impersonate-Group'] = groups;
  for (const [key, values] of Object.entries(isMapping(extra) ? extra : {})) {
    const texts = listOf(string()).judge(values);
    if (!texts.success) throw fault(`${name}: as-user-extra.${key} is not a list of texts`);
    headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = texts.data;
  }
  // The API server would ignore them, and take the request for the user's own.
  if (Object.keys(headers).length > 0 && !as)
    throw fault(`${name}: "as" is missing, which the other fields of impersonation need`);
  return headers;
}
