// The source of objects that is the API server: each kind by a reflector of its own. Reports nothing before it has all
// objects, then each event at once. While no API server answers, the last known objects stay: those of the snapshot if the
// agent has just started. Kinds of the Gateway API and Ingresses are read once a class names this agent as its controller.
// Owns the reflectors and the snapshot.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import type { HeadgateError } from '../../base/errors.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { StatusName } from '../../model/object-statuses.ts';
import type { ObjectRef, ObjectsChange } from '../cluster.ts';
import { type CurrentObject, hasOwnEntry, readCurrentObject } from '../current-object.ts';
import { type CurrentService, readCurrentService } from '../current-service.ts';
import { unreadableParents } from '../gateway/unreadable-parents.ts';
import { type CurrentReports, isReportedKind, type ReportedKind, readReports } from '../host-report.ts';
import type { KubernetesObject } from '../objects.ts';
import { parseObject } from '../parse-object.ts';
import { isStatusKind } from '../status-kinds.ts';
import { ApiSnapshot } from './api-snapshot.ts';
import type { ApiStreams } from './kubernetes-api.ts';
import { otherVersions } from './other-versions.ts';
import type { Current, ParseObject, ReflectedChange } from './reflected.ts';
import {
  isOwnClass,
  isReadForPools,
  type ReflectedKind,
  readAfter,
  resourcesOf,
  selectsNamespaces,
} from './reflected-kinds.ts';
import { Reflector } from './reflector.ts';
import type { Lack, ReflectorObserver, ReflectorStatus, ReflectorTimes } from './reflector-terms.ts';

export interface ApiSourceOptions {
  readonly api: ApiStreams;
  readonly scope: ApiScope;
  readonly snapshot: ApiSnapshotPlan;
  readonly receivers: ApiReceivers;
  readonly observer?: ReflectorObserver;
  readonly clock?: Clock;
  readonly times?: Partial<ReflectorTimes>;
}

/** Which objects are read. */
export interface ApiScope {
  readonly kinds: readonly ReflectedKind[];
  /** Empty: all. */
  readonly namespaces: readonly string[];
  /** A label selector of Services, as in kubectl's -l; '' for all. */
  readonly serviceSelector: string;
  /** A pool of the settings is for namespaces with certain labels. */
  readonly forPools?: boolean;
}

export interface ApiSnapshotPlan {
  /** Where the objects are kept over a restart; undefined: nowhere. */
  readonly path: string | undefined;
  /** After this time the snapshot is used instead of an API server that has not answered. */
  readonly afterMs?: number;
}

export interface ApiReceivers {
  readonly onChange: (change: ObjectsChange) => void;
  /** The API has shown a Service, perhaps with a change of status or finalizer only, which `onChange` does not report. */
  readonly onService?: (key: string) => void;
  /** As onService, of an object of the Gateway API or an Ingress. */
  readonly onObject?: (name: StatusName) => void;
  /** As onService, of an object in whose status hosts report. */
  readonly onReports?: (kind: ReportedKind, key: string) => void;
  /** The API server has a kind only in other versions than the agent reads, so that the agent continues without it. */
  readonly onOtherVersions?: (kind: ReflectedKind, versions: readonly string[]) => void;
  /** A fault without harm for now: the snapshot is damaged or cannot be written. */
  readonly onFailure: (error: HeadgateError) => void;
}

/** The origin of the first objects. */
export type ReadyBy = 'api' | 'snapshot' | 'nothing';

const SNAPSHOT_AFTER_MS = 2_000;

