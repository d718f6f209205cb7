// Whether keepalived still does something. Its process wakes at least as often as advertisements come and go, and the
// kernel counts that: to look costs the read of one small file, and keepalived nothing.

import { readFile } from 'node:fs/promises';

/** Milliseconds in which even a keepalived that has thousands of addresses to set wakes. */
const LEAST = 2_000;
/** Advertisements, as of which three are waited for by a backup. */
const ADVERTS = 5;

export class Pulse {
  readonly #pid: () => Promise<number | undefined>;
  readonly #advertInterval: () => number;
  #last = { beat: '', at: 0 };

  /** `pid` of the process that speaks VRRP; `advertInterval` in milliseconds. */
  constructor(pid: () => Promise<number | undefined>, advertInterval: () => number) {
    this.#pid = pid;
    this.#advertInterval = advertInterval;
  }

  /** Whether it has been still for so long that it ought to be asked; `now` in milliseconds that never go back. */
  async isStill(now: number): Promise<boolean> {
    const beat = await this.#beat();
    if (beat !== this.#last.beat) this.#last = { beat, at: now };
    return beat !== '' && now - this.#last.at > Math.max(LEAST, ADVERTS * this.#advertInterval());
  }

  /** It has answered, or is another one. */
  reset(): void {
    this.#last = { beat: '', at: 0 };
  }

  /** Changes whenever the process goes to sleep; '' where there is none. */
  async #beat(): Promise<string> {
    const pid = await this.#pid();
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    const switches = /^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1];
    return switches === undefined ? '' : `${pid} ${switches}`;
  }
}
