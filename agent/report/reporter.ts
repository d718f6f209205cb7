// Reports to the cluster what became of its Services: status, conditions, finalizer and Events. One agent of many does
// it, the holder of a Lease, and only after the dataplane has acknowledged.

import { systemClock } from '../base/clock.ts';
import type { Dataplane } from '../dataplane/dataplane.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Service } from '../kubernetes/objects.ts';
import type { DesiredService } from '../kubernetes/writers/service-patch.ts';
import { desiredStatus, isItsOwn, type StatusFacts } from '../kubernetes/writers/service-status.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { ChangeObserver } from './change-observers.ts';
import { type ClusterWriters, subjectOf } from './cluster-writers.ts';
import { foundProblems, type ViewSources } from './load-balancer-view.ts';
import { type LoadBalancerStatus, listenersInWords } from './operating-status.ts';
import { ProblemEvents, type ServiceProblems } from './problem-events.ts';
import type { StatusBook } from './status-book.ts';

export interface ReporterOptions extends ViewSources {
  readonly writers: ClusterWriters;
  readonly cluster: Cluster;
  readonly desired: Pick<DesiredState, 'loadBalancers'>;
  readonly dataplane: Pick<Dataplane, 'problemsOf' | 'serves' | 'servesElsewhere' | 'members' | 'served'>;
  readonly operating: StatusBook;
  /** Whether only Services of certain labels are seen. */
  readonly selects: boolean;
  /** Whether the agent writes its status: not of one of which only external IPs or cluster IPs are served. */
  readonly isOurs: (service: Service) => boolean;
  /** Whether the addresses that the Service has of the pools may be told, see AddressKeeper. */
  readonly isKept: (key: string) => boolean;
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

  /**
   * These load balancers have changed, or what the dataplane says of them. Services of a folder have no status, nor has
   * one of the API in whose place a folder's is served: it only gets an Event.
   */
  changed(keys: Iterable<string>): void {
    const { cluster, writers } = this.#options;
    const { services } = writers;
    for (const key of keys) {
      const service = cluster.service(key);
      if (service === undefined) {
        services.set(key, this.#wishOfUnseen(key));
      } else if (cluster.isOfFolder(key)) {
        const shadowed = cluster.shadowed(key);
        services.set(key, shadowed && { kind: 'release', uid: shadowed.uid, isTornDown: true });
      } else {
        services.set(key, this.#wish(key, service));
      }
      this.#problems.touched(key);
    }
  }

  close(): void {
    this.#problems.close();
  }

  /** The author of a Service of the API that a folder's takes the place of is told that, and nothing of the other one. */
  #problemsOf(key: string): ServiceProblems | undefined {
    const { cluster, desired } = this.#options;
    const loadBalancer = desired.loadBalancers.get(key);
    const service = cluster.isOfFolder(key) ? cluster.shadowed(key) : cluster.service(key);
    if (loadBalancer === undefined || service === undefined) return undefined;
    const subject = subjectOf(service);
    if (!cluster.isOfFolder(key))
      return { subject, problems: [...loadBalancer.problems, ...this.#found(loadBalancer)] };
    return { subject, problems: loadBalancer.problems.filter(({ reason }) => reason === 'DuplicateObject') };
  }

  /** One that the API shows no more is gone, or is there still and only its labels are not those of the selector. */
  #wishOfUnseen(key: string): DesiredService | undefined {
    const { selects, writers, dataplane } = this.#options;
    const uid = selects && writers.isLeader ? writers.services.uidOf(key) : undefined;
    return uid === undefined
      ? undefined
      : { kind: 'release', uid, isTornDown: !dataplane.servesElsewhere(key) };
  }

  #found(loadBalancer: LoadBalancer): readonly Problem[] {
    return foundProblems(loadBalancer, this.#options, this.#options.operating.problemsOf(loadBalancer.key));
  }

  #wish(key: string, service: Service): DesiredService {
    const { desired, dataplane, operating, isOurs } = this.#options;
    const loadBalancer = desired.loadBalancers.get(key);
    const { uid } = service;
    if (loadBalancer === undefined || !isOurs(service)) {
      const vips = service.deleting ? [] : (loadBalancer?.vips ?? []);
      const itsOwn = vips.filter(isItsOwn).map(({ address }) => address);
      return { kind: 'release', uid, isTornDown: !dataplane.servesElsewhere(key, itsOwn) };
    }
    if (!this.#options.isKept(key)) return { kind: 'finalizer', uid };
    const status = desiredStatus(loadBalancer, {
      serves: (listener, address) => dataplane.serves(listener, address),
      problems: this.#found(loadBalancer),
      health: healthOf(operating.of(key)),
    });
    return { kind: 'serve', uid, status };
  }
}

/** Where somebody checks the members. */
function healthOf(now: LoadBalancerStatus | undefined): StatusFacts['health'] {
  if (now?.isMonitored !== true) return undefined;
  return { status: now.status, message: listenersInWords(now.listeners) };
}
