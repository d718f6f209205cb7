// Gets a new identity token for a refresh token from an OpenID Connect provider: discovery, then the token endpoint
// (OpenID Connect Core 1.0, section 12), over TLS only and through the proxy of the environment.

import { isMapping } from '../../base/validate.ts';
import { https } from '../../host/node-http.ts';
import { CredentialFault } from './credential-fault.ts';
import { type Environment, proxyOf, throughProxy } from './proxy.ts';

export interface Login {
  readonly issuer: string;
  readonly clientId: string;
  /** '' for a public client. */
  readonly clientSecret: string;
  readonly refreshToken: string;
  /** PEM, where the system's authorities do not know the provider. */
  readonly ca: Buffer | undefined;
}

export interface IdentityTokens {
  readonly idToken: string;
  /** Another one where the provider gives each only once, '' where the old one stays. */
  readonly refreshToken: string;
}

/** Bytes. */
const LARGEST = 1024 * 1024;
const FORM = 'application/x-www-form-urlencoded';

/** Errors: CredentialFault; none says what a token is. */
export async function identityTokens(
  login: Login,
  options: { readonly timeoutMs: number; readonly env: Environment },
): Promise<IdentityTokens> {
  const { issuer, clientId, clientSecret, refreshToken, ca } = login;
  const ask = (url: string, form?: URLSearchParams, authorization?: string) =>
    answerOf(url, { ...options, ca, form, authorization });
  const found = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const { token_endpoint: endpoint, token_endpoint_auth_methods_supported: methods } = found.body;
  if (found.status !== 200 || typeof endpoint !== 'string')
    throw new CredentialFault(`its identity provider tells no token endpoint (${found.status})`);
  const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
  const isInForm = Array.isArray(methods) && methods.includes('client_secret_post');
  if (clientSecret === '' || isInForm) form.set('client_id', clientId);
  if (clientSecret !== '' && isInForm) form.set('client_secret', clientSecret);
  const isInHeader = clientSecret !== '' && !isInForm;
  const { status, body } = await ask(
    endpoint,
    form,
    isInHeader ? basicOf(clientId, clientSecret) : undefined,
  );
  const { id_token: idToken, refresh_token: next, error } = body;
  if (status === 200 && typeof idToken === 'string' && idToken !== '')
    return { idToken, refreshToken: typeof next === 'string' ? next : '' };
  // A word of RFC 6749, section 5.2, and nothing else of the answer.
  const why = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? `: ${error}` : '';
  throw new CredentialFault(`its identity provider gives no identity token (${status})${why}`);
}

/** RFC 6749, section 2.3.1: encoded as in a form first. */
function basicOf(name: string, password: string): string {
  const encoded = [name, password].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

interface Question {
  readonly timeoutMs: number;
  readonly env: Environment;
  readonly ca: Buffer | undefined;
  readonly form: URLSearchParams | undefined;
  readonly authorization: string | undefined;
}

interface Answer {
  readonly status: number;
  /** {} where it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

async function answerOf(text: string, question: Question): Promise<Answer> {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:') throw new CredentialFault('its identity provider has no "https://" URL');
  const { timeoutMs, env, ca, form, authorization } = question;
  const agent = new (https().Agent)({
    ...(ca === undefined ? {} : { ca }),
    ...throughProxy(proxyOf(url, env)),
  });
  try {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const request = https().request(url, {
      agent,
      method: form === undefined ? 'GET' : 'POST',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: 'application/json',
        ...(form === undefined ? {} : { 'content-type': FORM }),
        ...(authorization === undefined ? {} : { authorization }),
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const parts: Buffer[] = [];
      let length = 0;
      response.on('error', reject);
      response.on('data', (part: Buffer) => {
        parts.push(part);
        length += part.length;
        if (length > LARGEST) response.destroy(new Error('Too much'));
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: objectOf(Buffer.concat(parts).toString('utf8')) }),
      );
    });
    request.end(form?.toString());
    return await promise;
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    throw new CredentialFault(`its identity provider cannot be asked: ${code ?? name}`);
  } finally {
    agent.destroy();
  }
}

function objectOf(text: string): Answer['body'] {
  try {
    const value: unknown = JSON.parse(text);
    return isMapping(value) ? value : {};
  } catch {
    return {};
  }
}
