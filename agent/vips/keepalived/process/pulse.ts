// Detects a keepalived that hangs or is cut off. Its process wakes for each advertisement that it sends or receives, and
// the kernel counts that, so a check costs one read of a small file and no work of keepalived.

import { readFile } from 'node:fs/promises';

/** A keepalived that sets thousands of addresses wakes within this time. */
const MIN_STILL_MS = 2_000;
/** More than the three that a backup waits for. */
const STILL_ADVERTS = 5;

/** After so many milliseconds without advertisements something is wrong; `advertInterval` in milliseconds. */
export function stillAfterMs(advertInterval: number): number {
  return Math.max(MIN_STILL_MS, STILL_ADVERTS * advertInterval);
}

interface Beat {
  readonly pid: number;
  /** How often the process has gone to sleep. */
  readonly sleeps: number;
  /** Milliseconds of a monotonic clock. */
  readonly at: number;
}

export class Pulse {
  readonly #pid: () => Promise<number | undefined>;
  readonly #advertInterval: () => number;
  /** Beats of one process, the oldest first. */
  #beats: readonly Beat[] = [];

  /** `pid` of the process that speaks VRRP; `advertInterval` in milliseconds. */
  constructor(pid: () => Promise<number | undefined>, advertInterval: () => number) {
    this.#pid = pid;
    this.#advertInterval = advertInterval;
  }

  /**
   * True if the process has woken for less than half of the advertisements that were due: it may hang, or neither send
   * nor receive. Other events may wake it as well. `now` in milliseconds of a monotonic clock.
   */
  async isSlow(now: number): Promise<boolean> {
    const beat = await this.#beat(now);
    if (beat === undefined) {
      this.reset();
      return false;
    }
    const windowMs = stillAfterMs(this.#advertInterval());
    const beats = [...this.#beats.filter(({ pid }) => pid === beat.pid), beat];
    const start = beats.findLastIndex(({ at }) => now - at > windowMs);
    this.#beats = beats.slice(Math.max(0, start));
    const [first = beat] = this.#beats;
    const passed = now - first.at;
    return passed > windowMs && beat.sleeps - first.sleeps < passed / this.#advertInterval() / 2;
  }

  /** keepalived has answered, or another keepalived runs. */
  reset(): void {
    this.#beats = [];
  }

  /** undefined if there is no process. */
  async #beat(at: number): Promise<Beat | undefined> {
    const pid = await this.#pid();
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    const sleeps = /^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1];
    return pid === undefined || sleeps === undefined ? undefined : { pid, sleeps: Number(sleeps), at };
  }
}
