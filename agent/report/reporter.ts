// Tells the cluster what became of its Services: status, conditions, finalizer and Events. One agent of many does it,
// the holder of a Lease, and only after the dataplane has acknowledged.

import { type LoadBalancerStatus, listenersInWords } from '../../health/operating-status.ts';
import type { StatusBook } from '../../health/status-book.ts';
import { systemClock } from '../base/clock.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { Log } from '../host/log.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { CurrentService } from '../kubernetes/current-service.ts';
import type { Service } from '../kubernetes/objects.ts';
import { EventRecorder, type EventSubject } from '../kubernetes/writers/events.ts';
import { LEASE, Lease } from '../kubernetes/writers/lease.ts';
import { writtenEvents } from '../kubernetes/writers/service-events.ts';
import type { ServiceWish } from '../kubernetes/writers/service-patch.ts';
import { type DataplaneFacts, isItsOwn, wantedStatus } from '../kubernetes/writers/service-status.ts';
import { StatusWriter } from '../kubernetes/writers/status-writer.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { Model } from '../translate/translate.ts';
import { type Dataplanes, dataplaneProblems } from './dataplane-problems.ts';
import { ProblemEvents, type ServiceProblems } from './problem-events.ts';

export interface ReporterOptions {
  readonly api: KubernetesApi;
  /** A Service as the API has shown it last. */
  readonly currentService: (key: string) => CurrentService | undefined;
  readonly cluster: Cluster;
  readonly model: Model;
  readonly haproxy: HaproxyDataplane;
  readonly keepalived: Dataplanes['keepalived'];
  readonly operating: StatusBook;
  readonly log: Log;
  readonly metrics: ReporterMetrics;
  /** Who we are among the agents of the cluster. */
  readonly identity: string;
  /** Of the Lease; deploy/rbac.yaml names it. */
  readonly leaseNamespace: string;
  /** Whether only Services of certain labels are seen. */
  readonly selects: boolean;
  /** Whether Services get the finalizer. */
  readonly finalizer: boolean;
  /** Whether its status is ours to write: false of one of which only external IPs or cluster IPs are served. */
  readonly isOurs: (service: Service) => boolean;
  /** Whether the addresses that the Service has of the pools may be told, see AddressKeeper. */
  readonly isKept: (key: string) => boolean;
  /** This agent begins or ceases to write, or to be kept from it. */
  readonly onLeader: () => void;
}

export interface WritingStatus {
  /** This agent does. */
  readonly leading: boolean;
  /** '' where nobody does, or it is not known who does. */
  readonly leader: string;
  readonly faults: readonly string[];
}

