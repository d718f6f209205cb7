// Detects a keepalived that hangs. Its process wakes for each advertisement that it sends or receives, and the kernel
// counts that, so a check costs one read of a small file and no work of keepalived.

import { readFile } from 'node:fs/promises';

/** A keepalived that sets thousands of addresses wakes within this time. */
const MIN_STILL_MS = 2_000;
/** More than the three that a backup waits for. */
const STILL_ADVERTS = 5;

export class Pulse {
  readonly #pid: () => Promise<number | undefined>;
  readonly #advertInterval: () => number;
  #last = { beat: '', at: 0 };

  /** `pid` of the process that speaks VRRP; `advertInterval` in milliseconds. */
  constructor(pid: () => Promise<number | undefined>, advertInterval: () => number) {
    this.#pid = pid;
    this.#advertInterval = advertInterval;
  }

  /** True if the process has not woken for so long that it may hang; `now` in milliseconds of a monotonic clock. */
  async isStill(now: number): Promise<boolean> {
    const beat = await this.#beat();
    if (beat !== this.#last.beat) this.#last = { beat, at: now };
    return (
      beat !== '' && now - this.#last.at > Math.max(MIN_STILL_MS, STILL_ADVERTS * this.#advertInterval())
    );
  }

  /** keepalived has answered, or another keepalived runs. */
  reset(): void {
    this.#last = { beat: '', at: 0 };
  }

  /** Changes whenever the process goes to sleep; '' if there is no process. */
  async #beat(): Promise<string> {
    const pid = await this.#pid();
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    const switches = /^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1];
    return switches === undefined ? '' : `${pid} ${switches}`;
  }
}
