// Clients that resume a TLS session at another place than it began, in each way that TLS has: by `openssl s_client`, because
// Node offers a session only for the name that it began with.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { IssuedCertificate } from './tls.ts';
import type { Place } from './traffic.ts';

/** By words of `openssl s_client`. */
export const WAYS_TO_RESUME = ['-tls1_2 -no_ticket', '-tls1_2', '-tls1_3'] as const;

/** Longer than any answer takes. */
const TIMEOUT_MS = 10_000;

export interface Client {
  readonly place: Place;
  /** The name that it asks for in the handshake, and the `Host` of its request. */
  readonly host: string;
  /** What it shows; absent: no certificate. */
  readonly shows?: IssuedCertificate;
}

export class ResumingClients {
  readonly #folder: string;
  #count = 0;

  static async create(t: ExecutionContext<unknown>): Promise<ResumingClients> {
    const folder = await mkdtemp(join(tmpdir(), 'hg-sessions-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    return new ResumingClients(folder);
  }

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** The session that a request leaves, as text; '' if the server gives none. */
  async session(client: Client, way: string): Promise<string> {
    const file = this.#file('session');
    await this.#ask(client, [...way.split(' '), '-sess_out', file]);
    return readFile(file, 'utf8').catch(() => '');
  }

  /** The answer to a request under a session, without a certificate; '' if the handshake fails. `isResumed`: the server agrees. */
  async resume(
    client: Omit<Client, 'shows'>,
    way: string,
    session: string,
  ): Promise<{ readonly answer: string; readonly isResumed: boolean }> {
    const file = this.#file('session');
    await writeFile(file, session);
    const text = await this.#ask(client, [...way.split(' '), '-sess_in', file]);
    const at = text.indexOf('HTTP/1.1 ');
    return { answer: at === -1 ? '' : text.slice(at), isResumed: /^Reused, /m.test(text) };
  }

  async #ask({ place, host, shows }: Client, words: readonly string[]): Promise<string> {
    const own: string[] = [];
    if (shows !== undefined) {
      const file = this.#file('pem');
      await writeFile(file, `${shows.cert}${shows.key}`, { mode: 0o600 });
      own.push('-cert', file, '-key', file);
    }
    const bind = place.from === undefined ? [] : ['-bind', place.from];
    const to = ['-connect', `${place.address}:${place.port}`, '-servername', host, ...bind, '-ign_eof'];
    return new Promise((resolve) => {
      const args = ['s_client', ...to, ...words, ...own];
      const child = execFile('openssl', args, { timeout: TIMEOUT_MS }, (_, stdout) => resolve(stdout));
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    });
  }

  #file(end: string): string {
    return join(this.#folder, `${++this.#count}.${end}`);
  }
}
