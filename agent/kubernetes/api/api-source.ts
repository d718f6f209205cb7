// The source of objects that is the API server: Services, EndpointSlices, Nodes, AddressPools and AddressClaims, each
// kind by a reflector of its own.
// Reports nothing before all of them are there, then each event at once. While no API server answers it reports what
// it last knew, from disk if it has just started, and takes nothing back.
// Owns the reflectors and the snapshot.

import type { HeadgateError } from '../../base/errors.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectRef, ObjectsChange } from '../cluster.ts';
import type { CurrentService } from '../current-service.ts';
import { CurrentServices } from '../current-services.ts';
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
  /** Default all. */
  readonly kinds?: readonly ReflectedKind[];
  /** Empty: all. Nodes, pools and claims have none. */
  readonly namespaces: readonly string[];
  /** Of Services, as kubectl's -l takes it; '' for all. */
  readonly serviceSelector: string;
  /** Where the last good objects are kept over a restart; undefined: nowhere. */
  readonly snapshotPath: string | undefined;
  readonly onChange: (change: ObjectsChange) => void;
  /** The API has shown a Service, if only with another status or finalizer, which `onChange` does not tell. */
  readonly onService?: (key: string) => void;
  /** Something that harms nothing now: the snapshot cannot be written or is damaged. */
  readonly onFailure: (error: HeadgateError) => void;
  /** For metrics and the log: watches, lists, events, and what went wrong with the API server. */
  readonly observer?: ReflectorObserver;
  /** Milliseconds after which the snapshot stands in for an API server that neither answers nor refuses to. */
  readonly patience?: number;
  readonly times?: Partial<ReflectorTimes>;
}

/** Where the objects that are served first come from. */
export type ReadyBy = 'api' | 'snapshot' | 'nothing';

const PATIENCE = 2_000;

export class ApiSource {
  /** Resolves when all objects are the API server's own. */
  readonly synced: Promise<void>;
  /**
   * Resolves when there is something to serve, or when there is not: neither an API server that answers in time nor a
   * snapshot. Objects of the API may still come later, as a change.
   */
  readonly ready: Promise<ReadyBy>;
  readonly #options: ApiSourceOptions;
  readonly #reflectors: readonly Reflector<KubernetesObject>[];
  readonly #snapshot: ApiSnapshot | undefined;
  readonly #currentServices = new CurrentServices();
  /** As the annotations have it: milliseconds since the epoch. */
  readonly #startedAt = Date.now();
  readonly #ready = Promise.withResolvers<ReadyBy>();
  #isReporting = false;
  #problems: readonly Problem[] = [];
  #problemLists: readonly (readonly Problem[])[] = [];
  #patience: NodeJS.Timeout | undefined;
  /** Kinds whose API server could not be reached before anything was known. */
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
    this.#patience = setTimeout(() => void this.#standIn(), this.#options.patience ?? PATIENCE);
    for (const reflector of this.#reflectors) reflector.start();
  }

  /** Every watch is open, of the kinds that the API server knows. */
  get isConnected(): boolean {
    return this.#reflectors.every(
      (reflector) => reflector.lack === 'unknown' || reflector.status().connected,
    );
  }

  get isSynced(): boolean {
    return this.#reflectors.every(({ isSynced }) => isSynced);
  }

  /** Why the API server could not be asked for some kind last, '' where it could. */
  get fault(): string {
    return this.#reflectors.map((reflector) => reflector.status().fault).find(Boolean) ?? '';
  }

  /** Why there is nothing of a kind although everything is synced. */
  lackOf(kind: ReflectedKind): Lack {
    return this.#reflectors.find((reflector) => reflector.status().kind === kind)?.lack ?? 'none';
  }

  /** The Service as the API has shown it last; undefined where it has not, or has shown that it is gone. */
  currentService(key: string): CurrentService | undefined {
    return this.#currentServices.get(key);
  }

  status(): readonly ReflectorStatus[] {
    return this.#reflectors.map((reflector) => reflector.status());
  }

  /** Leaves the snapshot as the objects are. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#patience);
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

  /** Where nobody is to be reached there is nothing to wait for. */
  #failed(kind: string, error: HeadgateError): void {
    this.#options.observer?.onFailure?.(kind, error);
    if (this.#isReporting || error.code !== 'API_UNREACHABLE' || this.#unreached.has(kind)) return;
    this.#unreached.add(kind);
    const kinds = new Set(this.#reflectors.map((reflector) => reflector.status().kind));
    if (this.#unreached.size === kinds.size) void this.#standIn();
  }

  /** Keeps beside each Service what only those read who write to it. */
  readonly #parse: ParseObject<KubernetesObject> = (json) => {
    const parsed = parseObject(json, '');
    if (parsed.objects[0]?.kind === 'Service') {
      const key = this.#currentServices.put(json);
      if (key !== undefined) this.#options.onService?.(key);
    }
    return parsed;
  };

  async #standIn(): Promise<void> {
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
    clearTimeout(this.#patience);
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
   * As kube-proxy has it: what changed before this agent began does not count, nor does what a list tells, nor a
   * deletion, whose annotation is that of the update before. 0 for these.
   * https://github.com/kubernetes/kubernetes/blob/master/pkg/proxy/endpointschangetracker.go
   */
  #triggerTimeOf([object]: readonly KubernetesObject[]): number {
    const isNew = object?.kind === 'EndpointSlice' && object.triggerTime > this.#startedAt;
    return isNew ? object.triggerTime : 0;
  }

  /** The same list as before unless one of them has changed. */
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

/** The same list each time, and once where it is about both kinds. */
const NOT_PERMITTED: readonly Problem[] = [
  {
    object: 'AddressPools and AddressClaims',
    reason: 'NotPermitted',
    message:
      "The API server does not let this agent's account read them (403): apply deploy/rbac.yaml; no address of a pool is given until then",
  },
];
