// Asks keepalived for its state: a signal, upon which it writes a file. One question at a time.

import { readFile, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { runsWith } from '../../../host/detached-process.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { type InstanceDump, parseDump } from '../states/dump.ts';
import { signalKeepalived } from './process.ts';

/** Milliseconds; it takes 5 as a rule. */
const PATIENCE = 1_000;

export class Question {
  readonly #paths: KeepalivedPaths;
  #last: Promise<unknown> = Promise.resolve();

  constructor(paths: KeepalivedPaths) {
    this.#paths = paths;
  }

  /** `pid` of the parent process. undefined if keepalived does not run or does not answer. Never rejects. */
  ask(pid: number, dumpSignal: number): Promise<readonly InstanceDump[] | undefined> {
    const answer = this.#last.then(() => this.#ask(pid, dumpSignal)).catch(() => undefined);
    this.#last = answer;
    return answer;
  }

  async #ask(pid: number, dumpSignal: number): Promise<readonly InstanceDump[] | undefined> {
    if (!(await runsWith(pid, this.#paths.config))) return undefined;
    await rm(this.#paths.dump, { force: true });
    if (!signalKeepalived(pid, dumpSignal)) return undefined;
    for (const until = performance.now() + PATIENCE; performance.now() < until; await delay(3)) {
      const dump = parseDump(await readFile(this.#paths.dump, 'utf8').catch(() => ''));
      if (dump !== undefined) return dump;
    }
    return undefined;
  }
}
