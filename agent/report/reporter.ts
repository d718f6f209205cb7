// Tells the cluster what became of its Services: status, conditions, finalizer and Events. One agent of many does it,
// the holder of a Lease, and only after the dataplane has acknowledged.

import type { LoadBalancerStatus } from '../../health/operating-status.ts';
import type { StatusBook } from '../../health/status-book.ts';
import { systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Service } from '../kubernetes/objects.ts';
import type { CurrentService } from '../kubernetes/writers/current-service.ts';
import { EventRecorder, type EventSubject } from '../kubernetes/writers/events.ts';
import { Lease } from '../kubernetes/writers/lease.ts';
import { problemEvents, writtenEvents } from '../kubernetes/writers/service-events.ts';
import type { ServiceWish } from '../kubernetes/writers/service-patch.ts';
import { type DataplaneFacts, wantedStatus } from '../kubernetes/writers/service-status.ts';
import { StatusWriter } from '../kubernetes/writers/status-writer.ts';
import type { Problem } from '../model.ts';
import type { Model } from '../translate.ts';

export interface ReporterOptions {
  readonly api: KubernetesApi;
  /** A Service as the API has shown it last. */
  readonly currentService: (key: string) => CurrentService | undefined;
  readonly cluster: Cluster;
  readonly model: Model;
  readonly haproxy: HaproxyDataplane;
  readonly operating: StatusBook;
  readonly log: Log;
  readonly metrics: ReporterMetrics;
  /** Who we are among the agents of the cluster. */
  readonly identity: string;
  /** Of the Lease; deploy/rbac.yaml names it. */
  readonly leaseNamespace: string;
  /** Whether Services get the finalizer. */
  readonly finalizer: boolean;
  /** Whether the addresses that the Service has of the pools may be told, see AddressKeeper. */
  readonly isKept: (key: string) => boolean;
  /** This agent begins or ceases to write. */
  readonly onLeader: () => void;
}

export interface ReporterMetrics {
  statusWritten(result: 'done' | 'conflict' | 'failed' | 'dropped'): void;
  eventSent(result: 'done' | 'dropped'): void;
}

const LEASE = 'headgate';

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #lease: Lease;
  readonly #writer: StatusWriter;
  readonly #events: EventRecorder;
  /** Service key to the problems that were told last. */
  readonly #told = new Map<string, readonly Problem[]>();

  constructor(options: ReporterOptions) {
    const { api, currentService, log, metrics, identity, leaseNamespace, finalizer } = options;
    const clock = systemClock;
    const isLeader = (): boolean => this.#lease.isLeader;
    this.#options = options;
    this.#lease = new Lease({
      api,
      clock,
      log,
      namespace: leaseNamespace,
      name: LEASE,
      identity,
      onLeader: (leads) => {
        this.#writer.lead(leads);
        if (leads) this.#tellDuplicates();
        options.onLeader();
      },
    });
    this.#events = new EventRecorder({ api, clock, log, metrics, instance: identity, isLeader });
    this.#writer = new StatusWriter({
      api,
      clock,
      log,
      metrics,
      isLeader,
      currentService,
      addFinalizer: finalizer,
      onWritten: (before, after) => {
        for (const text of writtenEvents(before, after)) this.#events.record(subjectOf(after), text);
      },
    });
  }

  /** Whether this agent writes to the cluster. */
  get isLeader(): boolean {
    return this.#lease.isLeader;
  }

  /** The same, and whose holder that is: `namespace/name`. */
  leadership(): { readonly isLeader: boolean; readonly lease: string } {
    return { isLeader: this.isLeader, lease: `${this.#options.leaseNamespace}/${LEASE}` };
  }

  /** Who writes to the cluster now, '' where nobody does or nobody can be asked. */
  get leader(): string {
    return this.#lease.holder;
  }

  start(): void {
    this.#lease.start();
  }

  /**
   * These load balancers have changed, or what the dataplane says of them. Services of a folder have no status, nor has
   * one of the API in whose place a folder's is served: it only gets an Event.
   */
  report(keys: Iterable<string>): void {
    for (const key of keys) {
      const service = this.#options.cluster.service(key);
      if (service === undefined || this.#options.cluster.isOfFolder(key)) {
        const eclipsed = this.#options.cluster.eclipsed(key);
        this.#writer.set(key, eclipsed && { kind: 'release', uid: eclipsed.uid, isTornDown: true });
        this.#tellDuplicate(key, eclipsed);
      } else {
        this.#writer.set(key, this.#wish(key, service));
      }
    }
  }

  /** Resolves with true once something may be done for the Service outside, see StatusWriter. */
  claimed(key: string, uid: string): Promise<boolean> {
    return this.#writer.claimed(key, uid);
  }

  /** The API has shown this Service: somebody else may have written what is ours. */
  observed(key: string): void {
    this.#writer.observed(key);
  }

  /** Gives the Lease back, so that another agent need not wait for it to expire. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#events.close();
    await this.#lease.close();
  }

  /** Other problems are in a status that is written anew; of these there is only the Event, if the last leader told it. */
  #tellDuplicates(): void {
    for (const key of [...this.#told.keys()]) {
      const eclipsed = this.#options.cluster.eclipsed(key);
      if (eclipsed === undefined) continue;
      this.#told.delete(key);
      this.#tellDuplicate(key, eclipsed);
    }
  }

  #tellDuplicate(key: string, eclipsed: Service | undefined): void {
    const { problems = [] } = this.#options.model.loadBalancers.get(key) ?? {};
    const duplicates = problems.filter(({ reason }) => reason === 'DuplicateObject');
    if (eclipsed === undefined || duplicates.length === 0) this.#told.delete(key);
    else this.#tell(key, eclipsed, duplicates);
  }

  #tell(key: string, service: Service, problems: readonly Problem[]): void {
    for (const text of problemEvents(this.#told.get(key) ?? [], problems))
      this.#events.record(subjectOf(service), text);
    this.#told.set(key, problems);
  }

  #wish(key: string, service: Service): ServiceWish {
    const { model, haproxy, operating } = this.#options;
    const loadBalancer = model.loadBalancers.get(key);
    const { uid } = service;
    if (loadBalancer === undefined) {
      this.#told.delete(key);
      return { kind: 'release', uid, isTornDown: !haproxy.servesAny(key) };
    }
    const problems = [...haproxy.problemsOf(loadBalancer), ...operating.problemsOf(key)];
    this.#tell(key, service, [...loadBalancer.problems, ...problems]);
    if (!this.#options.isKept(key)) return { kind: 'claim', uid };
    const status = wantedStatus(loadBalancer, {
      serves: (listener) => haproxy.serves(listener),
      problems,
      health: healthOf(operating.of(key)),
    });
    return { kind: 'serve', uid, status };
  }
}

/** Where somebody checks the members. */
function healthOf(now: LoadBalancerStatus | undefined): DataplaneFacts['health'] {
  if (now?.isMonitored !== true) return undefined;
  const { status, listeners } = now;
  const [down, ready] = [listeners.map((each) => each.down), listeners.map((each) => each.ready)].map(
    (list) => list.reduce((sum, each) => sum + each, 0),
  );
  return { status, message: `${down} of ${ready} ready members fail their health checks` };
}

function subjectOf({ namespace, name, uid }: Pick<Service, 'namespace' | 'name' | 'uid'>): EventSubject {
  return { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
}
