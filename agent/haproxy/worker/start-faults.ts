// Finds in HAProxy's output why it does not start, and takes the load balancer or address at fault out of service, so
// that the next start has a valid file.

import { HeadgateError } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
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
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** See CandidateMakerOptions. */
  readonly onRefused: (key: string) => void;
  readonly log: Log;
}

/** Lines of the master about the end of a worker, which say nothing about a start. */
const WORKER_ENDED = /^(Current worker .*exited with code|exit-on-failure)/;

export class StartFaults {
  readonly #options: StartFaultsOptions;
  /** Why the last start failed. */
  readonly #last = new Fault();
  /** Bytes of the log that were read, of a HAProxy that another process starts. */
  #readBytes = 0;

  constructor(options: StartFaultsOptions) {
    this.#options = options;
  }

  /** HAProxy does not run: its output from now on is about a start. */
  async begin(): Promise<void> {
    this.#readBytes = await logSize(this.#options.paths.log);
  }

  /** HAProxy runs. */
  end(): void {
    this.#last.clear();
  }

  /** Logs a new fault; false if it is the same as before. */
  note(fault: string): boolean {
    const isNews = this.#last.set(fault);
    if (isNews) this.#options.log.warn('HAProxy does not start: looking for the cause', { error: fault });
    return isNews;
  }

  /** Takes out of service what HAProxy's alerts name; true if they name anything that is in the candidate. */
  rejectNamed(output: string, candidate: Candidate, lastGood: ReadonlyMap<string, LoadBalancer>): boolean {
    const { quarantine, desired, onRefused } = this.#options;
    const { failures, rest } = splitBindFailures(output);
    const { alerts, listeners } = readAlerts(rest, candidate.chunks.join(''));
    let any = failures.length > 0;
    this.#block(failures);
    for (const key of new Set([...listeners].map(ownerOfListener))) {
      const loadBalancer = desired.get(key);
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
   * Reads the new output of a HAProxy that another process tries to start. Addresses that it cannot bind are left out of
   * the file, and so are load balancers that it refuses in a check; its alerts name lines of a file that may have changed,
   * so these are not used. If only the rest of the file is at fault, the last good file is restored.
   * Returns the fault, '' without output. Errors: HAPROXY_REJECTED, FILE_WRITE.
   */
  async readOutput(): Promise<string> {
    const { paths, maker, desired, file } = this.#options;
    const { text: output, end } = await readLog(paths.log, this.#readBytes);
    this.#readBytes = end;
    const alerts = readAlerts(output, '').alerts.filter((alert) => !WORKER_ENDED.test(alert));
    if (alerts.length === 0) return '';
    // Without process ids, the alerts of all attempts are the same.
    const different = new Set(alerts.map((alert) => alert.replaceAll(/ \(\d+\)/g, '')));
    const fault = `HAProxy does not start: ${[...different].join('; ')}`;
    const isAgain = !this.note(fault);
    const { failures } = splitBindFailures(output);
    this.#block(failures);
    if (failures.length > 0) {
      // The rest of the file was accepted: the next start gets the desired state without these addresses.
      maker.globalAccepted();
      return fault;
    }
    // Earlier acceptance may be that of another version of HAProxy.
    if (!isAgain) maker.refused(new Map());
    try {
      if ((await maker.rejectInvalid(desired)) || !isAgain) return fault;
      maker.globalRefused(maker.effective(desired));
      await file.restoreLastGood();
      return fault;
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'HAPROXY_REJECTED') await file.restoreLastGood();
      throw error;
    }
  }

  #block(failures: readonly BindFailure[]): void {
    const { quarantine, desired, onRefused } = this.#options;
    for (const { address, port, reason } of failures) quarantine.block(address, port, reason);
    const binds = new Set(failures.map(({ address, port }) => `${address} ${port}`));
    for (const [key, { listeners }] of desired)
      if (listeners.some((each) => bindsOf(each).some((bind) => binds.has(bind)))) onRefused(key);
  }
}
