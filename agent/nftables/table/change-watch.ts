// Which processes change tables of nftables, as the kernel reports it at once. nft could do this, but reads all elements into
// memory first, so a small program in Perl does it (templates/nftables/changes.pl). Owns the process.
// Why: docs/design/decisions/0061-changes-of-others.md

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { Lines } from '../../base/lines.ts';
import type { Log } from '../../host/log.ts';
import { inNamespace } from '../../host/namespace.ts';

/** What a transaction has changed in the tables: elements alone, or also sets, chains, rules or tables. */
export type Changed = 'elements' | 'rules';

export interface ChangeWatchOptions {
  readonly netns: string;
  /** Names, in any family. */
  readonly tables: readonly string[];
  /** `process`: the id of the one that has changed them. */
  readonly onChanged: (process: number, what: Changed) => void;
  /** Changes may have been missed: the process had ended, and now watches again. */
  readonly onMissed: () => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const PROGRAM = readFileSync(new URL('../../../templates/nftables/changes.pl', import.meta.url), 'utf8');
const RETRY = { firstMs: 1_000, mostMs: 600_000 } as const;
/** A process that ends earlier has failed once more, even if it began to watch. */
const LASTING_MS = 60_000;
const MAX_LINE_BYTES = 100;

export class ChangeWatch {
  readonly #options: ChangeWatchOptions;
  #child: ChildProcess | undefined;
  #cancelRetry: (() => void) | undefined;
  #failures = 0;
  #startedAt = 0;
  #isOpen = false;

  constructor(options: ChangeWatchOptions) {
    this.#options = options;
  }

  /** Starts the process, and again whenever it ends. */
  start(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#run();
  }

  close(): void {
    this.#isOpen = false;
    this.#cancelRetry?.();
    this.#child?.kill('SIGKILL');
  }

  #run(): void {
    const { netns, tables, clock = systemClock } = this.#options;
    this.#startedAt = clock.monotonic();
    const [program, args] = inNamespace(netns, 'perl', ['-e', PROGRAM, ...tables]);
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    const lines = new Lines(MAX_LINE_BYTES, () => new Error('The line is too long'));
    child.stdout.on('data', (chunk: Uint8Array) => {
      for (const line of lines.push(chunk)) this.#read(line);
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(0, 200);
    });
    child.stdin.on('error', () => undefined);
    child.on('error', (error) => {
      said = error.message;
    });
    child.on('close', () => this.#ended(said.trim()));
    child.unref();
  }

  #read(line: string): void {
    if (line === 'watching') {
      if (this.#failures > 0) this.#options.onMissed();
      return;
    }
    const [, process = '', what] = /^(\d+) (elements|rules)$/.exec(line) ?? [];
    if (what === 'elements' || what === 'rules') this.#options.onChanged(Number(process), what);
  }

  #ended(why: string): void {
    const { log, clock = systemClock } = this.#options;
    this.#child = undefined;
    if (!this.#isOpen) return;
    this.#failures = clock.monotonic() - this.#startedAt < LASTING_MS ? this.#failures + 1 : 1;
    if (this.#failures === 1)
      log.warn(
        'Cannot watch the tables of nftables: single elements and rules that other programs change stay changed',
        {
          error: why || 'perl has ended',
        },
      );
    this.#cancelRetry = clock.after(backoffMs(this.#failures, RETRY), () => this.#run());
  }
}