export class ApiSource {
  /** Resolves when all objects come from the API server. */
  readonly synced: Promise<void>;
  readonly #synced = Promise.withResolvers<void>();
  /**
   * Resolves when there are objects; with `nothing` if there is neither an API server that answers in time nor a
   * snapshot: objects may then come later, as a change.
   */
  readonly ready: Promise<ReadyBy>;
  readonly #options: ApiSourceOptions;
  /** All, each with its kind; those of Gateways and Ingresses may not have been started. */
  readonly #all: ReadonlyMap<Reflector<KubernetesObject>, ReflectedKind>;
  readonly #started = new Set<Reflector<KubernetesObject>>();
  readonly #snapshot: ApiSnapshot | undefined;
  /** Milliseconds since the epoch, as in the annotations. */
  readonly #startedAt = Date.now();
  readonly #ready = Promise.withResolvers<ReadyBy>();
  /** Once all kinds are: those that are read because of a later class do not change that. */
  #isSynced = false;
  #isReporting = false;
  #problems: readonly Problem[] = [];
  #problemLists: readonly (readonly Problem[])[] = [];
  #cancelSnapshot: (() => void) | undefined;
  /** Kinds for which the API server could not be reached before the first report. */
  readonly #unreached = new Set<string>();
  #closed = false;

