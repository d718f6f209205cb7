// A long-lived program that deletes flows of the kernel (templates/nftables/flows.pl): one pass through all flows of the host
// for any number of places. Long-lived, because each start of a program stops the agent for a moment. Owns the process.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { Lines } from '../../base/lines.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import { inNamespace } from '../../host/namespace.ts';
import type { Family } from '../../model/load-balancer.ts';

export interface Passed {
  /** Flows of the families. */
  readonly flows: number;
  readonly deleted: number;
}

const PROGRAM = readFileSync(new URL('../../../templates/nftables/flows.pl', import.meta.url), 'utf8');
const NUMBERS: Readonly<Record<Family, number>> = { v4: 2, v6: 10 };
const TIMEOUT_MS = 60_000;
const MAX_LINE_BYTES = 100;

interface Question {
  readonly resolve: (passed: Passed) => void;
  readonly reject: (error: HeadgateError) => void;
}

export class FlowProgram {
  readonly #netns: string;
  readonly #timeout = new ReadFirstTimeout(() => this.#end('it does not answer'));
  #child: ChildProcessWithoutNullStreams | undefined;
  #question: Question | undefined;
  #said = '';

  constructor(netns: string) {
    this.#netns = netns;
  }

  /** Only one pass at a time. Errors: COMMAND_FAILED; what was deleted is then not known. */
  pass(orders: readonly string[], families: Iterable<Family>): Promise<Passed> {
    const child = this.#child ?? this.#start();
    return new Promise((resolve, reject) => {
      this.#question = { resolve, reject };
      this.#timeout.wait(TIMEOUT_MS);
      const numbers = Array.from(families, (family) => NUMBERS[family]);
      child.stdin.write(`${[...orders, ['go', ...numbers].join(' ')].join('\n')}\n`);
    });
  }

  close(): void {
    this.#end('it was stopped');
  }

  #start(): ChildProcessWithoutNullStreams {
    const child = spawn(...inNamespace(this.#netns, 'perl', ['-e', PROGRAM]), { stdio: 'pipe' });
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
    child.on('close', () => this.#ended(child, this.#said.trim() || 'perl has ended'));
    child.unref();
    return child;
  }

  #read(line: string): void {
    const [, flows, deleted] = /^(\d+) (\d+)$/.exec(line) ?? [];
    if (flows === undefined) return;
    this.#timeout.end();
    this.#question?.resolve({ flows: Number(flows), deleted: Number(deleted) });
    this.#question = undefined;
  }

  #ended(child: ChildProcessWithoutNullStreams, why: string): void {
    if (this.#child === child) this.#end(why);
  }

  #end(why: string): void {
    this.#timeout.end();
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
    const message = `Cannot delete flows of the kernel: ${why}`;
    this.#question?.reject(new HeadgateError('COMMAND_FAILED', message, { retry: 'later' }));
    this.#question = undefined;
  }
}
