// What this agent writes to the cluster: the Lease of the one agent that writes, the status of Services, and Events.
// Only the holder of the Lease writes anything else.

import { systemClock } from '../base/clock.ts';
import type { Log } from '../host/log.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { CurrentService } from '../kubernetes/current-service.ts';
import { EventRecorder, type EventSubject } from '../kubernetes/writers/events.ts';
import { LEASE, Lease } from '../kubernetes/writers/lease.ts';
import { writtenEvents } from '../kubernetes/writers/service-events.ts';
import { StatusWriter } from '../kubernetes/writers/status-writer.ts';

export interface ClusterWritersOptions {
  readonly api: KubernetesApi;
  /** A Service as the API has shown it last. */
  readonly currentService: (key: string) => CurrentService | undefined;
  /** Whether this agent may take the Lease: an agent without a dataplane would report that nothing is served. */
  readonly isFit: () => boolean;
  readonly settings: WriterSettings;
  readonly metrics: WriterMetrics;
  readonly log: Log;
}

export interface WriterSettings {
  /** Of this agent among those of the cluster. */
  readonly identity: string;
  /** Of the Lease; deploy/rbac.yaml names it. */
  readonly leaseNamespace: string;
  /** Whether Services get the finalizer. */
  readonly finalizer: boolean;
}

export interface WriterMetrics {
  statusWritten(result: 'done' | 'conflict' | 'failed' | 'dropped'): void;
  eventSent(result: 'done' | 'dropped'): void;
}

export interface WritingStatus {
  /** This agent writes. */
  readonly leading: boolean;
  /** '' if no agent does, or if it is not known which one. */
  readonly leader: string;
  readonly faults: readonly string[];
}

export class ClusterWriters {
  readonly lease: Lease;
  readonly services: StatusWriter;
  readonly events: EventRecorder;
  readonly #leaseName: string;
  readonly #onLeader: ((isLeader: boolean) => void)[] = [];

  constructor({ api, currentService, isFit, settings, metrics, log }: ClusterWritersOptions) {
    const { identity, leaseNamespace, finalizer } = settings;
    const clock = systemClock;
    const isLeader = (): boolean => this.lease.isLeader;
    const changed = (): void => {
      for (const callback of this.#onLeader) callback(isLeader());
    };
    this.#leaseName = `${leaseNamespace}/${LEASE}`;
    this.events = new EventRecorder({ api, clock, log, metrics, instance: identity, isLeader });
    this.services = new StatusWriter({
      api,
      clock,
      log,
      metrics,
      isLeader,
      currentService,
      addFinalizer: finalizer,
      onWritten: (before, after) => {
        for (const text of writtenEvents(before, after)) this.events.record(subjectOf(after), text);
      },
    });
    this.lease = new Lease({
      api,
      clock,
      log,
      namespace: leaseNamespace,
      name: LEASE,
      identity,
      isFit,
      onLeader: (leads) => {
        this.services.lead(leads);
        changed();
      },
      onBarred: changed,
    });
  }

  /** Whether this agent writes to the cluster. */
  get isLeader(): boolean {
    return this.lease.isLeader;
  }

  /** The API server lets no agent with these rights write. */
  get isBarred(): boolean {
    return this.lease.isBarred;
  }

  /** `callback` gets what this agent is now, when it begins or ceases to write, or to be barred from it. */
  onLeader(callback: (isLeader: boolean) => void): void {
    this.#onLeader.push(callback);
  }

  /** The Lease as `namespace/name`. */
  leadership(): { readonly isLeader: boolean; readonly lease: string } {
    return { isLeader: this.isLeader, lease: this.#leaseName };
  }

  status(): WritingStatus {
    const { isLeader } = this;
    const faults = [
      ['Cannot take part in the leader election', this.lease.fault],
      ['Cannot write the status of a Service', isLeader ? this.services.fault : ''],
      ['Cannot send an Event', isLeader ? this.events.fault : ''],
    ] as const;
    return {
      leading: isLeader,
      leader: this.lease.holder,
      faults: faults.flatMap(([what, why]) => (why === '' ? [] : `${what}: ${why}`)),
    };
  }

  start(): void {
    this.lease.start();
  }

  /** Gives the Lease back, so that another agent need not wait for it to expire. */
  async close(): Promise<void> {
    await this.services.close();
    await this.events.close();
    await this.lease.close();
  }
}

export function subjectOf({
  namespace,
  name,
  uid,
}: Pick<CurrentService, 'namespace' | 'name' | 'uid'>): EventSubject {
  return { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
}
