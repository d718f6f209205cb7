// The writers to the cluster: the Lease, the statuses of Services and other objects, and Events. Only the holder of the Lease writes statuses
// and Events.

import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../host/log.ts';
import type { KubernetesApi } from '../../kubernetes/api/kubernetes-api.ts';
import type { CurrentObject } from '../../kubernetes/current-object.ts';
import type { CurrentService } from '../../kubernetes/current-service.ts';
import { apiVersionOf } from '../../kubernetes/status-kinds.ts';
import { EventRecorder, type EventSubject } from '../../kubernetes/writers/events.ts';
import { LEASE, Lease } from '../../kubernetes/writers/lease.ts';
import { objectEvents } from '../../kubernetes/writers/object-events.ts';
import { ObjectStatusWriter } from '../../kubernetes/writers/object-status-writer.ts';
import { writtenEvents } from '../../kubernetes/writers/service-events.ts';
import { StatusWriter } from '../../kubernetes/writers/status-writer.ts';
import type { StatusName } from '../../model/object-statuses.ts';

export interface ClusterWritersOptions {
  readonly api: KubernetesApi;
  /** The last version of a Service that the API server has sent. */
  readonly currentService: (key: string) => CurrentService | undefined;
  /** The same of a Gateway, a route or another object. */
  readonly currentObject: (name: StatusName) => CurrentObject | undefined;
  /** Whether this agent may take the Lease: an agent without a dataplane would report that nothing is served. */
  readonly isFit: () => boolean;
  readonly settings: WriterSettings;
  readonly metrics: WriterMetrics;
  readonly log: Log;
}

export interface WriterSettings {
  /** Differs from that of each other agent of the cluster. */
  readonly identity: string;
  /** The namespace of the Lease, as in deploy/kubernetes/rbac.yaml. */
  readonly leaseNamespace: string;
  /** Services get the finalizer. */
  readonly finalizer: boolean;
}

export interface WriterMetrics {
  statusWritten(result: 'done' | 'conflict' | 'failed' | 'dropped'): void;
  eventSent(result: 'done' | 'dropped'): void;
}

export interface WritingStatus {
  /** This agent holds the Lease. */
  readonly leading: boolean;
  /** The holder of the Lease; '' if there is none, or if it is unknown. */
  readonly leader: string;
  readonly faults: readonly string[];
}

export class ClusterWriters {
  readonly lease: Lease;
  readonly services: StatusWriter;
  readonly objects: ObjectStatusWriter;
  readonly events: EventRecorder;
  readonly #leaseName: string;
  readonly #onLeader: ((isLeader: boolean) => void)[] = [];

  constructor({ api, currentService, currentObject, isFit, settings, metrics, log }: ClusterWritersOptions) {
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
    this.objects = new ObjectStatusWriter({
      api,
      clock,
      log,
      metrics,
      isLeader,
      currentObject,
      onWritten: (before, status) => {
        const { kind, namespace, name, uid } = status;
        const subject = { apiVersion: apiVersionOf(kind), kind, namespace, name, uid };
        for (const text of objectEvents(before, status)) this.events.record(subject, text);
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
        this.objects.lead(leads);
        changed();
      },
      onBarred: changed,
    });
  }

  /** This agent holds the Lease. */
  get isLeader(): boolean {
    return this.lease.isLeader;
  }

  /** The API server does not permit this agent to take the Lease. */
  get isBarred(): boolean {
    return this.lease.isBarred;
  }

  /** Calls back whenever isLeader or isBarred has changed. */
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
      ['Cannot write the status of an object', isLeader ? this.objects.fault : ''],
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

  /** Releases the Lease, so that another agent does not have to wait for its end. */
  async close(): Promise<void> {
    await this.services.close();
    await this.objects.close();
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
