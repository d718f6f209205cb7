// Certificates of a test's own authority, as Secrets, and clients that check them.

import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';
import { type Json, MEMBER_PORT } from '../values/service-objects.ts';
import type { Place } from './traffic.ts';

const run = promisify(execFile);

export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface IssueOptions {
  readonly names: readonly string[];
  readonly rsaBits?: number;
  /** Negative: expired. */
  readonly days?: number;
  /** `/O=Shop/CN=x` instead of the first name. */
  readonly subject?: string;
  /** Lines of OpenSSL besides the names. */
  readonly extensions?: string;
}

/** A certificate authority in a folder of its own, which is removed with the test. */
export class Authority {
  readonly #folder: string;
  /** Its certificate, PEM. */
  readonly cert: string;
  #count = 0;

  static async create(t: ExecutionContext<unknown>, name = 'Test authority'): Promise<Authority> {
    const folder = await mkdtemp(join(tmpdir(), 'hg-ca-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const [key, cert] = [join(folder, 'ca.key'), join(folder, 'ca.crt')];
    await run('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '3650'],
      ...['-subj', `/CN=${name}`, '-keyout', key, '-out', cert],
    ]);
    return new Authority(folder, await readFile(cert, 'utf8'));
  }

  /** One whose certificate this one has issued. */
  async authority(t: ExecutionContext<unknown>, name: string): Promise<Authority> {
    const extensions = 'basicConstraints=critical,CA:TRUE\n';
    const { cert, key } = await this.issue({ names: [name], extensions });
    const folder = await mkdtemp(join(tmpdir(), 'hg-ca-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, 'ca.crt'), cert);
    await writeFile(join(folder, 'ca.key'), key);
    return new Authority(folder, cert);
  }

  private constructor(folder: string, cert: string) {
    this.#folder = folder;
    this.cert = cert;
  }

  async issue({
    names,
    rsaBits,
    days = 30,
    subject,
    extensions = '',
  }: IssueOptions): Promise<IssuedCertificate> {
    const count = ++this.#count;
    const file = (end: string): string => join(this.#folder, `${count}.${end}`);
    const newkey = rsaBits === undefined ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : [`rsa:${rsaBits}`];
    await run('openssl', [
      ...['req', '-new', '-newkey', ...newkey, '-nodes', '-subj', subject ?? `/CN=${names[0]}`, '-utf8'],
      ...['-keyout', file('key'), '-out', file('csr')],
    ]);
    const text = names.map((name) => (/^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(',');
    await writeFile(file('ext'), `subjectAltName=${text}\n${extensions}`);
    await run('openssl', [
      ...['x509', '-req', '-in', file('csr'), '-CA', join(this.#folder, 'ca.crt')],
      ...['-CAkey', join(this.#folder, 'ca.key'), '-set_serial', String(count)],
      ...['-days', String(days)],
      ...['-extfile', file('ext'), '-out', file('crt')],
    ]);
    return { cert: await readFile(file('crt'), 'utf8'), key: await readFile(file('key'), 'utf8') };
  }

  /** A certificate for one name that expires at that time. */
  async issueUntil(name: string, until: Date): Promise<IssuedCertificate> {
    const count = ++this.#count;
    const file = (end: string): string => join(this.#folder, `${count}.${end}`);
    await run('openssl', [
      ...['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-subj', `/CN=${name}`, '-keyout', file('key'), '-out', file('csr')],
    ]);
    await writeFile(file('txt'), '');
    await writeFile(file('serial'), `${1_000 + count}\n`);
    await writeFile(file('ext'), `subjectAltName=DNS:${name}\n`);
    const own = `serial=${file('serial')}\ndatabase=${file('txt')}\nnew_certs_dir=${this.#folder}\ndefault_md=sha256\npolicy=any\n`;
    await writeFile(file('cnf'), `[ca]\ndefault_ca=own\n[own]\n${own}[any]\ncommonName=supplied\n`);
    await run('openssl', [
      ...['ca', '-batch', '-notext', '-config', file('cnf'), '-in', file('csr'), '-out', file('crt')],
      ...['-cert', join(this.#folder, 'ca.crt'), '-keyfile', join(this.#folder, 'ca.key')],
      ...['-extfile', file('ext'), '-enddate', until.toISOString().replace(/[-:T]|\.\d+/g, '')],
    ]);
    return { cert: await readFile(file('crt'), 'utf8'), key: await readFile(file('key'), 'utf8') };
  }

  /** A revocation list (CRL) with these of its certificates, PEM. `nextUpdate`: as openssl writes times, `20200201000000Z`. */
  async revoke(revoked: readonly IssuedCertificate[], nextUpdate = '20991231235959Z'): Promise<string> {
    const [database, config] = [join(this.#folder, 'index.txt'), join(this.#folder, 'ca.cnf')];
    const lines = revoked.map(({ cert }) => {
      const { serialNumber, subject } = new X509Certificate(cert);
      return ['R', '491231235959Z', '200101000000Z', serialNumber, 'unknown', `/${subject}`].join('\t');
    });
    await writeFile(database, lines.map((line) => `${line}\n`).join(''));
    await writeFile(config, `[ca]\ndefault_ca=own\n[own]\ndatabase=${database}\ndefault_md=sha256\n`);
    const { stdout } = await run('openssl', [
      ...['ca', '-config', config, '-gencrl', '-cert', join(this.#folder, 'ca.crt')],
      ...['-keyfile', join(this.#folder, 'ca.key')],
      ...['-crl_lastupdate', '20200101000000Z', '-crl_nextupdate', nextUpdate],
    ]);
    return stdout;
  }
}

/** A Secret of type `kubernetes.io/tls` in the namespace default. */
export function tlsSecret(name: string, { cert, key }: IssuedCertificate): Json {
  const data = { 'tls.crt': base64(cert), 'tls.key': base64(key) };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    type: 'kubernetes.io/tls',
    data,
  };
}

/** A ConfigMap in the namespace default with `ca.crt`, or with another field. */
export function configMap(name: string, text: string, field: 'ca.crt' | 'ca.crl' = 'ca.crt'): Json {
  const metadata = { name, namespace: 'default' };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [field]: text } };
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export interface Handshake {
  readonly socket: TLSSocket;
  /** SHA-256 of the server's certificate. */
  readonly fingerprint: string;
  readonly protocol: string;
  readonly alpn: string | false | null;
}

/** Errors: no connection or handshake within 5 s, or, unless told otherwise, a certificate that is not trusted. */
export function handshake(
  { address, port, from }: Place,
  options: ConnectionOptions = {},
): Promise<Handshake> {
  return new Promise((resolve, reject) => {
    const own = from === undefined ? {} : { localAddress: from };
    const target = { host: address, port, timeout: 5_000, ...own, ...options };
    const socket = connect(target as ConnectionOptions);
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.once('error', fail);
    socket.once('timeout', () => fail(new Error('No handshake within 5 s')));
    socket.once('secureConnect', () => {
      socket.setTimeout(0);
      const { fingerprint256: fingerprint } = socket.getPeerCertificate();
      resolve({ socket, fingerprint, protocol: socket.getProtocol() ?? '', alpn: socket.alpnProtocol });
    });
  });
}

/** One HTTP request inside TLS; the whole answer. Errors: those of handshake(), and an answer that ends early. */
export async function askInTls(
  place: Place,
  options: ConnectionOptions = {},
  request = 'GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n',
): Promise<string> {
  const { socket } = await handshake(place, options);
  try {
    socket.setEncoding('utf8').write(request);
    let text = '';
    for await (const chunk of socket) text += chunk;
    if (!text.startsWith('HTTP/1.1 200'))
      throw new Error(`The answer is ${JSON.stringify(text.slice(0, 80))}`);
    return text;
  } finally {
    socket.destroy();
  }
}

/** Requests with a handshake each, one after the other in several lanes. */
export class TlsLoad {
  readonly failures: string[] = [];
  requests = 0;
  #isOver = false;
  readonly #lanes: readonly Promise<void>[];

  constructor(place: Place, options: ConnectionOptions, lanes = 4) {
    this.#lanes = Array.from({ length: lanes }, () => this.#run(place, options));
  }

  /** Resolves when so many more requests have ended. */
  async more(count: number): Promise<void> {
    const goal = this.requests + count;
    while (this.requests < goal) await new Promise((resolve) => setImmediate(resolve));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#lanes);
  }

  async #run(place: Place, options: ConnectionOptions): Promise<void> {
    while (!this.#isOver) {
      await askInTls(place, options).catch((error: Error) => this.failures.push(error.message));
      this.requests++;
    }
  }
}

/** A member that answers with the headers that it got, perhaps inside TLS. */
export async function startEcho(
  t: ExecutionContext<unknown>,
  address: string,
  tls?: IssuedCertificate,
): Promise<void> {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { servername } = request.socket as Partial<TLSSocket>;
    response.end(JSON.stringify({ headers: request.headers, servername }));
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  server.listen(MEMBER_PORT, address);
  await once(server, 'listening');
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
}

/** What the member of startEcho() got. */
export function echoOf(answer: string): {
  readonly headers: Readonly<Record<string, string>>;
  readonly servername: string;
} {
  return JSON.parse(answer.slice(answer.indexOf('{"headers"'), answer.lastIndexOf('}') + 1));
}

/** The certificate that a client gets, PEM. */
export async function shown(place: Place, options: object): Promise<string> {
  const { socket } = await handshake(place, options);
  const { raw } = socket.getPeerCertificate();
  socket.destroy();
  const lines = raw.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
