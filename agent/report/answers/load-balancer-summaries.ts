// One summary of each load balancer, with sums over all of them: the status page and the command `list` show them. A
// summary is made again only after its load balancer changed, in slices, when the summaries are requested. Reads the
// agent's parts.

import type { Verdict } from '../../../health/page-model.ts';
import { inNaturalOrder } from '../../base/natural-order.ts';
import { handleInSlices, Slice } from '../../base/slice.ts';
import { NO_NAMESPACE, ownerOf } from '../../model/names.ts';
import type { ChangeObserver } from '../change-observers.ts';
import type { LoadBalancerSummary } from './load-balancer-summary.ts';
import { RANKS, rankOf, rowOf } from './load-balancer-summary.ts';
import type { StatusSources } from './status.ts';

type RowSources = Pick<StatusSources, 'desired' | 'operating' | 'dataplane' | 'reach'>;

export class LoadBalancerSummaries implements ChangeObserver {
  readonly #sources: RowSources;
  readonly #rows = new Map<string, LoadBalancerSummary>();
  /** Load balancers whose row may be out of date. */
  readonly #marked = new Set<string>();
  /** The keys of all rows in order; undefined after one has come or gone. */
  #order: readonly string[] | undefined;
  /** Address → how many load balancers have it. */
  readonly #vips = new Map<string, number>();
  /** Namespace → how many load balancers and pools it has. */
  readonly #namespaces = new Map<string, number>();
  /** Keys of rows that are not served, or not fully. */
  readonly #unserved = new Set<string>();
  /** Load balancers with ports that the kernel forwards, without pools. */
  ofKernel = 0;
  /** By verdict, also the pools of routes: for the metrics. */
  readonly counts = noCounts();
  /** By verdict, of those that clients reach: for people, to whom a pool is a part of its Gateways and IngressClasses. */
  readonly reached = noCounts();
  readonly members = { ready: 0, down: 0, all: 0 };
  #workerPid = -1;
  readonly #updateMarked: () => Promise<void>;

  constructor(sources: RowSources) {
    this.#sources = sources;
    this.#updateMarked = handleInSlices(this.#marked, (key) => {
      const loadBalancer = sources.desired.loadBalancers.get(key);
      this.#put(key, loadBalancer && rowOf(loadBalancer, sources));
    });
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  /** The row of an owner of routes shows the pools that they send to. */
  changed(keys: Iterable<string>): void {
    for (const key of keys) {
      for (const user of this.#sources.desired.poolUses.usersOf(key)) this.#mark(user);
      this.#mark(key);
    }
  }

  #mark(key: string): void {
    if (this.#sources.desired.loadBalancers.has(key)) {
      this.#marked.add(key);
    } else {
      // The rows may never be requested: memory of what is gone is released now.
      this.#marked.delete(key);
      this.#put(key, undefined);
    }
  }

  /** Another worker of HAProxy may serve any of the load balancers differently. */
  update(): Promise<void> {
    const { desired, dataplane } = this.#sources;
    const { workerPid } = dataplane.status();
    if (workerPid !== this.#workerPid) {
      this.#workerPid = workerPid;
      this.changed(desired.loadBalancers.keys());
    }
    return this.#updateMarked();
  }

  /** The rows as of the last update that pass the filter, the worst first, those of one rank in the order of their keys. */
  async worstFirst(isWanted: (row: LoadBalancerSummary) => boolean): Promise<readonly LoadBalancerSummary[]> {
    const ranks: LoadBalancerSummary[][] = Array.from({ length: RANKS }, () => []);
    const slice = new Slice();
    this.#order ??= [...this.#rows.keys()].sort(inNaturalOrder);
    for (const key of this.#order) {
      const row = this.#rows.get(key);
      if (row !== undefined && isWanted(row)) ranks[rankOf(row)]?.push(row);
      if (slice.isOver) await slice.breathe();
    }
    return ranks.flat();
  }

  /** As of the last update. */
  row(key: string): LoadBalancerSummary | undefined {
    return this.#rows.get(key);
  }

  /** Summaries whose verdict is not `served`, as of the last update. */
  *unserved(): Generator<LoadBalancerSummary, void, void> {
    for (const key of this.#unserved) {
      const row = this.#rows.get(key);
      if (row !== undefined) yield row;
    }
  }

  /** Namespaces with load balancers, in order. */
  namespaces(): readonly string[] {
    return [...this.#namespaces.keys()].filter((each) => each !== NO_NAMESPACE).sort(inNaturalOrder);
  }

  /** How many different addresses there are. */
  get vips(): number {
    return this.#vips.size;
  }

  #put(key: string, row: LoadBalancerSummary | undefined): void {
    const before = this.#rows.get(key);
    if ((before === undefined) !== (row === undefined)) this.#order = undefined;
    if (before !== undefined) this.#count(before, -1);
    if (row === undefined || row.verdict === 'served') this.#unserved.delete(key);
    else this.#unserved.add(key);
    if (row === undefined) {
      this.#rows.delete(key);
    } else {
      this.#count(row, 1);
      this.#rows.set(key, row);
    }
  }

  #count({ key, verdict, ready, down, members, addresses, engines }: LoadBalancerSummary, by: 1 | -1): void {
    const { kind, namespace } = ownerOf(key);
    this.counts[verdict] += by;
    // The members of routes are those of their pools.
    if (kind === 'Service' || kind === 'Pool') {
      this.members.ready += by * ready;
      this.members.down += by * down;
      this.members.all += by * members;
    }
    if (kind !== 'Pool') {
      this.reached[verdict] += by;
      if (engines.includes('kernel')) this.ofKernel += by;
    }
    add(this.#namespaces, namespace, by);
    for (const address of addresses) add(this.#vips, address, by);
  }
}

function noCounts(): Record<Verdict, number> {
  return {
    served: 0,
    'served in part': 0,
    'no ready member': 0,
    'members down': 0,
    'members fail': 0,
    'not served': 0,
  };
}

function add(counts: Map<string, number>, key: string, by: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
