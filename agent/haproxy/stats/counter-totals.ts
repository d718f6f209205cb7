// Totals of everything that HAProxy has counted, over all of its workers: one series for each listener, pool and
// member, for what each check has refused, and for each route if routes are counted. Takes the rows of one worker after another.

import { memoByIdentity } from '../../base/memo.ts';
import { listenerSeries, memberSeries } from '../../dataplane/series-labels.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { isListener, labelsOfListener, listenerOfBackend, ownerOfListener } from '../../model/names.ts';
import type { Info } from '../socket/readings.ts';
import { counterCount, infoCounters } from './columns.ts';
import type { Counts } from './counter-file.ts';
import { checkLabel, checkName, REFUSALS, ROUTE_REFUSALS, refusingChecks } from './refusal-counts.ts';
import { countedRoutes, ROUTE_COUNTS, routeSeries } from './route-counts.ts';
import {
  addFallbackRow,
  addOldRow,
  addRow,
  fallbackKeyOf,
  increase,
  keyOf,
  newSeries,
  passOver,
  type Series,
  type SeriesKind,
  type WorkerCounts,
} from './series.ts';
import type { StatRow } from './stat-rows.ts';

export type SeriesByKind = Readonly<Record<SeriesKind, readonly Series[]>>;

export class CounterTotals {
  readonly #series = new Map<string, Series>();
  #byKind: SeriesByKind = noSeries();
  /** By the worker's id. */
  readonly #workers = new Map<string, WorkerCounts>();
  #process: number[] = infoCounters.map(() => 0);
  /** The previous agent's counts, until the first round. */
  #inherited: Counts | undefined;
  #round = 0;
  readonly #now: () => number;
  readonly #countsRoutes: boolean;

  /** `now()`: milliseconds that never go back. */
  constructor(now: () => number, { countsRoutes = false }: { readonly countsRoutes?: boolean } = {}) {
    this.#now = now;
    this.#countsRoutes = countsRoutes;
  }

  /** Counts of the previous agent, which the first round continues if it can. */
  inherit(counts: Counts | undefined): void {
    this.#inherited = counts;
  }

  /** Totals of the process, in the order of `infoCounters`. */
  get process(): readonly number[] {
    return this.#process;
  }

  /** The series of the last complete round. */
  get series(): SeriesByKind {
    return this.#byKind;
  }

