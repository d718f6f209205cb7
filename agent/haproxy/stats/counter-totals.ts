// Everything that HAProxy has counted, by series, over all of its workers. Takes in the rows of one worker after the
// other; does not know where they come from.

import { memoByIdentity } from '../../base/memo.ts';
import { listenerSeries, memberSeries } from '../../dataplane/series-labels.ts';
import type { Listener, LoadBalancer, Member } from '../../model/load-balancer.ts';
import {
  fallbackBackend,
  isListener,
  labelsOfListener,
  listenerOfBackend,
  ownerOfListener,
} from '../../model/names.ts';
import { counterCount, positionOf } from './columns.ts';
import type { CountedSeries, Counts, WrittenCounts } from './counter-file.ts';
import { infoCounters, type ProcessInfo } from './process-info.ts';
import {
  addFallbackRow,
  addOldRow,
  newSeries,
  type Reading,
  type Series,
  type SeriesKind,
  takeRow,
} from './series.ts';
import type { StatRow } from './stat-rows.ts';

export type SeriesByKind = Readonly<Record<SeriesKind, readonly Series[]>>;

/** By the column `type`. */
const KINDS: readonly SeriesKind[] = ['listener', 'pool', 'member'];
const TYPE = positionOf('type');

export class CounterTotals {
  readonly #series = new Map<string, Series>();
  #byKind: SeriesByKind = { listener: [], pool: [], member: [] };
  /** By id: what each worker's process had counted when it was last read. */
  readonly #workers = new Map<string, number[]>();
  readonly #process = infoCounters.map(() => 0);
  /** Counts of the agent before this one, until the first round has ended. */
  #inherited: Counts | undefined;
  #round = 0;
  readonly #now: () => number;

  /** `now()`: milliseconds that never go back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts of the agent before this one, which the first round continues if it can. */
  inherit(counts: Counts | undefined): void {
    this.#inherited = counts;
  }

  /** Totals of the process, in the order of `infoCounters`. */
  get process(): readonly number[] {
    return this.#process;
  }

  /** The series of the last round that came to its end. */
  get series(): SeriesByKind {
    return this.#byKind;
  }

