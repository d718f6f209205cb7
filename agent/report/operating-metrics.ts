// The operating status of each load balancer, listener, pool and member as metrics: a row for the status that it has.
// Members that are as they should be have none, because they are nearly all of them. Remembers the scrape before.

import type { MetricFamily, MetricRow } from '../base/metric-family.ts';
import { BESIDE_TRAFFIC, Slice } from '../base/slice.ts';
import { listenerLabels, memberLabels } from '../haproxy/stats/series.ts';
import type { MetricsDetail } from '../haproxy/stats/statistics.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { OPERATING_STATUSES, type OperatingStatus } from '../model/operating-status.ts';
import type { ListenerStatus, LoadBalancerStatus } from './operating-status.ts';
import { type StatusKind, WELL } from './status-book.ts';

const KINDS: readonly { readonly kind: StatusKind; readonly help: string; readonly details: string }[] = [
  { kind: 'load_balancer', help: 'Load balancer', details: 'listener pool member' },
  { kind: 'listener', help: 'Listener', details: 'listener pool member' },
  { kind: 'pool', help: 'Pool', details: 'pool member' },
  { kind: 'member', help: 'Member that is neither ONLINE nor NO_MONITOR', details: 'member' },
];

type Rows = Readonly<Record<StatusKind, readonly (readonly [status: OperatingStatus, row: MetricRow])[]>>;

/** What was given last, and what it was made from. */
interface Before {
  readonly statuses: readonly LoadBalancerStatus[];
  readonly detail: MetricsDetail;
  readonly families: readonly MetricFamily[] | undefined;
}

export class OperatingMetrics {
  /** A load balancer whose status is another one has another value. */
  readonly #rows = new WeakMap<LoadBalancerStatus, Rows>();
  /** Of the scrape before, by kind and status. */
  readonly #last = new Map<string, readonly MetricRow[]>();
  #before: Before = { statuses: [], detail: 'member', families: undefined };

  /**
   * In slices with pauses, because the first time there is much to write; then the arrays of rows are the same for as long as their
   * rows are, so that what was packed of them is used again. `detail`: how far down they go.
   */
  async families(
    statuses: Iterable<LoadBalancerStatus>,
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
    detail: MetricsDetail,
  ): Promise<readonly MetricFamily[]> {
    const now = [...statuses];
    const before = this.#before;
    const isSame =
      before.detail === detail &&
      before.statuses.length === now.length &&
      before.statuses.every((each, at) => each === now[at]);
    if (isSame && before.families !== undefined) return before.families;
    const families = await this.#families(now, loadBalancers, detail);
    this.#before = { statuses: now, detail, families };
    return families;
  }

  async #families(
    statuses: readonly LoadBalancerStatus[],
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
    detail: MetricsDetail,
  ): Promise<readonly MetricFamily[]> {
    const slice = new Slice(BESIDE_TRAFFIC);
    const kinds = KINDS.filter(({ details }) => details.split(' ').includes(detail));
    const rows = new Map(
      kinds.map(({ kind }) => [
        kind,
        new Map(OPERATING_STATUSES.map((status) => [status, [] as MetricRow[]])),
      ]),
    );
    for (const status of statuses) {
      const own = this.#rows.get(status) ?? rowsOf(status, loadBalancers.get(status.key));
      this.#rows.set(status, own);
      for (const [kind, all] of rows) for (const [word, row] of own[kind]) all.get(word)?.push(row);
      if (slice.isOver) await slice.pause();
    }
    return kinds.map(({ kind, help }) => ({
      name: `headgate_${kind}_operating_status`,
      type: 'gauge',
      help: `${help} by its operating status, which it has where this is 1`,
      parts: Array.from(rows.get(kind) ?? [], ([word, of]) => ({
        labels: `status="${word}"`,
        rows: this.#asBefore(`${kind} ${word}`, of),
        asOf: 0,
        value: () => 1,
      })),
    }));
  }

  #asBefore(key: string, rows: readonly MetricRow[]): readonly MetricRow[] {
    const before = this.#last.get(key);
    if (before?.length === rows.length && before.every((row, at) => row === rows[at])) return before;
    this.#last.set(key, rows);
    return rows;
  }
}

function rowsOf(
  { key, status, listeners }: LoadBalancerStatus,
  loadBalancer: LoadBalancer | undefined,
): Rows {
  const [namespace, service] = key.split('/', 2);
  const rows = listeners.map(({ name }): MetricRow => ({ labels: listenerLabels(name) }));
  const withRow = (status: OperatingStatus, at: number) => [status, rows[at] ?? { labels: '' }] as const;
  return {
    load_balancer: [[status, { labels: `namespace="${namespace}",service="${service}"` }]],
    listener: listeners.map((each, at) => withRow(each.status, at)),
    pool: listeners.map((each, at) => withRow(each.pool, at)),
    member: listeners.flatMap((each) => membersOf(each, loadBalancer)),
  };
}

function membersOf(
  { name, members }: ListenerStatus,
  loadBalancer: LoadBalancer | undefined,
): Rows['member'] {
  const unwell = members.filter(({ status }) => !WELL.has(status));
  if (unwell.length === 0) return [];
  const { pool } = loadBalancer?.listeners.find((each) => each.name === name) ?? {};
  const byName = new Map(pool?.members.map((member) => [member.name, member]));
  return unwell.map(({ name: address, status }) => [
    status,
    { labels: memberLabels(name, address, byName.get(address)) },
  ]);
}
