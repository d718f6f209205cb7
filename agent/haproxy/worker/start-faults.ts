// What keeps HAProxy from starting, read from what it says: the load balancer or the address at fault is taken out of
// service, so that the next start has a file that works. Remembers what was said last.

import { HeadgateError } from '../../base/errors.ts';
import { logSize, readLog } from '../../host/daemon-output.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { listenersIn, ownerOfListener } from '../../model/names.ts';
import type { Candidate, CandidateMaker } from '../config/candidate.ts';
import { type BindFailure, readAlerts, splitBindFailures } from '../config/check.ts';
import type { ConfigFile } from '../config/config-file.ts';
import { bindsOf } from '../config/listener-config.ts';
import type { Quarantine } from '../config/quarantine.ts';
import type { HaproxyPaths } from '../paths.ts';

export interface StartFaultsOptions {
  readonly paths: HaproxyPaths;
  readonly maker: CandidateMaker;
  readonly quarantine: Quarantine;
  readonly file: ConfigFile;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** As of the candidate maker. */
  readonly onRefused: (key: string) => void;
  readonly log: Log;
}

/** What a master says of a worker that was there, however it has ended. */
const OF_AN_END = /^(Current worker .*exited with code|exit-on-failure)/;

export class StartFaults {
  readonly #options: StartFaultsOptions;
  /** Why HAProxy did not start when it was tried last. */
  #last = '';
  /** How much of its log has been read of a HAProxy that someone else starts. */
  #heard = 0;

  constructor(options: StartFaultsOptions) {
    this.#options = options;
  }

  /** HAProxy is not there: what it says from now on is about a start. */
  async begin(): Promise<void> {
    this.#heard = await logSize(this.#options.paths.log);
  }

  /** It is there. */
  end(): void {
    this.#last = '';
  }

  /** True for what it did not say the last time: it is logged. */
  note(fault: string): boolean {
    if (fault === this.#last) return false;
    this.#last = fault;
    this.#options.log.warn('HAProxy does not start, looking for what is at fault', { error: fault });
    return true;
  }

  /** Takes out of service what HAProxy's alerts name; true where they name any that is in the candidate. */
  rejectNamed(output: string, candidate: Candidate, lastGood: ReadonlyMap<string, LoadBalancer>): boolean {
    const { quarantine, wanted, onRefused } = this.#options;
    const { failures, rest } = splitBindFailures(output);
    const { alerts, listeners } = readAlerts(rest, candidate.chunks.join(''));
    let any = failures.length > 0;
    this.#block(failures);
    for (const key of new Set([...listeners].map(ownerOfListener))) {
      const loadBalancer = wanted.get(key);
      if (loadBalancer === undefined || !candidate.loadBalancers.has(key)) continue;
      const alert =
        alerts.find((line) => listenersIn(line).some((name) => ownerOfListener(name) === key)) ??
        alerts[0] ??
        'no reason given';
      quarantine.reject(loadBalancer, lastGood.get(key), `HAProxy rejects its configuration: ${alert}`);
      onRefused(key);
      any = true;
    }
    return any;
  }

  /**
   * What a HAProxy that someone else tries to start has said since: what it could not listen on is left out of the file,
   * and so is what it finds fault with when it is asked. Its alerts name lines of a file that may be another by now, so
   * nothing is read from these. Where nothing is at fault but the rest of the file, the last good one is put in place.
   * Returns its words, '' where it has said nothing. Errors: HAPROXY_REJECTED, FILE_WRITE.
   */
  async heed(): Promise<string> {
    const { paths, maker, wanted, file } = this.#options;
    const { text: said, end } = await readLog(paths.log, this.#heard);
    this.#heard = end;
    const alerts = readAlerts(said, '').alerts.filter((alert) => !OF_AN_END.test(alert));
    if (alerts.length === 0) return '';
    // It is started again and again.
    const words = new Set(alerts.map((alert) => alert.replaceAll(/ \(\d+\)/g, '')));
    const fault = `HAProxy does not start: ${[...words].join('; ')}`;
    const isAgain = !this.note(fault);
    const { failures } = splitBindFailures(said);
    this.#block(failures);
    if (failures.length > 0) {
      // It came as far as that: what it is to be started with next is what is wanted, without these.
      maker.tried(maker.effective(wanted), true);
      return fault;
    }
    // What it has accepted may have been another version's word.
    if (!isAgain) maker.refused(new Map());
    try {
      if ((await maker.weed(wanted)) || !isAgain) return fault;
      maker.tried(maker.effective(wanted), false);
      await file.restoreLastGood();
      return fault;
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'HAPROXY_REJECTED') await file.restoreLastGood();
      throw error;
    }
  }

  #block(failures: readonly BindFailure[]): void {
    const { quarantine, wanted, onRefused } = this.#options;
    for (const { address, port, reason } of failures) {
      quarantine.block(address, port, reason);
      for (const [key, { listeners }] of wanted)
        if (listeners.flatMap(bindsOf).includes(`${address} ${port}`)) onRefused(key);
    }
  }
}
