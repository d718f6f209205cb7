// The token of a kubeconfig's `auth-provider`: `oidc`, renewed with a refresh token; `azure` and `gcp`, printed by a
// command. The client library knows them, too, but it waits for a command while all else stands still, and for a
// confidential client, a refresh token that is good only once, and an expiry it has other ideas than providers have.
// What has been renewed is kept in memory, never on disk. No error quotes a token.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isMapping } from '../../base/validate.ts';
import { CredentialFault } from './credential-fault.ts';
import { identityTokens } from './identity-provider.ts';
import type { Environment } from './proxy.ts';
import { printedToken } from './token-command.ts';

export interface AuthProvider {
  readonly name: 'oidc' | 'azure' | 'gcp';
  readonly config: Environment;
  /** That a file which it names is relative to. */
  readonly directory: string;
}

export interface AuthProviderOptions {
  readonly timeoutMs: number;
  /** For proxies. */
  readonly env?: Environment;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** Milliseconds before its end at which a token is renewed: more than credentials are used without another look. */
const MARGIN = 60_000;
/** Milliseconds for which what has been renewed is not renewed again, even where it is refused. */
const PAUSE = 30_000;

const TOKEN = { oidc: 'id-token', azure: 'access-token', gcp: 'access-token' } as const;

/** undefined where it is none of these, or holds anything but texts. `directory`: of the kubeconfig. */
export function readAuthProvider(json: unknown, directory: string): AuthProvider | undefined {
  if (!isMapping(json)) return undefined;
  const { name, config } = json;
  if (name !== 'oidc' && name !== 'azure' && name !== 'gcp') return undefined;
  const entries = isMapping(config) ? Object.entries(config) : [];
  if (entries.some(([, value]) => typeof value !== 'string')) return undefined;
  return { name, config: Object.fromEntries(entries) as Environment, directory };
}

export class AuthProviderTokens {
  readonly #options: AuthProviderOptions;
  /** What the kubeconfig said, what has become of it since, and when. */
  #kept: { readonly said: string; readonly config: Environment; readonly since: number } | undefined;

  constructor(options: AuthProviderOptions) {
    this.#options = options;
  }

  /** `anew`: the last one was refused. Errors: CredentialFault, those of the file system. */
  async token(provider: AuthProvider, anew: boolean): Promise<string> {
    const said = JSON.stringify(provider);
    const isKnown = this.#kept?.said === said;
    // Somebody has put another one into the kubeconfig: that one first.
    const { config, since } =
      isKnown && this.#kept ? this.#kept : { config: provider.config, since: Number.NEGATIVE_INFINITY };
    const now = (this.#options.now ?? Date.now)();
    const token = config[TOKEN[provider.name]] ?? '';
    const end = endOf(provider.name, config);
    const isRefused = anew && isKnown && now - since >= PAUSE;
    if (!isKnown) this.#kept = { said, config, since };
    if (token !== '' && end > now + MARGIN && !isRefused) return token;
    if (token !== '' && now - since < PAUSE) return token;
    try {
      const renewed = { ...config, ...(await this.#renew(provider, config)) };
      this.#kept = { said, config: renewed, since: now };
      return renewed[TOKEN[provider.name]] ?? '';
    } catch (error) {
      if (token !== '' && end > now && !isRefused) return token;
      if (!(error instanceof CredentialFault)) throw error;
      throw new CredentialFault(`the auth provider "${provider.name}": ${error.message}`);
    }
  }

  async #renew({ name, directory }: AuthProvider, config: Environment): Promise<Environment> {
    const { timeoutMs, env = process.env } = this.#options;
    if (name !== 'oidc') {
      const { token, expiry } = await printedToken(config, timeoutMs);
      // Whichever of the two there was before says nothing of this one.
      return { [TOKEN[name]]: token, expiry, 'expires-on': '' };
    }
    for (const field of ['idp-issuer-url', 'client-id', 'refresh-token'])
      if (!config[field])
        throw new CredentialFault(`its token is over, and there is no "${field}" to get another`);
    const { idToken, refreshToken } = await identityTokens(
      {
        issuer: config['idp-issuer-url'] ?? '',
        clientId: config['client-id'] ?? '',
        clientSecret: config['client-secret'] ?? '',
        refreshToken: config['refresh-token'] ?? '',
        ca: await authorityOf(config, directory),
      },
      { timeoutMs, env },
    );
    return { 'id-token': idToken, ...(refreshToken === '' ? {} : { 'refresh-token': refreshToken }) };
  }
}

/** Milliseconds since the epoch; 0 where it is over or cannot be told. */
function endOf(name: AuthProvider['name'], config: Environment): number {
  if (name === 'oidc') return endOfJwt(config['id-token'] ?? '');
  const { expiry, 'expires-on': seconds } = config;
  if (expiry) return Date.parse(expiry) || Number(expiry) * 1_000 || 0;
  return seconds ? Number(seconds) * 1_000 || 0 : Number.POSITIVE_INFINITY;
}

function endOfJwt(token: string): number {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const end = isMapping(claims) ? claims.exp : undefined;
    return typeof end === 'number' ? end * 1_000 : 0;
  } catch {
    return 0;
  }
}

async function authorityOf(config: Environment, directory: string): Promise<Buffer | undefined> {
  const { 'idp-certificate-authority': file, 'idp-certificate-authority-data': data } = config;
  if (file) return readFile(resolve(directory, file));
  return data ? Buffer.from(data, 'base64') : undefined;
}
