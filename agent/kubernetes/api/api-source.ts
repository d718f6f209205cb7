// The source of objects that is the API server: Services, EndpointSlices, Nodes, AddressPools and AddressClaims, each
// kind by a reflector of its own. Reports nothing before it has all objects, then each event at once. While no API server
// answers, the last known objects stay: those of the snapshot if the agent has just started.
// Owns the reflectors and the snapshot.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { HeadgateError } from '../../base/errors.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectRef, ObjectsChange } from '../cluster.ts';
import { type CurrentService, CurrentServices } from '../current-service.ts';
import type { KubernetesObject } from '../objects.ts';
import { parseObject } from '../parse-object.ts';
import { ApiSnapshot } from './api-snapshot.ts';
import type { ApiStreams } from './kubernetes-api.ts';
import type { ParseObject, ReflectedChange } from './reflected.ts';
import { KINDS, type ReflectedKind, resourcesOf } from './reflected-kinds.ts';
import { Reflector } from './reflector.ts';
import type { Lack, ReflectorObserver, ReflectorStatus, ReflectorTimes } from './reflector-terms.ts';

export interface ApiSourceOptions {
  readonly api: ApiStreams;
  readonly kinds?: readonly ReflectedKind[];
  /** Empty: all. */
  readonly namespaces: readonly string[];
  /** A label selector of Services, as in kubectl's -l; '' for all. */
  readonly serviceSelector: string;
  /** Where the objects are kept over a restart; undefined: nowhere. */
  readonly snapshotPath: string | undefined;
  readonly onChange: (change: ObjectsChange) => void;
  /** The API has shown a Service, perhaps with a change of status or finalizer only, which `onChange` does not report. */
  readonly onService?: (key: string) => void;
  /** A fault without harm for now: the snapshot is damaged or cannot be written. */
  readonly onFailure: (error: HeadgateError) => void;
  readonly observer?: ReflectorObserver;
  /** After this time the snapshot is used instead of an API server that has not answered. */
  readonly snapshotAfterMs?: number;
  readonly clock?: Clock;
  readonly times?: Partial<ReflectorTimes>;
}

/** The origin of the first objects. */
export type ReadyBy = 'api' | 'snapshot' | 'nothing';

const SNAPSHOT_AFTER_MS = 2_000;

export class ApiSource {
  /** Resolves when all objects come from the API server. */
  readonly synced: Promise<void>;
  /**
   * Resolves when there are objects; with `nothing` if there is neither an API server that answers in time nor a
   * snapshot: objects may then come later, as a change.
   */
  readonly ready: Promise<ReadyBy>;
  readonly #options: ApiSourceOptions;
  readonly #reflectors: readonly Reflector<KubernetesObject>[];
  readonly #snapshot: ApiSnapshot | undefined;
  readonly #currentServices = new CurrentServices();
  /** Milliseconds since the epoch, as in the annotations. */
  readonly #startedAt = Date.now();
  readonly #ready = Promise.withResolvers<ReadyBy>();
  #isReporting = false;
  #problems: readonly Problem[] = [];
  #problemLists: readonly (readonly Problem[])[] = [];
  #cancelSnapshot: (() => void) | undefined;
  /** Kinds for which the API server could not be reached before the first report. */
  readonly #unreached = new Set<string>();
  #closed = false;

