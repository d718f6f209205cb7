// A provider of OpenID Connect that signs everybody in as one user, at once: for clients of an authorization server in tests.

import { createHash, createSign, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

export const USER = 'ann@example.org';

const base64 = (value: object | Buffer): string =>
  (Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value))).toString('base64url');

/** Returns its URL. */
export async function startOidcProvider(t: ExecutionContext<unknown>, clientId: string): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = createHash('sha256').update('key').digest('hex').slice(0, 8);
  const nonces = new Map<string, string>();
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const url = new URL(request.url ?? '/', issuer);
    const json = (value: object): void =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
        });
        return;
      case '/keys':
        json({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }] });
        return;
      case '/authorize': {
        const back = new URL(url.searchParams.get('redirect_uri') ?? '');
        const code = `code-${nonces.size}`;
        nonces.set(code, url.searchParams.get('nonce') ?? '');
        back.searchParams.set('code', code);
        back.searchParams.set('state', url.searchParams.get('state') ?? '');
        response.writeHead(302, { location: back.href }).end();
        return;
      }
      case '/token': {
        const code = new URLSearchParams(body).get('code') ?? '';
        const now = Math.floor(Date.now() / 1_000);
        const claims = {
          ...{ iss: issuer, aud: clientId, sub: 'ann', email: USER, email_verified: true },
          ...{ iat: now, exp: now + 3_600, nonce: nonces.get(code) },
        };
        const signed = `${base64({ alg: 'RS256', kid, typ: 'JWT' })}.${base64(claims)}`;
        const signature = createSign('RSA-SHA256').update(signed).sign(privateKey);
        const id_token = `${signed}.${base64(signature)}`;
        json({ access_token: 'access', token_type: 'Bearer', expires_in: 3_600, id_token });
        return;
      }
      default:
        response.writeHead(404).end();
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return issuer;
}
