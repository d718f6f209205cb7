// A small OpenID Connect provider over TLS, for tests: discovery, keys, and tokens for refresh tokens, each of which is
// valid once. Its keys are real, so that a kube-apiserver accepts its signatures.

import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { certificate } from '../traffic/certificate.ts';

export interface IdentityProvider {
  readonly issuer: string;
  /** Its CA certificate, PEM; also in the directory, as `issuer.crt`. */
  readonly ca: string;
  /** The requests to the token endpoint, in order; correct ones got the status 200. */
  readonly grants: {
    readonly form: URLSearchParams;
    readonly authorization: string | undefined;
    readonly status: number;
  }[];
  /** May be set: the lifetime of a token in seconds, how clients send their secret, whether refresh tokens stay. */
  readonly ways: { seconds: number; methods: readonly string[]; keepsRefreshTokens: boolean };
  /** A token with this lifetime; negative: it expired so long ago. */
  token(seconds: number): string;
  /** A refresh token that may be used once. */
  refreshToken(): string;
  close(): void;
}

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

export async function startIdentityProvider(
  directory: string,
  { clientId = 'headgate', subject = 'from-the-issuer' } = {},
): Promise<IdentityProvider> {
  const own = await certificate(directory, 'issuer');
  const server = createServer(own);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const good = new Set<string>();
  const grants: IdentityProvider['grants'] = [];
  const ways: IdentityProvider['ways'] = {
    seconds: 3600,
    methods: ['client_secret_basic'],
    keepsRefreshTokens: false,
  };
  const token = (seconds: number): string => {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: issuer,
      aud: clientId,
      sub: subject,
      iat: now - 7200,
      exp: now + seconds,
      jti: randomUUID(),
    };
    const text = [{ alg: 'RS256', kid: 'one', typ: 'JWT' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
  };
  const refreshToken = (): string => {
    const made = randomUUID();
    good.add(made);
    return made;
  };
  server.on('request', async (request, response) => {
    const answer = (status: number, body: object): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.url === '/.well-known/openid-configuration') {
      return answer(200, {
        issuer,
        jwks_uri: `${issuer}/keys`,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        token_endpoint_auth_methods_supported: ways.methods,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      });
    }
    if (request.url === '/keys') {
      const key = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' };
      return answer(200, { keys: [key] });
    }
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const form = new URLSearchParams(text);
    const isGood = form.get('grant_type') === 'refresh_token' && good.has(form.get('refresh_token') ?? '');
    const status = isGood ? 200 : 400;
    grants.push({ form, authorization: request.headers.authorization, status });
    if (!isGood) return answer(400, { error: 'invalid_grant', error_description: 'secret-of-the-issuer' });
    const next = ways.keepsRefreshTokens ? {} : { refresh_token: refreshToken() };
    if (!ways.keepsRefreshTokens) good.delete(form.get('refresh_token') ?? '');
    return answer(200, { id_token: token(ways.seconds), token_type: 'Bearer', ...next });
  });
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { issuer, ca: own.cert, grants, ways, token, refreshToken, close };
}
