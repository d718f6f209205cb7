// Decides what the API gets for each Gateway, route, Ingress and their classes and policies: the statuses that translation
// gives, joined over the owners, with what the dataplane has confirmed; and Events on their problems, also of those that
// cannot be read. The writers send them if this agent holds the Lease.

import type { Clock } from '../../base/clock.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { type CurrentObject, ownAddresses } from '../../kubernetes/current-object.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import { differing } from '../../model/differing.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import type { ObjectStatus, RouteKind, StatusKind } from '../../model/object-status.ts';
import { type StatusName, statusName, subjectOfName } from '../../model/object-statuses.ts';
import type { ChangeObserver } from '../change-observers.ts';
import { type FactSources, problemsOf } from '../operating/load-balancer-view.ts';
import { isReachable, UNREACHED } from '../operating/reachable.ts';
import type { StatusBook } from '../operating/status-book.ts';
import type { ClusterWriters } from './cluster-writers.ts';
import { eventSubject } from './event-subject.ts';
import { ObjectProblems } from './object-problems.ts';
import { ProblemEvents, type ServiceProblems } from './problem-events.ts';
import { type ServedStatus, type ServingFacts, withProgrammed } from './programmed.ts';
import type { Publishing } from './publishing.ts';
import { UnreadableObjects } from './unreadable-objects.ts';
import { parentName, unreadableStatus, withUnreadable } from './unreadable-status.ts';

export interface ObjectReporterOptions extends FactSources {
  readonly writers: Pick<ClusterWriters, 'objects' | 'events' | 'onLeader'>;
  readonly clock: Clock;
  readonly cluster: Pick<Cluster, 'isOfManifest' | 'isLeftOut' | 'service' | 'ingressClass'>;
  readonly desired: Pick<DesiredState, 'loadBalancers' | 'statuses'>;
  readonly operating: Pick<StatusBook, 'problemsOf'>;
  readonly publishing: Publishing;
  readonly currentObject: (name: StatusName) => CurrentObject | undefined;
  /** The names of objects whose status has an entry of this agent, perhaps of one that ran before. */
  readonly withOwnEntries: () => Iterable<StatusName>;
}

/** The pseudo-owner of objects that cannot be read. */
const REFUSED: OwnerKey = '';
/** Collects the changes of a Gateway's routes. */
const GATHER_MS = 150;
/** From the lead, or the start, until the entries of an agent that ran before are removed. */
const SETTLE_MS = 5_000;
/** How long an Ingress shows an address that it has no more, while the next one is not served yet. */
const OLD_ADDRESS_MS = 5_000;
/** Nothing in the status depends on the version of the object. */
const ANY_GENERATION = Number.MAX_SAFE_INTEGER;
/** The dataplane's time to confirm; after it the status reports that it has not. */
const CONFIRMATION_MS = 1_000;

export class ObjectReporter implements ChangeObserver {
  readonly #options: ObjectReporterOptions;
  /** What each owner gave at its last change. */
  readonly #statuses = new Map<OwnerKey, readonly ObjectStatus[]>();

  readonly #problems = new ObjectProblems();
  readonly #unreadable = new UnreadableObjects();
  /** Unreadable objects whose status is not from translation. */
  readonly #untranslated = new Set<StatusName>();
  readonly #events: ProblemEvents;
  #leads = false;
  #hasBegun = false;
  #cancel = (): void => {};

