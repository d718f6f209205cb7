// The content of the status page: a row for each load balancer, updated in slices when the page is requested, and from
// these rows the list, the sums and the details of the open load balancer. Reads the agent's parts; changes nothing.

import { hostname } from 'node:os';
import type {
  PageDetail,
  PageList,
  PageListener,
  PageLoad,
  PageMember,
  PageRow,
  PageSummary,
  PageView,
  Verdict,
} from '../../health/page-model.ts';
import { handleInSlices, Slice } from '../base/slice.ts';
import type { ServerStats } from '../dataplane/status.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { ChangeObserver } from './change-observers.ts';
import { explainService, type ListenerExplanation } from './explain.ts';
import { takesConnections } from './load-balancer-view.ts';
import {
  cut,
  type Entry,
  entryOf,
  firstOf,
  isWell,
  MAX_ADDRESSES,
  MAX_PROBLEMS,
  type PageProblems,
} from './overview-row.ts';
import type { StatusSources } from './status.ts';

/** Of one page, which counts the rest. */
const MAX_ROWS = 50;
const MAX_LISTENERS = 20;
const MAX_MEMBERS = 200;

export class Overview implements ChangeObserver {
  readonly #sources: StatusSources;
  readonly #entries = new Map<string, Entry>();
  /** Load balancers whose row may be out of date. */
  readonly #marked = new Set<string>();
  /** The keys of all rows in order; undefined after one has come or gone. */
  #order: readonly string[] | undefined;
  /** Address → how many load balancers have it. */
  readonly #vips = new Map<string, number>();
  readonly #counts: Record<Verdict, number> = { served: 0, 'served in part': 0, 'not served': 0 };
  readonly #members = { ready: 0, down: 0, all: 0 };
  #workerPid = -1;
  readonly #updateMarked: () => Promise<void>;