  /**
   * Takes the rows of the active worker, then those of an active worker of another HAProxy beside it. `end()`: all rows were
   * read, and a series without a row is gone, unless the other HAProxy, which may have it, could not be read.
   */
  round(
    info: Info,
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
  ): {
    row(row: StatRow): void;
    ofOther(info: Info): (row: StatRow) => void;
    end(isWhole?: boolean): void;
  } {
    if (this.#inherited !== undefined) this.#continue(this.#inherited, info);
    this.#inherited = undefined;
    const round = ++this.#round;
    this.#keepTables(round, loadBalancers);
    const active = new Set<WorkerCounts>();
    const rowOf = (worker: WorkerCounts): ((row: StatRow) => void) => {
      active.add(worker);
      return (row) => {
        const { proxy, name } = row;
        if (isTable(proxy)) {
          const series = this.#seriesOf(row);
          if (series?.round === round) addOldRow(series, row, worker);
          else passOver(row, worker);
          return;
        }
        if (!isListener(proxy)) {
          const owner = this.#seriesOf(row);
          if (owner?.round === round) addFallbackRow(owner, row, worker);
          else if (isGone(seriesKeyOf(row), loadBalancers)) passOver(row, worker);
          return;
        }
        const key = keyOf(proxy, name);
        const listener = listenerOf(proxy, loadBalancers);
        const isServed = listener?.engine !== 'kernel';
        // The kernel counts its listeners and pools itself.
        if (!isServed && kindOf(key) !== 'member') {
          this.#series.delete(key);
          passOver(row, worker);
          return;
        }
        const series = this.#series.get(key) ?? this.#add(key);
        if (series.round === round) {
          addOldRow(series, row, worker);
          // The other one has stopped listening.
          if (row.status === 'OPEN') series.status = row.status;
          return;
        }
        series.isServed = isServed;
        if (series.labels === '' || series.source !== listener) {
          series.source = listener;
          series.labels = labelsOf(series.kind, proxy, name, listener);
        }
        series.round = round;
        addRow(series, row, worker, this.#now());
      };
    };
    return {
      row: rowOf(this.#countProcess(info)),
      ofOther: (other) => rowOf(this.#countProcess(other)),
      end: (isWhole = true) => {
        const byKind = noSeries();
        for (const [key, series] of this.#series) {
          if (series.round === round) byKind[series.kind].push(series);
          // What is gone begins at 0 if it returns. A replaced worker continues to count; an active one begins again, too.
          else if (isWhole) this.#remove(key, isGone(key, loadBalancers) ? active : this.#workers.values());
        }
        this.#byKind = byKind;
      },
    };
  }

  /** Takes the rows of a replaced worker, for series that still exist, and notes those of what is gone. */
  old(info: Info, loadBalancers: ReadonlyMap<string, LoadBalancer>): (row: StatRow) => void {
    // Before the first round no total was shown.
    if (this.#round === 0) return () => undefined;
    const worker = this.#countProcess(info);
    return (row) => {
      const series = this.#seriesOf(row);
      if (series !== undefined) addOldRow(series, row, worker);
      // A series that is missing for a moment only, as while HAProxy starts again, must lose nothing.
      else if (isGone(seriesKeyOf(row), loadBalancers)) passOver(row, worker);
    };
  }

  /** All other workers have ended, or will not be read again. */
  keepWorkers(pids: ReadonlySet<number>): void {
    for (const id of this.#workers.keys()) if (!pids.has(Number.parseInt(id, 10))) this.#workers.delete(id);
  }

  /** The content of the file. `isClean`: no totals are shown after it. */
  counts(isClean: boolean): Counts {
    const totals = new Map(Array.from(this.#series, ([key, { values }]) => [key, values]));
    return { isClean, process: this.#process, workers: this.#workers, totals };
  }

  /**
   * The previous agent's counts can be continued if they include the worker, or if no totals were shown after them.
   * Otherwise they may be less than those that Prometheus has seen, and all counters begin at 0.
   */
  #continue({ isClean, process, workers, totals }: Counts, { id }: Info): void {
    if (!isClean && !workers.has(id)) return;
    this.#process = [...process];
    for (const [worker, counts] of workers) this.#workers.set(worker, counts);
    for (const [key, own] of totals) {
      const { values } = this.#add(key);
      for (let at = 0; at < counterCount; at++) values[at] = own[at] ?? 0;
    }
  }

  /** A route or check has a series while it exists: a new worker has no entry of it before its first request. */
  #keepTables(round: number, loadBalancers: ReadonlyMap<string, LoadBalancer>): void {
    const keep = (key: string, labels: () => string): void => {
      const series = this.#series.get(key) ?? this.#add(key);
      if (series.labels === '') series.labels = labels();
      series.isHttp = true;
      series.round = round;
    };
    const keepCheck = (table: string, of: string, check: string, labels: () => string): void => {
      const name = checkName(of, check);
      keep(keyOf(table, name), () => `${labels()},${checkLabel(name)}`);
    };
    for (const loadBalancer of loadBalancers.values()) {
      const { listeners, routes } = checksOf(loadBalancer);
      for (const [listener, checks] of listeners)
        for (const check of checks) keepCheck(REFUSALS, listener.name, check, () => listenerSeries(listener));
      if (!this.#countsRoutes) continue;
      for (const name of routesOf(loadBalancer)) keep(keyOf(ROUTE_COUNTS, name), () => routeSeries(name));
      for (const [name, checks] of routes)
        for (const check of checks) keepCheck(ROUTE_REFUSALS, name, check, () => routeSeries(name));
    }
  }

  #countProcess({ id, number }: Info): WorkerCounts {
    const worker = this.#workers.get(id) ?? { process: infoCounters.map(() => 0), rows: new Map() };
    for (const [at, name] of infoCounters.entries()) {
      const value = number(name) || 0;
      (this.#process[at] as number) += increase(worker.process[at] as number, value);
      worker.process[at] = value;
    }
    this.#workers.set(id, worker);
    return worker;
  }

  #add(key: string): Series {
    const series = newSeries(kindOf(key));
    this.#series.set(key, series);
    return series;
  }

  /** What these workers have counted counts again if the series begins again. */
  #remove(key: string, workers: Iterable<WorkerCounts>): void {
    this.#series.delete(key);
    for (const { rows } of workers) {
      rows.delete(key);
      rows.delete(fallbackKeyOf(key));
    }
  }

  #seriesOf(row: StatRow): Series | undefined {
    return this.#series.get(seriesKeyOf(row));
  }
}

/** A row of a fallback backend belongs to the series of its pool or member. */
function seriesKeyOf({ proxy, name }: StatRow): string {
  return keyOf(listenerOfBackend(proxy), name);
}

/** By the desired state, and not only because a worker does not have it: HAProxy does not count it any more. */
function isGone(key: string, loadBalancers: ReadonlyMap<string, LoadBalancer>): boolean {
  const comma = key.indexOf(',');
  const [proxy, name] = [key.slice(0, comma), key.slice(comma + 1)];
  // A route or check has its series by the desired state.
  if (isTable(proxy)) return true;
  const listener = listenerOf(proxy, loadBalancers);
  if (listener === undefined) return true;
  return kindOf(key) === 'member' ? !membersByName(listener).has(name) : listener.engine === 'kernel';
}

function kindOf(key: string): SeriesKind {
  const table = TABLES.get(key.slice(0, key.indexOf(',')));
  if (table !== undefined) return table;
  if (key.endsWith(',FRONTEND')) return 'listener';
  return key.endsWith(',BACKEND') ? 'pool' : 'member';
}

const TABLES: ReadonlyMap<string, SeriesKind> = new Map([
  [ROUTE_COUNTS, 'route'],
  [REFUSALS, 'listenerCheck'],
  [ROUTE_REFUSALS, 'routeCheck'],
]);

/** Rows of a stick table. */
function isTable(proxy: string): boolean {
  return TABLES.has(proxy);
}

function noSeries(): Record<SeriesKind, Series[]> {
  return { listener: [], pool: [], member: [], route: [], listenerCheck: [], routeCheck: [] };
}

function listenerOf(name: string, loadBalancers: ReadonlyMap<string, LoadBalancer>): Listener | undefined {
  const owner = loadBalancers.get(ownerOfListener(name));
  return owner && listenersByName(owner).get(name);
}

function labelsOf(kind: SeriesKind, name: string, server: string, listener: Listener | undefined): string {
  const labels = listener?.labels ?? labelsOfListener(name);
  if (labels === undefined) return '';
  if (kind !== 'member') return listenerSeries({ name, labels });
  return memberSeries({ name, labels }, server, listener && membersByName(listener).get(server));
}

const routesOf = memoByIdentity(countedRoutes);

const checksOf = memoByIdentity(refusingChecks);

const listenersByName = memoByIdentity(
  ({ listeners }: LoadBalancer) => new Map(listeners.map((listener) => [listener.name, listener])),
);

const membersByName = memoByIdentity(
  ({ pool }: Listener) => new Map(pool.members.map((member) => [member.name, member])),
);