  constructor(options: ObjectReporterOptions) {
    this.#options = options;
    const { writers, clock } = options;
    this.#events = new ProblemEvents({
      events: writers.events,
      clock,
      keys: () => this.#problems.objects(),
      problemsOf: (object) => this.#problemsOf(object),
    });
    writers.onLeader((isLeader) => {
      this.#events.lead(isLeader);
      this.#leads = isLeader;
      this.#clearSoon();
    });
  }

  /** All objects are translated. */
  began(): void {
    this.#hasBegun = true;
    this.#clearSoon();
  }

  changed(keys: Iterable<OwnerKey>): void {
    for (const key of keys) {
      if (ownerOf(key).kind === 'Service') continue;
      this.#changed(key);
      this.#problemsChanged(key);
    }
  }

  /** These objects of the API cannot be read; what was read of them before counts on. */
  refused(problems: readonly Problem[]): void {
    for (const object of this.#problems.update(REFUSED, problems)) this.#events.touched(object);
    for (const object of this.#unreadable.update(problems)) this.#reportUnreadable(object);
  }

  /** The API has shown the object. */
  shown(name: StatusName): void {
    if (this.#unreadable.messageOf(name) !== undefined) this.#reportUnreadable(name);
  }

  #changed(key: OwnerKey): void {
    const now = this.#options.desired.statuses.of(key);
    const { gone, fresh } = differing(this.#statuses.get(key) ?? [], now);
    // A status that depends on the dataplane may have changed although translation gives the same.
    const programmed = now.filter((status) => 'programmedBy' in status);
    for (const status of new Set([...programmed, ...fresh])) this.#report(status, key);
    for (const status of gone) this.#report(status, key);
    if (!this.#unreadable.isEmpty) this.#attachedChanged(gone, fresh);
    if (now.length === 0) this.#statuses.delete(key);
    else this.#statuses.set(key, now);
  }

  /** Whether the status of an object that cannot be read is this agent's depends on what it is attached to. */
  #attachedChanged(gone: Iterable<ObjectStatus>, fresh: Iterable<ObjectStatus>): void {
    const before = new Set(Array.from(gone, statusName));
    const now = new Set(Array.from(fresh, statusName));
    for (const name of [...before, ...now]) {
      if (before.has(name) && now.has(name)) continue;
      for (const object of this.#unreadable.attachedTo(name)) this.#reportUnreadable(object);
    }
  }

  #problemsChanged(key: OwnerKey): void {
    const { desired, operating } = this.#options;
    const loadBalancer = desired.loadBalancers.get(key);
    const now =
      loadBalancer === undefined ? [] : problemsOf(loadBalancer, this.#options, operating.problemsOf(key));
    for (const object of this.#problems.update(key, now)) this.#events.touched(object);
  }

  #problemsOf(object: string): ServiceProblems | undefined {
    const subject = eventSubject(object, this.#options);
    return subject && { subject, problems: this.#problems.of(object) };
  }

  /** `owner`: that of the Gateway, ListenerSet or Ingress. */
  #report(of: ObjectStatus, owner: OwnerKey): void {
    const { writers, cluster } = this.#options;
    const key = of.namespace === '' ? of.name : `${of.namespace}/${of.name}`;
    if (of.uid === '' || cluster.isOfManifest({ kind: of.kind, key })) return;
    const name = statusName(of);
    this.#untranslated.delete(name);
    if (cluster.isLeftOut({ kind: of.kind, key })) {
      writers.objects.set(name, undefined);
      return;
    }
    const served = this.#served(name, of, owner);
    // The address of an Ingress is published when it is served; the one before it goes then, or if that takes long.
    const isWaiting = of.kind === 'Ingress' && served?.isSettled === false;
    const hasOld = isWaiting && ownAddresses(this.#options.currentObject(name)).length > 0;
    if (served === undefined || (isWaiting && !hasOld)) writers.objects.set(name, undefined);
    else if (hasOld) writers.objects.set(name, served.status, OLD_ADDRESS_MS);
    else if (!served.isSettled) writers.objects.set(name, served.status, CONFIRMATION_MS);
    else writers.objects.set(name, served.status, 'programmedBy' in of ? GATHER_MS : 0);
  }

  /** Reports an object that cannot be read, or could not until now. */
  #reportUnreadable(name: StatusName): void {
    const { writers, cluster, desired, currentObject } = this.#options;
    const owner = desired.statuses.ownerOf(name);
    const [translated] = desired.statuses.partsOf(name);
    if (owner !== undefined && translated !== undefined) {
      this.#report(translated, owner);
      return;
    }
    const current = currentObject(name);
    const fault = this.#unreadable.messageOf(name);
    const { kind, namespace, name: ownName } = subjectOfName(name);
    if (cluster.isOfManifest({ kind, key: `${namespace}/${ownName}` })) return;
    const parents = current?.unreadableParents ?? [];
    this.#unreadable.attach(
      name,
      parents.map((ref) => parentName(ref, namespace)),
    );
    const isOurs = (parent: StatusName): boolean => desired.statuses.ownerOf(parent) !== undefined;
    const status = current && fault && unreadableStatus(name, current, fault, isOurs);
    if (status) {
      this.#untranslated.add(name);
      writers.objects.set(name, status);
    } else if (this.#untranslated.delete(name)) this.#clear(name);
  }

  /** undefined if the object is no longer this agent's. */
  #served(name: StatusName, last: ObjectStatus, owner: OwnerKey): ServedStatus | undefined {
    const joined = join(this.#options.desired.statuses.partsOf(name), last);
    const served = joined && withProgrammed(joined, this.#factsOf(owner, name));
    const fault = this.#unreadable.messageOf(name);
    const current = this.#options.currentObject(name);
    // Nothing is to be withdrawn from an object that is deleted.
    if (joined !== undefined && 'isWithdrawn' in joined && current === undefined) return undefined;
    const generation = current?.generation;
    if (served === undefined || fault === undefined || generation === undefined) return served;
    return { ...served, status: withUnreadable(served.status, generation, fault) };
  }

  #factsOf(owner: OwnerKey, name: StatusName): ServingFacts {
    const { desired, dataplane, publishing, currentObject } = this.#options;
    const loadBalancer = desired.loadBalancers.get(owner);
    const unreached = unreachedPorts(loadBalancer, this.#options);
    return {
      loadBalancer,
      serves: (listener, address) =>
        dataplane.serves(listener, address) && !unreached.listeners.has(listener),
      problems:
        loadBalancer === undefined ? [] : [...dataplane.problemsOf(loadBalancer), ...unreached.problems],
      isKept: publishing.isKept(owner),
      unready: publishing.unready(),
      published: () => ownAddresses(currentObject(name)),
    };
  }

  close(): void {
    this.#cancel();
    this.#events.close();
  }

  #clearSoon(): void {
    this.#cancel();
    if (this.#leads && this.#hasBegun)
      this.#cancel = this.#options.clock.after(SETTLE_MS, () => this.#clearOld());
  }

  /** Removes the entries of an agent that ran before, for parents that the objects no longer have. */
  #clearOld(): void {
    const { desired, withOwnEntries } = this.#options;
    for (const name of withOwnEntries()) {
      const isGiven = desired.statuses.ownerOf(name) !== undefined || this.#untranslated.has(name);
      if (!isGiven) this.#clear(name);
    }
  }

  /** Removes the entries of this agent from the status; that of an object without entries stays as it is. */
  #clear(name: StatusName): void {
    const { writers, cluster, currentObject } = this.#options;
    const current = currentObject(name);
    const { kind, ...of } = subjectOfName(name);
    const isLeftOut = cluster.isLeftOut({ kind, key: `${of.namespace}/${of.name}` });
    const subject = !isLeftOut && current && { ...of, uid: current.uid, generation: ANY_GENERATION };
    if (subject && kind === 'BackendTLSPolicy')
      writers.objects.set(name, { kind, ...subject, ancestors: [] });
    else if (subject && isRouteKind(kind)) writers.objects.set(name, { kind, ...subject, parents: [] });
    else if (subject && (kind === 'Ingress' || kind === 'Gateway'))
      writers.objects.set(name, withdrawn({ kind, ...subject }));
    else writers.objects.set(name, undefined);
  }
}

/** Listeners at addresses that reach no host at all; those that this host cannot announce its peer may. */
function unreachedPorts(loadBalancer: LoadBalancer | undefined, sources: Pick<FactSources, 'reach'>) {
  const problems = loadBalancer === undefined ? [] : (sources.reach?.problemsOf(loadBalancer) ?? []);
  const ofPorts = problems.filter(({ reason, port }) => UNREACHED.includes(reason) && port !== undefined);
  const listeners = ofPorts.length === 0 ? [] : (loadBalancer?.listeners ?? []);
  const unreached = listeners.filter(
    (each) => loadBalancer && !isReachable(loadBalancer, each, sources.reach),
  );
  return { problems: ofPorts, listeners: new Set(unreached.map(({ name }) => name)) };
}

function isRouteKind(kind: StatusKind): kind is RouteKind {
  return kind.endsWith('Route');
}

/** `last`: a part that an owner gave before; without parts the entries of this agent go. */
function join(parts: readonly ObjectStatus[], last: ObjectStatus): ObjectStatus | undefined {
  const [first] = parts;
  if (first === undefined) return withoutEntries(last);
  if ('parents' in first) {
    const all = parts.flatMap((part) => ('parents' in part ? part.parents : []));
    return { ...first, generation: newest(parts), parents: all };
  }
  if ('ancestors' in first) {
    const all = parts.flatMap((part) => ('ancestors' in part ? part.ancestors : []));
    return { ...first, generation: newest(parts), ancestors: all };
  }
  return first;
}

function newest(parts: readonly ObjectStatus[]): number {
  return Math.max(...parts.map(({ generation }) => generation));
}

function withoutEntries(last: ObjectStatus): ObjectStatus | undefined {
  if (last.kind === 'Ingress' || last.kind === 'Gateway') return withdrawn(last);
  if ('parents' in last) return { ...last, generation: ANY_GENERATION, parents: [] };
  return 'ancestors' in last ? { ...last, generation: ANY_GENERATION, ancestors: [] } : undefined;
}

/** No class of this agent has the object any more: its address is no way to it any more. */
function withdrawn({
  kind,
  namespace,
  name,
  uid,
}: Pick<ObjectStatus, 'namespace' | 'name' | 'uid'> & {
  readonly kind: 'Ingress' | 'Gateway';
}): ObjectStatus {
  const subject = {
    namespace,
    name,
    uid,
    generation: ANY_GENERATION,
    isWithdrawn: true,
    addresses: [],
  } as const;
  if (kind === 'Ingress') return { kind, ...subject, ports: [], programmedBy: [] };
  const unknown = { status: 'Unknown', reason: 'Pending', message: 'No class of Headgate has it' } as const;
  const conditions = ['Accepted', 'Programmed'].map((type) => ({ type, ...unknown }));
  return { kind, ...subject, conditions, programmedBy: [], listeners: [], attachedListenerSets: 0 };
}
