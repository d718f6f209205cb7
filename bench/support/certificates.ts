// Certificates of a benchmark, each for one host, and clients that look at them.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface CertificateFile {
  readonly host: string;
  readonly cert: string;
  readonly key: string;
}

/** Enough to keep all processors busy. */
const AT_ONCE = 4;

/** Self-signed, with keys of P-256, in files of this folder. */
export async function makeCertificates(
  folder: string,
  hosts: readonly string[],
): Promise<readonly CertificateFile[]> {
  mkdirSync(folder, { recursive: true });
  const waiting = [...hosts.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [at, host] = next;
      await run('openssl', [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '90'],
        ...['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`],
        ...['-keyout', join(folder, `${at}.key`), '-out', join(folder, `${at}.crt`)],
      ]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return hosts.map((host, at) => ({
    host,
    cert: readFileSync(join(folder, `${at}.crt`), 'utf8'),
    key: readFileSync(join(folder, `${at}.key`), 'utf8'),
  }));
}

export interface TlsAnswer {
  /** The serial number of the server's certificate. */
  readonly serial: string;
  /** The reason if the answer was not a 200; '' if it was. */
  readonly failure: string;
}

/** A handshake that asks for this host, and a request. Never rejects. */
export async function tlsRequest(address: string, port: number, host: string): Promise<TlsAnswer> {
  const socket = connect({ host: address, port, servername: host, rejectUnauthorized: false });
  socket.setEncoding('latin1').setTimeout(5_000, () => socket.destroy(new Error('timeout')));
  try {
    await once(socket, 'secureConnect');
    const serial = socket.getPeerX509Certificate()?.serialNumber ?? '';
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    return { serial, failure: text.startsWith('HTTP/1.1 200 ') ? '' : 'not 200' };
  } catch (error) {
    return { serial: '', failure: (error as NodeJS.ErrnoException).code ?? String(error) };
  } finally {
    socket.destroy();
  }
}

/** Makes a folder of files as HAProxy's `crt` takes them. */
export function writePems(folder: string, certificates: readonly CertificateFile[]): void {
  mkdirSync(folder, { recursive: true });
  for (const [at, { cert, key }] of certificates.entries())
    writeFileSync(join(folder, `${at}.pem`), cert + key);
}
