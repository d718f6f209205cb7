// Writes into the status of objects what this host has to say of them, each host an entry of its own by a field manager of its
// own, so that no host writes over another. The agent that leads makes conditions and Events of the entries of all hosts.
// Why: docs/design/decisions/0096-each-host-reports-its-own.md

import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Log } from '../../host/log.ts';
import type { KubernetesApi } from '../../kubernetes/api/kubernetes-api.ts';
import { type Condition, conditionEntries, upOf } from '../../kubernetes/host-conditions.ts';
import {
  type CurrentReports,
  entryOf,
  GONE_MS,
  type HostReport,
  RENEW_MS,
} from '../../kubernetes/host-report.ts';
import { KINDS } from '../../kubernetes/kinds.ts';
import type { EventRecorder } from '../../kubernetes/writers/events.ts';
import type { EventText } from '../../kubernetes/writers/service-events.ts';
import { failedBy, type WriteOutcome, WriteQueue } from '../../kubernetes/writers/write-queue.ts';

export interface HostReportsOptions {
  readonly kind: 'BGPPeer' | 'AddressPool';
  readonly cluster: HostReportsCluster;
  /** The name of this host. */
  readonly host: () => string;
  /** What this host has to say, by the name of the object, undefined if it does not know yet; only of objects that concern it. */
  readonly own: () => ReadonlyMap<string, OwnReport | undefined>;
  readonly words: ReportWords;
  readonly clock: Clock;
  readonly log: Log;
}

export type OwnReport = Pick<HostReport, 'state' | 'message'>;

export interface HostReportsCluster {
  readonly api: KubernetesApi;
  readonly isLeader: () => boolean;
  readonly events: Pick<EventRecorder, 'record'>;
  /** As the API has shown it last. */
  readonly current: (name: string) => CurrentReports | undefined;
  /** The names of all objects. */
  readonly names: () => Iterable<string>;
}

export interface ReportWords {
  /** The types of the conditions. */
  readonly types: readonly string[];
  readonly conditions: (name: string, reports: readonly HostReport[], now: number) => readonly Condition[];
  /** The Event of a report that is another than before; undefined for none. */
  readonly event: (before: HostReport | undefined, now: HostReport) => EventText | undefined;
}

const INTERVAL_MS = 1_000;
/** The leader looks so often if a host has become silent. */
const ROUNDS_OF_A_CHECK = 30;
const RATE = 2;
const BURST = 20;
const SPACING_MS = 2_000;
const MAX_MANAGER_CHARACTERS = 128;

export class HostReports {
  readonly #options: HostReportsOptions;
  readonly #rounds: Rounds;
  readonly #own: WriteQueue;
  readonly #conditions: WriteQueue;
  /** Name of an object → what this host has to say. */
  readonly #reports = new Map<string, HostReport>();
  /** Name of an object → the reports for which there were Events. */
  readonly #seen = new Map<string, { readonly uid: string; readonly reports: readonly HostReport[] }>();
  /** Name of an object → the JSON text of the last write. */
  readonly #written = { own: new Map<string, string>(), conditions: new Map<string, string>() };
  #round = 0;