  constructor(options: ApiSourceOptions) {
    this.#options = options;
    const { scope, snapshot, receivers } = options;
    const { kinds, namespaces, serviceSelector } = scope;
    const resources = kinds.flatMap((kind) => resourcesOf(kind, namespaces, serviceSelector));
    this.#all = new Map(
      resources.map((resource) => [
        new Reflector({
          api: options.api,
          resource: { ...resource, parse },
          receivers: {
            onChange: (change, by) => this.#take(change, by),
            onUnknown: () => void this.#lookForOtherVersions(resource),
            onCurrent: (key) => {
              if (resource.kind === 'Service') receivers.onService?.(key);
              else if (isReportedKind(resource.kind)) receivers.onReports?.(resource.kind, key);
              else receivers.onObject?.(`${resource.kind} ${key}`);
            },
            onConnected: () => this.#nudge(),
          },
          observer: { ...options.observer, onFailure: (kind, error) => this.#failed(kind, error) },
          ...(options.times && { times: options.times }),
        }),
        resource.kind,
      ]),
    );
    if (snapshot.path !== undefined) {
      this.#snapshot = new ApiSnapshot({
        path: snapshot.path,
        scope: JSON.stringify([kinds, namespaces, serviceSelector]),
        objects: () => this.#objects(),
        onFailure: receivers.onFailure,
      });
    }
    this.synced = this.#synced.promise;
    this.ready = this.#ready.promise;
  }

  start(): void {
    const { snapshot, clock = systemClock } = this.#options;
    const { afterMs = SNAPSHOT_AFTER_MS } = snapshot;
    this.#cancelSnapshot = clock.after(afterMs, () => void this.#useSnapshot());
    const { forPools = false } = this.#options.scope;
    this.#startThose((kind) => readAfter(kind) === undefined || (forPools && isReadForPools(kind)));
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Why the last request for one of the kinds failed, '' if none did. */
  get fault(): string {
    return (
      this.status()
        .map(({ fault }) => fault)
        .find(Boolean) ?? ''
    );
  }

  /** The time of the last answer or event of any kind, milliseconds since the epoch; 0 before the first. */
  get lastAnswer(): number {
    return Math.max(0, ...this.status().map(({ lastAnswer }) => lastAnswer));
  }

  /** Why there are no objects of a kind although all kinds are synced. */
  lackOf(kind: ReflectedKind): Lack {
    return [...this.#all].find(([, each]) => each === kind)?.[0].lack ?? 'none';
  }

  /** The Service as the API has shown it last; undefined if it has not, or if the Service is gone. */
  currentService(key: string): CurrentService | undefined {
    return this.#current('Service', key) as CurrentService | undefined;
  }

  /** An object of the Gateway API or an Ingress as the API has shown it last. */
  currentObject(name: StatusName): CurrentObject | undefined {
    const [kind = '', key = ''] = name.split(' ', 2);
    return this.#current(kind, key) as CurrentObject | undefined;
  }

  /** The reports in the status of an object as the API has shown it last. */
  currentReports(kind: ReportedKind, key: string): CurrentReports | undefined {
    return this.#current(kind, key) as CurrentReports | undefined;
  }

  /** The names of the objects whose status has an entry of this agent. */
  *withOwnEntries(): Generator<StatusName, void, void> {
    for (const [reflector, kind] of this.#all) {
      if (!isStatusKind(kind)) continue;
      for (const { key } of reflector.known.objects()) {
        const current = reflector.known.current(key) as CurrentObject | undefined;
        if (current !== undefined && hasOwnEntry(current)) yield `${kind} ${key}`;
      }
    }
  }

  #current(kind: string, key: string): Current | undefined {
    for (const [reflector, each] of this.#all) {
      const current = each === kind ? reflector.known.current(key) : undefined;
      if (current !== undefined) return current;
    }
    return undefined;
  }

  status(): readonly ReflectorStatus[] {
    return [...this.#started].map((reflector) => reflector.status());
  }

  /** The snapshot; undefined if there is none. */
  get file(): DiskFile | undefined {
    return this.#snapshot?.file;
  }

  /** Writes the last changes to the snapshot. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelSnapshot?.();
    await Promise.all([...this.#all.keys()].map((reflector) => reflector.close()));
    await this.#snapshot?.close();
    this.#ready.resolve('nothing');
  }

  #take({ upserted, removed }: ReflectedChange<KubernetesObject>, by: 'list' | 'event'): void {
    if (this.#closed) return;
    if (by === 'list' || upserted.some((object) => isOwnClass(object) || selectsNamespaces(object)))
      this.#startDependents();
    if (!this.#isSynced && [...this.#started].every(({ isSynced }) => isSynced)) {
      this.#isSynced = true;
      this.#snapshot?.start();
      this.#synced.resolve();
    }
    if (this.#isReporting)
      this.#report(upserted, removed, by === 'event' ? this.#triggerTimeOf(upserted) : 0);
    else if (this.#isSynced) this.#reportAll('api');
  }

  /** Starts the kinds for which there is a class now; they are never stopped. */
  #startDependents(): void {
    const classes = new Set<string>();
    let isForPools = false;
    for (const reflector of this.#started)
      for (const object of reflector.known.objects()) {
        // All objects of a reflector have one kind.
        if (object.kind === 'AddressPool') isForPools ||= selectsNamespaces(object);
        else if (object.kind !== 'GatewayClass' && object.kind !== 'IngressClass') break;
        else if (isOwnClass(object)) classes.add(object.kind);
      }
    this.#startThose((kind) => classes.has(readAfter(kind) ?? '') || (isForPools && isReadForPools(kind)));
  }

  #startThose(isMeant: (kind: ReflectedKind) => boolean): void {
    for (const [reflector, kind] of this.#all) {
      if (this.#started.has(reflector) || !isMeant(kind)) continue;
      this.#started.add(reflector);
      reflector.start();
    }
  }

  async #lookForOtherVersions(resource: ReturnType<typeof resourcesOf>[number]): Promise<void> {
    const { api, receivers } = this.#options;
    // It only serves a line of the log.
    const versions = await otherVersions(api, resource).catch(() => []);
    if (versions.length > 0 && !this.#closed) receivers.onOtherVersions?.(resource.kind, versions);
  }

  /** If no kind can be reached, it uses the snapshot without waiting. */
  #failed(kind: string, error: HeadgateError): void {
    this.#options.observer?.onFailure?.(kind, error);
    if (this.#isReporting || error.code !== 'API_UNREACHABLE' || this.#unreached.has(kind)) return;
    this.#unreached.add(kind);
    const kinds = new Set(this.status().map(({ kind: each }) => each));
    if (this.#unreached.size === kinds.size) void this.#useSnapshot();
  }

  async #useSnapshot(): Promise<void> {
    const objects = this.#isReporting ? undefined : await this.#snapshot?.load();
    if (this.#isReporting || this.#closed) return;
    if (objects === undefined) {
      this.#ready.resolve('nothing');
      return;
    }
    for (const reflector of this.#all.keys()) {
      reflector.seed(objects.filter((object) => isOf(object, reflector.status())));
    }
    this.#reportAll('snapshot');
  }

  #reportAll(by: ReadyBy): void {
    this.#cancelSnapshot?.();
    this.#isReporting = true;
    this.#report([...this.#objects()], []);
    this.#ready.resolve(by);
  }

  #report(upserted: readonly KubernetesObject[], removed: readonly ObjectRef[], triggerTime = 0): void {
    const refs = removed.map(({ kind, key }) => ({ kind, key }));
    const trigger = triggerTime === 0 ? {} : { triggerTime };
    this.#options.receivers.onChange({ upserted, removed: refs, problems: this.#allProblems(), ...trigger });
    this.#snapshot?.note(upserted, refs);
  }

  /**
   * As in kube-proxy, 0 for a change before the agent started, and for a deletion, whose annotation is that of the
   * update before.
   * https://github.com/kubernetes/kubernetes/blob/master/pkg/proxy/endpointschangetracker.go
   */
  #triggerTimeOf([object]: readonly KubernetesObject[]): number {
    const isNew = object?.kind === 'EndpointSlice' && object.triggerTime > this.#startedAt;
    return isNew ? object.triggerTime : 0;
  }

  /** The same list as before unless a reflector's list has changed. */
  #allProblems(): readonly Problem[] {
    const lists = [...this.#all].map(([reflector, kind]) =>
      reflector.lack === 'forbidden' ? notPermitted(kind) : reflector.known.problems,
    );
    if (lists.some((list, index) => list !== this.#problemLists[index])) {
      this.#problemLists = lists;
      this.#problems = [...new Set(lists)].flat();
    }
    return this.#problems;
  }

  *#objects(): Generator<KubernetesObject, void, void> {
    for (const reflector of this.#all.keys()) yield* reflector.known.objects();
  }

  #nudge(): void {
    for (const reflector of this.#started) reflector.nudge();
  }
}

