// Runs the credential plugin of a kubeconfig (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/)
// and keeps the credential until it expires. A plugin gets no input, so that it cannot wait for a person, and is killed
// with its child processes after a timeout. No error quotes its output.
// Why: docs/design/decisions/0015-credentials-without-the-library.md

import { type ChildProcess, spawn } from 'node:child_process';
import { systemClock } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { parseJson } from '../../base/parse-json.ts';
import { quote } from '../../base/quote.ts';
import { object, string } from '../../base/validate.ts';
import type { ExecPlugin } from './kubeconfig.ts';

/** A certificate has both parts or neither. */
export interface PluginCredential {
  readonly token: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

interface ExpiringCredential {
  readonly credential: PluginCredential;
  /** Milliseconds since the epoch; Infinity if it does not expire. */
  readonly end: number;
}

/** Credentials stay in use for half a minute before the kubeconfig is read again. */
const RENEWAL_MARGIN_MS = 30_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

export class ExecPlugins {
  readonly #timeoutMs: number;
  /** The last result, and its plugin's entry in the kubeconfig as JSON. */
  #last: (ExpiringCredential & { readonly plugin: string }) | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * `cluster`: for a plugin that asks for it. `isRefused`: the API server refused the last credential.
   * Errors: API_CREDENTIALS.
   */
  async credential(plugin: ExecPlugin, cluster: object, isRefused: boolean): Promise<PluginCredential> {
    const entry = JSON.stringify(plugin);
    const isGood = this.#last?.plugin === entry && Date.now() < this.#last.end - RENEWAL_MARGIN_MS;
    if (this.#last !== undefined && isGood && !isRefused) return this.#last.credential;
    try {
      const result = credentialIn(await outputOf(plugin, cluster, this.#timeoutMs), plugin.apiVersion);
      this.#last = { ...result, plugin: entry };
      return result.credential;
    } catch (error) {
      const message = `the credential plugin ${quote(plugin.command)} ${messageOf(error)}`;
      throw new HeadgateError('API_CREDENTIALS', message);
    }
  }
}

/** Errors: an Error whose message follows the plugin's name. */
async function outputOf(plugin: ExecPlugin, cluster: object, timeoutMs: number): Promise<string> {
  const { apiVersion, command, args, env, wantsCluster } = plugin;
  const spec = { interactive: false, ...(wantsCluster ? { cluster } : {}) };
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
  // A process group of its own, so that the timeout ends the plugin's child processes, too.
  const child = spawn(command, args, {
    env: { ...process.env, ...env, KUBERNETES_EXEC_INFO: info },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const end = (reason: string) => {
    reject(new Error(reason));
    killGroup(child);
    child.stdout.destroy();
  };
  const cancel = systemClock.after(timeoutMs, () => end(`did not end within ${timeoutMs} ms`));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
    if (output.length > MAX_OUTPUT_BYTES) end('printed too much');
  });
  child.on('error', ({ code }: NodeJS.ErrnoException) => reject(new Error(`cannot be started: ${code}`)));
  child.on('close', (status, signal) => {
    if (status === 0) resolve(output);
    else reject(new Error(signal === null ? `failed with status ${status}` : `was ended by ${signal}`));
  });
  return promise.finally(cancel);
}

const optionalText = string().nullish();
const answerSchema = object({
  apiVersion: string(),
  status: object({
    token: optionalText,
    clientCertificateData: optionalText,
    clientKeyData: optionalText,
    expirationTimestamp: optionalText,
  }),
});

/** Errors: an Error whose message follows the plugin's name. */
function credentialIn(output: string, apiVersion: string): ExpiringCredential {
  const answer = answerSchema.judge(parseJson(output));
  if (!answer.success) throw new Error('printed no ExecCredential with a status');
  if (answer.data.apiVersion !== apiVersion)
    throw new Error(`printed ${quote(answer.data.apiVersion)}, the kubeconfig names ${quote(apiVersion)}`);
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = answer.data.status;
  if (!cert !== !key) throw new Error('printed a certificate or a key, not both');
  if (!token && !cert) throw new Error('printed neither a token nor a certificate');
  const end = expirationTimestamp ? Date.parse(expirationTimestamp) : Number.POSITIVE_INFINITY;
  if (Number.isNaN(end)) throw new Error('printed an expirationTimestamp that is not a time');
  return { credential: { token, cert, key }, end };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}