  constructor(sources: StatusSources) {
    this.#sources = sources;
    this.#updateMarked = handleInSlices(this.#marked, (key) => {
      const loadBalancer = sources.desired.loadBalancers.get(key);
      this.#put(key, loadBalancer && entryOf(loadBalancer, sources));
    });
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: Iterable<string>): void {
    for (const key of keys) {
      if (this.#sources.desired.loadBalancers.has(key)) {
        this.#marked.add(key);
      } else {
        // The page may never be requested: memory of what is gone is released now.
        this.#marked.delete(key);
        this.#put(key, undefined);
      }
    }
  }

  /**
   * `search`: a part of a key, an address or a port; `only=trouble`: load balancers that are not well; `page`: from 1;
   * `open`: the key of the load balancer with details.
   */
  async look(query: URLSearchParams): Promise<PageView> {
    await this.#update();
    const open = query.get('open') ?? '';
    return {
      summary: await this.#summary(),
      list: await this.#list(query),
      load: this.#load(),
      detail: open === '' ? undefined : await this.#detail(open),
    };
  }

  /** Another worker of HAProxy may serve any of the load balancers differently. */
  #update(): Promise<void> {
    const { desired, dataplane } = this.#sources;
    const { workerPid } = dataplane.status();
    if (workerPid !== this.#workerPid) {
      this.#workerPid = workerPid;
      this.changed(desired.loadBalancers.keys());
    }
    return this.#updateMarked();
  }

  #put(key: string, entry: Entry | undefined): void {
    const before = this.#entries.get(key);
    if ((before === undefined) !== (entry === undefined)) this.#order = undefined;
    if (before !== undefined) this.#count(before, -1);
    if (entry === undefined) {
      this.#entries.delete(key);
    } else {
      this.#count(entry, 1);
      this.#entries.set(key, entry);
    }
  }

  #count({ row, addresses }: Entry, by: 1 | -1): void {
    this.#counts[row.verdict] += by;
    this.#members.ready += by * row.ready;
    this.#members.down += by * row.down;
    this.#members.all += by * row.members;
    for (const address of addresses) {
      const count = (this.#vips.get(address) ?? 0) + by;
      if (count === 0) this.#vips.delete(address);
      else this.#vips.set(address, count);
    }
  }

  async #summary(): Promise<PageSummary> {
    const { version, startedAt, desired } = this.#sources;
    const haproxy = this.#sources.dataplane.status();
    const vrrp = this.#sources.announcer?.status();
    const pair = this.#sources.pair?.status();
    const { shown, count } = await this.#problems();
    const instances = (vrrp?.instances ?? []).map(({ name, state, since, priority, anchors, vips }) => ({
      ...{ name, state, since, priority, anchors, vips },
      peerState: pair?.peer?.roles[name] ?? '',
    }));
    const peer = pair && {
      address: pair.peerAddress,
      isHeard: pair.peer !== undefined,
      version: pair.peer?.version ?? '',
      notReady: pair.peerNotReady,
      lowered: pair.peer?.lowered ?? [],
    };
    const faults = [haproxy.fault, haproxy.persistFault, vrrp?.fault, pair?.fault];
    return {
      host: hostname(),
      version,
      startedAt: startedAt.toISOString(),
      fault: cut(faults.find(Boolean) ?? ''),
      role: roleOf(instances.map(({ state }) => state)),
      instances,
      peer,
      lowered: pair?.lowered.map(({ reason }) => reason) ?? vrrp?.lowered ?? [],
      maintenance: pair?.maintenance ?? false,
      haproxy: {
        version: haproxy.version,
        serving: haproxy.serving,
        reloadPending: haproxy.reloadPending,
      },
      counts: { ...this.#counts, ignored: desired.ignored.size },
      members: { ...this.#members },
      vips: this.#vips.size,
      problems: shown,
      problemCount: count,
    };
  }

  async #problems(): Promise<PageProblems> {
    const { sourceProblems, addresses, pair } = this.#sources;
    const ofRows = await this.#problemsOfRows();
    const others = firstOf([pair?.problems() ?? [], sourceProblems(), addresses.problems]);
    const shown = [...others.shown, ...ofRows.shown].slice(0, MAX_PROBLEMS);
    return { shown, count: others.count + ofRows.count };
  }

  async #problemsOfRows(): Promise<PageProblems> {
    const lists: (readonly Problem[])[] = [];
    const slice = new Slice();
    for (const key of this.#keys()) {
      const { problems = [] } = this.#entries.get(key) ?? {};
      if (problems.length > 0) lists.push(problems);
      if (slice.isOver) await slice.breathe();
    }
    return firstOf(lists);
  }

  async #list(query: URLSearchParams): Promise<PageList> {
    const search = (query.get('search') ?? '').trim().toLowerCase();
    const found = await this.#search(search, query.get('only') === 'trouble');
    const pages = Math.max(1, Math.ceil(found.length / MAX_ROWS));
    const requested = Number.parseInt(query.get('page') ?? '1', 10);
    const page = Math.min(pages, Math.max(1, requested || 1));
    return { rows: found.slice((page - 1) * MAX_ROWS, page * MAX_ROWS), found: found.length, page, pages };
  }

  async #search(search: string, onlyTrouble: boolean): Promise<readonly PageRow[]> {
    const [troubled, well]: [PageRow[], PageRow[]] = [[], []];
    const slice = new Slice();
    for (const key of this.#keys()) {
      const entry = this.#entries.get(key);
      if (entry?.text.includes(search)) (isWell(entry.row) ? well : troubled).push(entry.row);
      if (slice.isOver) await slice.breathe();
    }
    return onlyTrouble ? troubled : [...troubled, ...well];
  }

  #keys(): readonly string[] {
    this.#order ??= [...this.#entries.keys()].sort();
    return this.#order;
  }

  #load(): PageLoad {
    const loads = this.#sources.dataplane.loads();
    return {
      connections: loads.map(({ connections }) => connections),
      connectionRate: loads.map(({ connectionRate }) => connectionRate),
      busy: loads.map(({ busy }) => busy),
    };
  }

  async #detail(key: string): Promise<PageDetail> {
    const { reasons, verdict, addresses, listeners } = explainService(key, this.#sources);
    let room = MAX_MEMBERS;
    const shown: PageListener[] = [];
    for (const listener of listeners.slice(0, MAX_LISTENERS)) {
      const stats = await this.#sources.dataplane.stats(listener.name);
      const { name, protocol, port } = listener;
      const members = listener.members
        .toSorted((a, b) => Number(takesConnections(a)) - Number(takesConnections(b)))
        .slice(0, room)
        .map((member) => memberOf(member, stats?.servers.get(member.name)));
      room -= members.length;
      shown.push({
        ...{ name, protocol, port, members },
        addresses: listener.addresses.slice(0, MAX_ADDRESSES),
        sessions: stats?.sessions,
        sessionRate: stats?.sessionRate,
      });
    }
    const all = listeners.reduce((sum, { members }) => sum + members.length, 0);
    return {
      key: cut(key),
      verdict,
      reasons: reasons.slice(0, MAX_PROBLEMS).map(cut),
      vips: addresses.slice(0, MAX_PROBLEMS),
      listeners: shown,
      moreListeners: listeners.length - shown.length,
      moreMembers: all - (MAX_MEMBERS - room),
    };
  }
}

function roleOf(states: readonly string[]): PageSummary['role'] {
  if (states.length === 0) return 'alone';
  return (['master', 'fault', 'backup'] as const).find((role) => states.includes(role)) ?? 'unknown';
}

function memberOf(
  { name, target, status, cause }: ListenerExplanation['members'][number],
  stats: ServerStats = { sessions: 0, sessionRate: 0 },
): PageMember {
  const { sessions, sessionRate } = stats;
  return { name, target: cut(target), state: status, why: cut(cause), sessions, sessionRate };
}