export interface ReporterMetrics {
  statusWritten(result: 'done' | 'conflict' | 'failed' | 'dropped'): void;
  eventSent(result: 'done' | 'dropped'): void;
}

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #lease: Lease;
  readonly #writer: StatusWriter;
  readonly #events: EventRecorder;
  readonly #problems: ProblemEvents;

  constructor(options: ReporterOptions) {
    const { api, currentService, model, log, metrics, identity, leaseNamespace, finalizer } = options;
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
      // Without HAProxy it would tell of all Services that nobody serves them, where a peer may well do.
      isFit: () => !options.haproxy.isAway,
      onLeader: (leads) => {
        this.#writer.lead(leads);
        this.#problems.lead(leads);
        options.onLeader();
      },
      onBarred: options.onLeader,
    });
    this.#events = new EventRecorder({ api, clock, log, metrics, instance: identity, isLeader });
    this.#problems = new ProblemEvents({
      events: this.#events,
      clock,
      keys: () => model.loadBalancers.keys(),
      problemsOf: (key) => this.#problemsOf(key),
    });
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

  /** The API server lets no agent with our rights do so. */
  get isBarred(): boolean {
    return this.#lease.isBarred;
  }

  /** Whether this agent does, and whose holder that is: `namespace/name`. */
  leadership(): { readonly isLeader: boolean; readonly lease: string } {
    return { isLeader: this.isLeader, lease: `${this.#options.leaseNamespace}/${LEASE}` };
  }

  /** Who writes to the cluster, and what keeps this agent from it. */
  status(): WritingStatus {
    const { isLeader } = this;
    const faults = [
      ['Cannot take part in the election', this.#lease.fault],
      ['Cannot write the status of a Service', isLeader ? this.#writer.fault : ''],
      ['Cannot tell an Event', isLeader ? this.#events.fault : ''],
    ] as const;
    return {
      leading: isLeader,
      leader: this.#lease.holder,
      faults: faults.flatMap(([what, why]) => (why === '' ? [] : `${what}: ${why}`)),
    };
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
      if (service === undefined) {
        this.#writer.set(key, this.#wishOfUnseen(key));
      } else if (this.#options.cluster.isOfFolder(key)) {
        const eclipsed = this.#options.cluster.eclipsed(key);
        this.#writer.set(key, eclipsed && { kind: 'release', uid: eclipsed.uid, isTornDown: true });
      } else {
        this.#writer.set(key, this.#wish(key, service));
      }
      this.#problems.touched(key);
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
    this.#problems.close();
    await this.#events.close();
    await this.#lease.close();
  }

  /** The author of a Service of the API that a folder's takes the place of is told that, and nothing of the other one. */
  #problemsOf(key: string): ServiceProblems | undefined {
    const { cluster, model } = this.#options;
    const loadBalancer = model.loadBalancers.get(key);
    const service = cluster.isOfFolder(key) ? cluster.eclipsed(key) : cluster.service(key);
    if (loadBalancer === undefined || service === undefined) return undefined;
    const subject = subjectOf(service);
    if (!cluster.isOfFolder(key))
      return { subject, problems: [...loadBalancer.problems, ...this.#found(loadBalancer)] };
    return { subject, problems: loadBalancer.problems.filter(({ reason }) => reason === 'DuplicateObject') };
  }

  /** One that the API shows no more is gone, or is there still and only its labels are not those of the selector. */
  #wishOfUnseen(key: string): ServiceWish | undefined {
    const { selects, haproxy } = this.#options;
    const uid = selects && this.isLeader ? this.#writer.uidOf(key) : undefined;
    return uid === undefined ? undefined : { kind: 'release', uid, isTornDown: !haproxy.servesAny(key) };
  }

  /** What the dataplane and the health checks have found. */
  #found(loadBalancer: LoadBalancer): readonly Problem[] {
    const { operating } = this.#options;
    return [...dataplaneProblems(loadBalancer, this.#options), ...operating.problemsOf(loadBalancer.key)];
  }

  #wish(key: string, service: Service): ServiceWish {
    const { model, haproxy, operating, isOurs } = this.#options;
    const loadBalancer = model.loadBalancers.get(key);
    const { uid } = service;
    if (loadBalancer === undefined || !isOurs(service)) {
      const vips = service.deleting ? [] : (loadBalancer?.vips ?? []);
      const itsOwn = vips.filter(isItsOwn).map(({ address }) => address);
      return { kind: 'release', uid, isTornDown: !haproxy.servesAny(key, itsOwn) };
    }
    if (!this.#options.isKept(key)) return { kind: 'claim', uid };
    const status = wantedStatus(loadBalancer, {
      serves: (listener, address) => haproxy.servesAt(key, listener, address),
      problems: this.#found(loadBalancer),
      health: healthOf(operating.of(key)),
    });
    return { kind: 'serve', uid, status };
  }
}

/** Where somebody checks the members. */
function healthOf(now: LoadBalancerStatus | undefined): DataplaneFacts['health'] {
  if (now?.isMonitored !== true) return undefined;
  return { status: now.status, message: listenersInWords(now.listeners) };
}

function subjectOf({ namespace, name, uid }: Pick<Service, 'namespace' | 'name' | 'uid'>): EventSubject {
  return { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
}
