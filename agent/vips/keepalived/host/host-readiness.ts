// Repeats the checks of preflight.ts while the agent runs, because an administrator may change the host at any time.
// Logs each fault when it appears, changes or ends.

import type { Finding } from '../../../host/finding.ts';
import type { Log } from '../../../host/log.ts';

export class HostReadiness {
  readonly #preflight: () => Promise<readonly Finding[]>;
  readonly #log: Log;
  #faults: readonly Finding[] = [];

  constructor(preflight: () => Promise<readonly Finding[]>, log: Log) {
    this.#preflight = preflight;
    this.#log = log;
  }

  /** As of the last check. Faults do not prevent keepalived from running. */
  get faults(): readonly Finding[] {
    return this.#faults;
  }

  /** Never rejects: after a check that failed the last result stands. */
  async check(): Promise<void> {
    const before = this.#faults;
    const findings = await this.#preflight().catch(() => undefined);
    if (findings === undefined) return;
    const now = findings.filter(({ ok }) => !ok);
    this.#faults = now;
    const has = (faults: readonly Finding[], { what, detail }: Finding): boolean =>
      faults.some((each) => each.what === what && each.detail === detail);
    for (const fault of now)
      if (!has(before, fault))
        this.#log.warn('This host is not ready for VRRP', { what: fault.what, detail: fault.detail });
    for (const { what } of before)
      if (!now.some((each) => each.what === what)) this.#log.info('A fault of this host is over', { what });
  }
}