  /** Takes in the rows of the active worker. `end()`: it was read to its end, so that series without a row are gone. */
  round(
    info: ProcessInfo,
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
  ): { row(row: StatRow): void; end(): void } {
    if (this.#round === 0 && !this.#continues(info)) this.#inherited = undefined;
    this.#countProcess(info);
    const round = ++this.#round;
    let name = '';
    let isOurs = false;
    let listener: Listener | undefined;
    return {
      row: (row) => {
        if (row.comma !== name.length || !row.key.startsWith(name)) {
          name = row.key.slice(0, row.comma);
          isOurs = isListener(name);
          listener = isOurs ? listenerOf(name, loadBalancers) : undefined;
        }
        const kind = KINDS[row.values[TYPE] as number];
        if (!isOurs || kind === undefined) {
          const owner = this.#ownerOf(row);
          if (owner?.round === round) addFallbackRow(owner, row, info.id);
          return;
        }
        const series = this.#series.get(row.key) ?? this.#add(row.key, kind);
        if (series.labels === '' || series.source !== listener) {
          series.source = listener;
          series.labels = labelsOf(kind, name, row.key.slice(row.comma + 1), listener);
        }
        series.round = round;
        takeRow(series, row, info.id, this.#now());
      },
      end: () => {
        this.#inherited = undefined;
        const byKind: Record<SeriesKind, Series[]> = { listener: [], pool: [], member: [] };
        for (const [key, series] of this.#series) {
          if (series.round === round) byKind[series.kind].push(series);
          else this.#series.delete(key);
        }
        this.#byKind = byKind;
      },
    };
  }

  /** Takes in the rows of a worker that was replaced: it only counts, for series that are still there. */
  old(info: ProcessInfo): (row: StatRow) => void {
    // Nothing has been shown yet that it could add to.
    if (this.#round === 0) return () => undefined;
    this.#countProcess(info);
    return (row) => {
      const own = this.#series.get(row.key);
      const series = own ?? this.#ownerOf(row);
      if (series !== undefined) addOldRow(series, row, info.id, own === undefined);
    };
  }

  /** All workers but these have ended, or will not be read again. */
  keepWorkers(pids: ReadonlySet<number>): void {
    const gone = [...this.#workers.keys()].filter((id) => !pids.has(Number.parseInt(id, 10)));
    if (gone.length === 0) return;
    for (const id of gone) this.#workers.delete(id);
    for (const series of this.#series.values())
      series.readings = series.readings.filter(({ workerId }) => this.#workers.has(workerId));
  }

  /** For the file. `isClean`: nothing is shown to anyone after it. */
  counts(isClean: boolean): WrittenCounts {
    return { isClean, process: this.#process, workers: this.#workers, series: this.#counted() };
  }

  *#counted(): Generator<readonly [key: string, counted: CountedSeries], void, void> {
    for (const [key, { values, readings }] of this.#series) {
      const [own, fallback] = [false, true].map((isFallback) =>
        readings.filter((reading) => reading.isFallback === isFallback),
      );
      yield [key, { totals: values.slice(0, counterCount), readings: byWorker(own) }];
      // It has no totals of its own, but the next agent has to know what has been counted of it.
      if (fallback?.[0] !== undefined)
        yield [fallbackKeyOf(key), { totals: [], readings: byWorker(fallback) }];
    }
  }

  /**
   * Whether the counts of the agent before this one can be continued: the worker is one that they know, or nothing was
   * shown since. Otherwise they may be less than what Prometheus has seen, and all counters begin at 0.
   */
  #continues({ id }: ProcessInfo): boolean {
    const counts = this.#inherited;
    if (counts === undefined || !(counts.isClean || counts.workers.has(id))) return false;
    for (const [at, total] of counts.process.entries()) this.#process[at] = total;
    for (const [worker, process] of counts.workers) this.#workers.set(worker, process);
    return true;
  }

  #countProcess({ id, counters }: ProcessInfo): void {
    const before = this.#workers.get(id) ?? [];
    for (const [at, value] of counters.entries()) {
      const counted = before[at] ?? 0;
      (this.#process[at] as number) += value < counted ? value : value - counted;
    }
    this.#workers.set(id, [...counters]);
  }

  #add(key: string, kind: SeriesKind): Series {
    const series = newSeries(key, kind);
    const own = this.#inherited?.series.get(key);
    const fallback = this.#inherited?.series.get(fallbackKeyOf(key));
    for (const [at, total] of own?.totals.entries() ?? []) series.values[at] = total;
    series.readings = [...readingsOf(own, false), ...readingsOf(fallback, true)];
    this.#series.set(key, series);
    return series;
  }

  /** Of a row of a fallback backend: the series of its pool, or of its member. */
  #ownerOf({ key, comma }: StatRow): Series | undefined {
    const backend = key.slice(0, comma);
    const owner = listenerOfBackend(backend);
    return owner === backend ? undefined : this.#series.get(`${owner}${key.slice(comma)}`);
  }
}

function listenerOf(name: string, loadBalancers: ReadonlyMap<string, LoadBalancer>): Listener | undefined {
  return loadBalancers.get(ownerOfListener(name))?.listeners.find((each) => each.name === name);
}

function labelsOf(kind: SeriesKind, name: string, server: string, listener: Listener | undefined): string {
  const labels = listener?.labels ?? labelsOfListener(name);
  if (labels === undefined) return '';
  if (kind !== 'member') return listenerSeries(labels);
  return memberSeries(labels, server, listener && membersByName(listener).get(server));
}

const membersByName = memoByIdentity(
  ({ pool }: Listener): ReadonlyMap<string, Member> =>
    new Map(pool.members.map((member) => [member.name, member])),
);

function fallbackKeyOf(key: string): string {
  const comma = key.indexOf(',');
  return `${fallbackBackend(key.slice(0, comma))}${key.slice(comma)}`;
}

function byWorker(readings: readonly Reading[] = []): CountedSeries['readings'] {
  return new Map(readings.map(({ workerId, counts }) => [workerId, counts]));
}

function readingsOf(counted: CountedSeries | undefined, isFallback: boolean): readonly Reading[] {
  return Array.from(counted?.readings ?? [], ([workerId, counts]) => ({ workerId, isFallback, counts }));
}
