// Decides what the cluster gets for each Service: status, conditions, finalizer and Events, after the dataplane has
// acknowledged the change. The writers send it if this agent holds the Lease.

import { systemClock } from '../../base/clock.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import type { Service } from '../../kubernetes/objects.ts';
import type { DesiredService } from '../../kubernetes/writers/service-patch.ts';
import { desiredStatus, isItsOwn, type StatusFacts } from '../../kubernetes/writers/service-status.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import { ownerOf } from '../../model/names.ts';
import type { ChangeObserver } from '../change-observers.ts';
import { type FactSources, foundProblems, problemsOf } from '../operating/load-balancer-view.ts';
import { type LoadBalancerStatus, listenersInWords } from '../operating/operating-status.ts';
import type { StatusBook } from '../operating/status-book.ts';
import { type ClusterWriters, subjectOf } from './cluster-writers.ts';
import { ProblemEvents, type ServiceProblems } from './problem-events.ts';
import type { Publishing } from './publishing.ts';

export interface ReporterOptions extends FactSources {
  readonly writers: ClusterWriters;
  readonly cluster: Cluster;
  readonly desired: Pick<DesiredState, 'loadBalancers'>;
  readonly operating: StatusBook;
  /** A label selector restricts the Services. */
  readonly selects: boolean;
  /** The agent writes the status: not if it serves only external IPs or cluster IPs of the Service. */
  readonly isOurs: (service: Service) => boolean;
  readonly publishing: Publishing;
  /** What a released Service has is left to the order that released it. */
  readonly isReleased: (namespace: string) => boolean;
}

export class Reporter implements ChangeObserver {
  readonly #options: ReporterOptions;
  readonly #problems: ProblemEvents;

  constructor(options: ReporterOptions) {
    const { writers, desired } = options;
    this.#options = options;
    this.#problems = new ProblemEvents({
      events: writers.events,
      clock: systemClock,
      keys: () => desired.loadBalancers.keys(),
      problemsOf: (key) => this.#problemsOf(key),
    });
    writers.onLeader((isLeader) => this.#problems.lead(isLeader));
  }

  /** A Service of a manifest has no status; the Service of the API that it replaces only gets an Event. */
  changed(keys: Iterable<string>): void {
    const { cluster, writers } = this.#options;
    const { services } = writers;
    for (const key of keys) {
      const service = cluster.service(key);
      if (this.#options.isReleased(ownerOf(key).namespace)) {
        services.set(key, undefined);
      } else if (service === undefined) {
        services.set(key, this.#desiredOfUnseen(key));
      } else if (cluster.isOfFolder(key)) {
        const shadowed = cluster.shadowed(key);
        services.set(key, shadowed && { kind: 'release', uid: shadowed.uid, isTornDown: true });
      } else {
        services.set(key, this.#desired(key, service));
      }
      this.#problems.touched(key);
    }
  }

  close(): void {
    this.#problems.close();
  }

  /** Reports only that it is replaced, if a manifest replaces a Service of the API. */
  #problemsOf(key: string): ServiceProblems | undefined {
    const { cluster, desired, operating } = this.#options;
    const loadBalancer = desired.loadBalancers.get(key);
    const service = cluster.isOfFolder(key) ? cluster.shadowed(key) : cluster.service(key);
    if (loadBalancer === undefined || service === undefined) return undefined;
    const subject = subjectOf(service);
    const problems = cluster.isOfFolder(key)
      ? loadBalancer.problems.filter(({ reason }) => reason === 'DuplicateObject')
      : problemsOf(loadBalancer, this.#options, operating.problemsOf(key));
    return { subject, problems };
  }

  /** A Service that the API no longer shows is gone, or no longer matches the label selector. */
  #desiredOfUnseen(key: string): DesiredService | undefined {
    const { selects, writers, dataplane } = this.#options;
    const uid = selects && writers.isLeader ? writers.services.uidOf(key) : undefined;
    return uid === undefined
      ? undefined
      : { kind: 'release', uid, isTornDown: !dataplane.servesElsewhere(key) };
  }

  #desired(key: string, service: Service): DesiredService {
    const { desired, dataplane, operating, isOurs } = this.#options;
    const loadBalancer = desired.loadBalancers.get(key);
    const { uid } = service;
    if (loadBalancer === undefined || !isOurs(service)) {
      const vips = service.deleting ? [] : (loadBalancer?.vips ?? []);
      const itsOwn = vips.filter(isItsOwn).map(({ address }) => address);
      return { kind: 'release', uid, isTornDown: !dataplane.servesElsewhere(key, itsOwn) };
    }
    const { publishing } = this.#options;
    if (!publishing.isKept(key)) return { kind: 'choosing', uid };
    const status = desiredStatus(loadBalancer, {
      serves: (listener, address) => dataplane.serves(listener, address),
      problems: foundProblems(loadBalancer, this.#options, operating.problemsOf(key)),
      health: healthOf(operating.of(key)),
      publishUnready: publishing.unready(),
    });
    return { kind: 'serve', uid, status };
  }
}

/** undefined if nothing is known: without a health monitor, and without anything that failed clients. */
function healthOf(now: LoadBalancerStatus | undefined): StatusFacts['health'] {
  if (now === undefined) return undefined;
  const failure = now.problems.find(({ reason }) => reason === 'MembersFail');
  if (failure !== undefined) return { status: now.status, message: failure.message };
  if (!now.isMonitored) return undefined;
  return { status: now.status, message: listenersInWords(now.listeners) };
}
