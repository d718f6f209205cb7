// Clients of a random edge: what each sends, shows and may get, and the real answers to them.

import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Seeded } from '../soak/seeded.ts';
import { type Answer, answerOf } from '../traffic/echo.ts';
import type { IssuedCertificate } from '../traffic/tls.ts';
import { goodClaims, type Signer, tokenOf } from './tokens.ts';
import { basic } from './users.ts';

/** What a log has of a request. */
export interface EdgeRequest {
  readonly isTls: boolean;
  readonly vip: string;
  readonly host: string;
  readonly method: string;
  readonly target: string;
  readonly from: string;
}

/** What it has not. */
export interface EdgeClient {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly certificate: IssuedCertificate | undefined;
}

export function edgeClients(
  [one, other]: readonly Signer[],
  certificates: readonly IssuedCertificate[],
): readonly EdgeClient[] {
  if (one === undefined || other === undefined) throw new Error('Two keys are needed');
  const claims = goodClaims(Date.now());
  const bearer = (signer: Signer, more: object = {}) => ({
    authorization: `Bearer ${tokenOf(signer, { ...claims, ...more })}`,
  });
  const pass = { 'x-pass': 'yes' };
  const ann = basic('ann', 'open');
  const headers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    nothing: {},
    ann,
    bob: basic('bob', 'open'),
    token: bearer(one),
    'token of an admin': bearer(one, { groups: ['admin'] }),
    'token by the other key': bearer(other),
    'token for others': bearer(one, { aud: 'other' }),
    'token in a header': { 'x-token': tokenOf(one, claims) },
    passing: pass,
    'passing ann': { ...pass, ...ann },
    'passing token': { ...pass, ...bearer(one, { groups: ['admin'] }) },
    'passing cookie': { cookie: 'pass=yes; canary=always' },
    'x-a 1': { 'x-a': '1', ...pass, ...ann },
    'x-a 3': { 'x-a': '3' },
    canary: { 'x-canary': 'always' },
    'canary one': { 'x-canary': 'one', ...pass },
    page: { origin: 'https://page.test', ...pass },
    'other page': { origin: 'https://evil.test' },
    forged: { 'x-forwarded-for': '127.0.0.1', 'x-user': 'root', x_user: 'root', ...pass },
    large: { 'content-length': '30', ...pass },
  };
  return Object.entries(headers).flatMap(([name, own]) =>
    [undefined, ...certificates].map((certificate, at) => ({
      name: `${name}/${at}`,
      headers: own,
      certificate,
    })),
  );
}

export function randomRequest(
  draw: Seeded,
  {
    vips,
    hosts,
    paths,
    network,
  }: {
    readonly vips: Readonly<Record<string, readonly string[]>>;
    readonly hosts: readonly string[];
    readonly paths: readonly string[];
    readonly network: string;
  },
): EdgeRequest {
  const host = draw.one(hosts).replace('*', draw.one(['x', 'y.x', 'api']));
  const vip = Object.entries(vips).find(([, own]) => own.some((each) => host.endsWith(each)))?.[0] ?? '';
  return {
    isTls: draw.below(2) === 0,
    vip,
    host,
    method: draw.one(['GET', 'GET', 'GET', 'POST', 'OPTIONS']),
    target: draw.one(paths) + draw.one(['', '', '', '?q=1', '?q=abc&x=y']),
    from: `${network}.${200 + draw.below(4)}`,
  };
}

/** What the client gets: `status 200`, or how its connection ends. */
export interface Got {
  readonly words: string;
  readonly answer: Answer | undefined;
}

export async function ask(request: EdgeRequest, client: EdgeClient): Promise<Got> {
  const { isTls, vip, host, method, target, from } = request;
  const raw = connectTcp({ host: vip, port: isTls ? 443 : 80, localAddress: from, timeout: 10_000 });
  raw.once('timeout', () => raw.destroy());
  raw.on('error', () => undefined);
  let socket: Socket = raw;
  try {
    await once(raw, 'connect');
    if (isTls) {
      socket = connectTls({
        socket: raw,
        rejectUnauthorized: false,
        servername: host,
        ...client.certificate,
      });
      await once(socket, 'secureConnect');
    }
    const lines = Object.entries(client.headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const body = 'x'.repeat(Number(client.headers['content-length'] ?? 0));
    socket.write(
      `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}Connection: close\r\n\r\n${body}`,
    );
    let text = '';
    for await (const chunk of socket.setEncoding('latin1')) text += chunk;
    const answer = answerOf(text);
    return Number.isNaN(answer.status)
      ? { words: 'the connection is closed', answer: undefined }
      : { words: `status ${answer.status}`, answer };
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const words = code.startsWith('ERR_SSL') ? 'the handshake is refused' : 'the connection is closed';
    return { words, answer: undefined };
  } finally {
    socket.destroy();
    raw.destroy();
  }
}

/** They follow from the moment, not from rules. */
const VOLATILE = new Set([
  'date',
  'content-length',
  'x-request-id',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'x-forwarded-for',
]);

/** All that can differ between two states, as one text. */
export function signatureOf({ words, answer }: Got): string {
  if (answer === undefined) return words;
  const own = Object.entries(answer.headers).filter(([name]) => !VOLATILE.has(name));
  const { echo } = answer;
  const got = echo && {
    ...echo,
    headers: Object.entries(echo.headers)
      .filter(([name]) => !VOLATILE.has(name))
      .sort(),
  };
  return JSON.stringify([words, own.sort(), got]);
}
