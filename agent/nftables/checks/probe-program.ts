// Probes members from inside a network namespace, where the agent itself is not: a long-lived program in Perl does it
// (templates/nftables/probes.pl), which starts with the first probe and again after it has ended. Owns the process.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { systemClock } from '../../base/clock.ts';
import { parseAddress } from '../../base/ip.ts';
import { Lines } from '../../base/lines.ts';
import { inNamespace } from '../../host/namespace.ts';
import { REFUSED, type UdpAddress, type UdpAnswer } from './udp-probe.ts';

export interface Probe extends UdpAddress {
  readonly kind: 'udp' | 'sctp' | 'tcp' | 'http';
  /** Only for http: printable characters. */
  readonly path: string;
}

/** `status`: the code of an answer of HTTP. */
export type ProbeAnswer = UdpAnswer | 'open' | { readonly status: number };

const PROGRAM = readFileSync(new URL('../../../templates/nftables/probes.pl', import.meta.url), 'utf8');
const MAX_LINE_BYTES = 300;
const MAX_TIMEOUT_MS = 3_600_000;
/** The program answers each probe; one that is stopped or hangs does not. */
const GRACE_MS = 30_000;

export class ProbeProgram {
  readonly #netns: string;
  #child: ChildProcessWithoutNullStreams | undefined;
  #number = 0;
  /** By number. */
  readonly #asked = new Map<
    string,
    { readonly probe: Probe; readonly resolve: (answer: ProbeAnswer) => void }
  >();
  #said = '';
  #fault = '';
  #isClosed = false;

  constructor(netns: string) {
    this.#netns = netns;
  }

  /** Why it does not run; '' if it answered last, or was not asked. */
  get fault(): string {
    return this.#fault;
  }

  /** `unknown`: the program does not run. Never rejects. */
  probe(probe: Probe, timeoutMs: number): Promise<ProbeAnswer> {
    const line = lineOf(probe, timeoutMs);
    if (line === undefined || this.#isClosed) return Promise.resolve('unknown');
    const child = this.#child ?? this.#start();
    const number = String(++this.#number);
    return new Promise((resolve) => {
      const cancel = systemClock.after(timeoutMs + GRACE_MS, () => this.#ended(child, 'it does not answer'));
      const end = (answer: ProbeAnswer): void => {
        cancel();
        resolve(answer);
      };
      this.#asked.set(number, { probe, resolve: end });
      child.stdin.write(`${number} ${line}\n`);
    });
  }

  /** As probeUdp(). */
  readonly udp = async (address: UdpAddress, timeoutMs: number): Promise<UdpAnswer> => {
    const answer = await this.probe({ ...address, kind: 'udp', path: '' }, timeoutMs);
    return answer === 'open' || (typeof answer === 'object' && 'status' in answer) ? 'unknown' : answer;
  };

  close(): void {
    this.#isClosed = true;
    if (this.#child !== undefined) this.#ended(this.#child, '');
  }

  #start(): ChildProcessWithoutNullStreams {
    const child = spawn(...inNamespace(this.#netns, 'perl', ['-e', PROGRAM]), {
      // Its words for errors are in answers.
      env: { ...process.env, LC_ALL: 'C' },
      stdio: 'pipe',
    });
    this.#child = child;
    this.#said = '';
    const lines = new Lines(MAX_LINE_BYTES, () => new Error('The line is too long'));
    child.stdout.on('data', (chunk: Uint8Array) => {
      for (const line of lines.push(chunk)) this.#read(line);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(0, 200);
    });
    child.stdin.on('error', () => undefined);
    child.on('error', (error) => this.#ended(child, error.message));
    child.on('close', () => this.#ended(child, this.#said.trim()));
    child.unref();
    return child;
  }

  #read(line: string): void {
    const [, number = '', words = ''] = /^(\d+) (.+)$/.exec(line) ?? [];
    const asked = this.#asked.get(number);
    this.#asked.delete(number);
    this.#fault = '';
    asked?.resolve(answerIn(words, asked.probe));
  }

  #ended(child: ChildProcessWithoutNullStreams, why: string): void {
    child.kill('SIGKILL');
    if (this.#child !== child) return;
    this.#child = undefined;
    if (!this.#isClosed) this.#fault = why || 'perl has ended';
    for (const { resolve } of this.#asked.values()) resolve('unknown');
    this.#asked.clear();
  }
}

/** undefined if a value is not allowed, which is a bug. */
function lineOf({ kind, address, port, path }: Probe, timeoutMs: number): string | undefined {
  const isPort = Number.isInteger(port) && port >= 1 && port <= 65_535;
  if (parseAddress(address)?.address !== address || !isPort || !/^[\x21-\x7e]*$/.test(path)) return undefined;
  return `${kind} ${address} ${port} ${Math.min(MAX_TIMEOUT_MS, Math.round(timeoutMs))} ${path}`;
}

function answerIn(words: string, { kind }: Probe): ProbeAnswer {
  if (words === 'data' || words === 'silence' || words === 'open') return words;
  const status = /^status (\d{3})$/.exec(words)?.[1];
  if (status !== undefined) return { status: Number(status) };
  const [, why] = /^failed (.+)$/.exec(words) ?? [];
  if (why === undefined) return 'unknown';
  // The same value for each, by which such answers are known.
  return kind === 'udp' && why === 'Connection refused' ? REFUSED : { failure: why };
}