  constructor(options: ApiSourceOptions) {
    this.#options = options;
    const { kinds = KINDS, namespaces, serviceSelector } = options;
    const resources = kinds.flatMap((kind) => resourcesOf(kind, namespaces, serviceSelector));
    this.#reflectors = resources.map((resource) => {
      const reflector: Reflector<KubernetesObject> = new Reflector({
        api: options.api,
        resource: { ...resource, parse: this.#parse },
        onChange: (change, by) => {
          if (by === 'list' && resource.kind === 'Service')
            this.#currentServices.listed(resource.namespace, reflector.objects());
          this.#take(change, by);
        },
        onConnected: () => this.#nudge(),
        observer: { ...options.observer, onFailure: (kind, error) => this.#failed(kind, error) },
        ...(options.times === undefined ? {} : { times: options.times }),
      });
      return reflector;
    });
    if (options.snapshotPath !== undefined) {
      this.#snapshot = new ApiSnapshot({
        path: options.snapshotPath,
        scope: JSON.stringify([kinds, namespaces, serviceSelector]),
        objects: () => this.#objects(),
        onFailure: options.onFailure,
      });
    }
    this.synced = Promise.all(this.#reflectors.map(({ synced }) => synced)).then(() => undefined);
    this.ready = this.#ready.promise;
  }

  start(): void {
    const { snapshotAfterMs = SNAPSHOT_AFTER_MS, clock = systemClock } = this.#options;
    this.#cancelSnapshot = clock.after(snapshotAfterMs, () => void this.#useSnapshot());
    for (const reflector of this.#reflectors) reflector.start();
  }

  /** A watch is open for each kind that the API server knows. */
  get isConnected(): boolean {
    return this.#reflectors.every(
      (reflector) => reflector.lack === 'unknown' || reflector.status().connected,
    );
  }

  get isSynced(): boolean {
    return this.#reflectors.every(({ isSynced }) => isSynced);
  }

  /** Why the last request for one of the kinds failed, '' if none did. */
  get fault(): string {
    return this.#reflectors.map((reflector) => reflector.status().fault).find(Boolean) ?? '';
  }

  /** The time of the last answer or event of any kind, milliseconds since the epoch; 0 before the first. */
  get lastAnswer(): number {
    return Math.max(0, ...this.#reflectors.map((reflector) => reflector.status().lastAnswer));
  }

  /** Why there are no objects of a kind although all kinds are synced. */
  lackOf(kind: ReflectedKind): Lack {
    return this.#reflectors.find((reflector) => reflector.status().kind === kind)?.lack ?? 'none';
  }

  /** The Service as the API has shown it last; undefined if it has not, or if the Service is gone. */
  currentService(key: string): CurrentService | undefined {
    return this.#currentServices.get(key);
  }

  status(): readonly ReflectorStatus[] {
    return this.#reflectors.map((reflector) => reflector.status());
  }

  /** Writes the last changes to the snapshot. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelSnapshot?.();
    await Promise.all(this.#reflectors.map((reflector) => reflector.close()));
    await this.#snapshot?.close();
    this.#ready.resolve('nothing');
  }

  #take({ upserted, removed }: ReflectedChange<KubernetesObject>, by: 'list' | 'event'): void {
    if (this.#closed) return;
    for (const object of removed) if (object.kind === 'Service') this.#currentServices.delete(object);
    if (this.isSynced) this.#snapshot?.start();
    if (this.#isReporting)
      this.#report(upserted, removed, by === 'event' ? this.#triggerTimeOf(upserted) : 0);
    else if (this.isSynced) this.#reportAll('api');
  }

  /** If no kind can be reached, it uses the snapshot without waiting. */
  #failed(kind: string, error: HeadgateError): void {
    this.#options.observer?.onFailure?.(kind, error);
    if (this.#isReporting || error.code !== 'API_UNREACHABLE' || this.#unreached.has(kind)) return;
    this.#unreached.add(kind);
    const kinds = new Set(this.#reflectors.map((reflector) => reflector.status().kind));
    if (this.#unreached.size === kinds.size) void this.#useSnapshot();
  }

  readonly #parse: ParseObject<KubernetesObject> = (json) => {
    const parsed = parseObject(json, '');
    if (parsed.objects[0]?.kind === 'Service') {
      const key = this.#currentServices.put(json);
      if (key !== undefined) this.#options.onService?.(key);
    }
    return parsed;
  };

  async #useSnapshot(): Promise<void> {
    const objects = this.#isReporting ? undefined : await this.#snapshot?.load();
    if (this.#isReporting || this.#closed) return;
    if (objects === undefined) {
      this.#ready.resolve('nothing');
      return;
    }
    for (const reflector of this.#reflectors) {
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
    this.#options.onChange({ upserted, removed: refs, problems: this.#allProblems(), ...trigger });
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
    const lists = this.#reflectors.map((reflector) =>
      reflector.lack === 'forbidden' ? NOT_PERMITTED : reflector.problems,
    );
    if (lists.some((list, index) => list !== this.#problemLists[index])) {
      this.#problemLists = lists;
      this.#problems = [...new Set(lists)].flat();
    }
    return this.#problems;
  }

  *#objects(): Generator<KubernetesObject, void, void> {
    for (const reflector of this.#reflectors) yield* reflector.objects();
  }

  #nudge(): void {
    for (const reflector of this.#reflectors) reflector.nudge();
  }
}

function isOf(object: KubernetesObject, { kind, namespace }: ReflectorStatus): boolean {
  return (
    object.kind === kind && (namespace === '' || ('namespace' in object && object.namespace === namespace))
  );
}

const NOT_PERMITTED: readonly Problem[] = [
  {
    object: 'AddressPools and AddressClaims',
    reason: 'NotPermitted',
    message:
      "The API server does not let this agent's account read them (403): apply deploy/rbac.yaml; until then no pool gives an address",
  },
];