const parse: ParseObject<KubernetesObject> = (json) => {
  const parsed = parseObject(json, '');
  // Also of an object that cannot be read: its author is told in its status and by an Event.
  const kind = parsed.objects[0]?.kind ?? (parsed.problems.length > 0 ? String(json.kind) : '');
  if (kind === 'Service') return { ...parsed, current: readCurrentService(json) };
  if (isReportedKind(kind)) return { ...parsed, current: readReports(json) };
  if (!isStatusKind(kind)) return parsed;
  const current = readCurrentObject(json);
  if (parsed.objects.length > 0 || current === undefined) return { ...parsed, current };
  return { ...parsed, current: { ...current, unreadableParents: unreadableParents(kind, json) } };
};

function isOf(object: KubernetesObject, { kind, namespace }: ReflectorStatus): boolean {
  return (
    object.kind === kind && (namespace === '' || ('namespace' in object && object.namespace === namespace))
  );
}

/** By kind; kinds of one API share one problem. */
function notPermitted(kind: ReflectedKind): readonly Problem[] {
  if (kind === 'AddressPool' || kind === 'AddressClaim') return NO_POOLS;
  if (kind === 'BGPPeer') return NO_PEERS;
  return kind === 'IngressClass' || kind === 'Ingress' ? NO_INGRESSES : NO_GATEWAYS;
}

const NO_POOLS = refused('AddressPools and AddressClaims', 'until then no pool gives an address');
const NO_PEERS = refused('BGPPeers', 'until then they are no peers of this host');
const NO_GATEWAYS = refused(
  'GatewayClasses, Gateways and routes',
  'until then no Gateway is served; or set "gatewayApi" to false',
);
const NO_INGRESSES = refused(
  'IngressClasses and Ingresses',
  'until then no Ingress is served; or set "ingress" to false',
);

function refused(object: string, consequence: string): readonly Problem[] {
  const message = `The API server does not let this agent's account read them (403): apply deploy/kubernetes/rbac.yaml; ${consequence}`;
  return [{ object, reason: 'NotPermitted', message }];
}