  constructor(options: HostReportsOptions) {
    const { kind, clock, log } = options;
    this.#options = options;
    const queue = (part: 'own' | 'conditions') =>
      new WriteQueue({
        ...{ clock, log, rate: RATE, burst: BURST, spacingMs: SPACING_MS },
        write: (name) => this.#write(part, name),
        check: (name) => {
          const body = this.#body(part, name);
          const isWritten = body === undefined || JSON.stringify(body) === this.#written[part].get(name);
          return isWritten ? Number.POSITIVE_INFINITY : 0;
        },
        faultTitle: `Cannot write the status of ${kind === 'BGPPeer' ? 'a BGPPeer' : 'an AddressPool'}`,
      });
    this.#own = queue('own');
    this.#conditions = queue('conditions');
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: async () => this.look(),
      onFailed: () => undefined,
      clock,
    });
  }

  start(): void {
    this.#own.lead(true);
    this.#rounds.start();
  }

  lead(isLeader: boolean): void {
    this.#written.conditions.clear();
    this.#conditions.lead(isLeader);
    for (const name of this.#options.cluster.names()) this.#conditions.add(name);
  }

  /** The API has shown the object, or it is gone, or its readability has changed. */
  shown(name: string): void {
    const current = this.#options.cluster.current(name);
    const isOther = current?.uid !== this.#seen.get(name)?.uid;
    if (current === undefined || isOther) this.#forget(name);
    if (current === undefined) return;
    const host = this.#options.host();
    const shown = current.reports.find((each) => each.host === host);
    const own = this.#reports.get(name);
    // Another process has changed it.
    if (own !== undefined && (shown?.state !== own.state || shown.message !== own.message)) {
      this.#written.own.delete(name);
      this.#own.add(name);
    }
    this.#tell(name, current);
    this.#conditions.add(name);
  }

  /** Each second: what this host has to say may have changed. */
  look(): void {
    const { own: ownOf, clock, cluster, host } = this.#options;
    const own = ownOf();
    const now = clock.wall();
    for (const [name, report] of own) {
      if (report === undefined) continue;
      const { state, message } = report;
      const last = this.#reports.get(name) ?? this.#lastOf(name, host());
      const isSame = last?.state === state && last.message === message;
      if (isSame && this.#reports.has(name) && now - last.reported < RENEW_MS) continue;
      const since = last?.state === state ? last.since : now;
      this.#reports.set(name, { host: host(), state, message, since, reported: now });
      this.#own.add(name);
    }
    for (const name of [...this.#reports.keys()])
      if (!own.has(name)) {
        this.#reports.delete(name);
        this.#own.add(name);
      }
    if (++this.#round % ROUNDS_OF_A_CHECK !== 0) return;
    for (const name of cluster.names()) {
      this.#conditions.add(name);
      if (cluster.isLeader()) void this.#removeGone(name);
      // Of an agent before this one, whose settings have changed.
      if (!own.has(name) && this.#lastOf(name, host()) !== undefined) this.#own.add(name);
    }
  }

  async close(): Promise<void> {
    this.#rounds.close();
    await Promise.all([this.#own.close(), this.#conditions.close()]);
  }

  #forget(name: string): void {
    this.#written.own.delete(name);
    this.#written.conditions.delete(name);
    this.#seen.delete(name);
  }

  #lastOf(name: string, host: string): HostReport | undefined {
    return this.#options.cluster.current(name)?.reports.find((each) => each.host === host);
  }

  /** Events only of changes that this agent has seen, so that a new leader does not repeat them. */
  #tell(name: string, { uid, reports }: CurrentReports): void {
    const { kind, cluster, words } = this.#options;
    const before = this.#seen.get(name);
    this.#seen.set(name, { uid, reports });
    if (before === undefined) return;
    for (const now of reports) {
      const last = before.reports.find(({ host }) => host === now.host);
      const text = words.event(last, now);
      if (text !== undefined)
        cluster.events.record({ apiVersion: KINDS[kind].apiVersion, kind, namespace: '', name, uid }, text);
    }
  }

  /** The entry of a host that has been silent for long goes: its field manager gives it up. */
  async #removeGone(name: string): Promise<void> {
    const current = this.#options.cluster.current(name);
    if (current === undefined) return;
    const now = this.#options.clock.wall();
    for (const { host, reported } of current.reports)
      if (now - reported > GONE_MS)
        await this.#patch(name, managerOf(host), this.#object(name, current.uid, {})).catch(() => undefined);
  }

  #body(part: 'own' | 'conditions', name: string): object | undefined {
    const { cluster, host, words, clock } = this.#options;
    const current = cluster.current(name);
    if (current === undefined) return undefined;
    if (part === 'own') {
      const report = this.#reports.get(name);
      if (report !== undefined) return this.#object(name, current.uid, { hosts: [entryOf(report)] });
      return this.#lastOf(name, host()) && this.#object(name, current.uid, {});
    }
    if (!cluster.isLeader()) return undefined;
    const now = clock.wall();
    const conditions = words.conditions(name, current.reports, now);
    const isThere = words.types.some((type) => current.conditions.has(type));
    // Objects of which no host reports stay untouched.
    if (conditions.length === 0 && !isThere) return undefined;
    const up = upOf(current.reports, now);
    return this.#object(name, current.uid, {
      ...(up !== '' && { hostsUp: up }),
      conditions: conditionEntries(conditions, current, now),
    });
  }

  #object(name: string, uid: string, status: object): object {
    const { kind } = this.#options;
    return { apiVersion: KINDS[kind].apiVersion, kind, metadata: { name, uid }, status };
  }

  async #write(part: 'own' | 'conditions', name: string): Promise<WriteOutcome> {
    const body = this.#body(part, name);
    if (body === undefined) return { result: 'unchanged' };
    const manager = part === 'own' ? managerOf(this.#options.host()) : 'headgate-hosts';
    const response = await this.#patch(name, manager, body);
    // The object is gone; a server-side apply of a status creates none.
    if (response.status === 404 || response.status === 409) return { result: 'unchanged' };
    if (response.status !== 200) return failedBy(response);
    this.#written[part].set(name, JSON.stringify(body));
    return { result: 'done' };
  }

  #patch(name: string, manager: string, body: object) {
    const { apiVersion, plural } = KINDS[this.#options.kind];
    return this.#options.cluster.api.request({
      method: 'PATCH',
      path: `/apis/${apiVersion}/${plural}/${encodeURIComponent(name)}/status`,
      query: { fieldManager: manager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body,
    });
  }
}

/** Each host has its own; the API server takes 128 characters. */
function managerOf(host: string): string {
  const name = `headgate-host-${host}`;
  return name.length <= MAX_MANAGER_CHARACTERS ? name : `headgate-host-${hash('sha256', host)}`;
}
