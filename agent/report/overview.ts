// What the status page shows of this agent: a row per load balancer, kept up to date by what the loop has touched, and
// from these rows whatever one page asks for. Only while somebody looks is anything worked out, in slices; what is told
// of one load balancer in detail, only of the one that is open. Reads the agent's parts; changes nothing.

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
import { Slice } from '../base/slice.ts';
import type { ServerStats } from '../dataplane/status.ts';
import type { Problem } from '../model/load-balancer.ts';
import type { ChangeObserver } from './change-observers.ts';
import { explainService, type ListenerExplanation } from './explain.ts';
import { takesConnections } from './load-balancer-view.ts';
import {
  cut,
  type Entry,
  entryOf,
  FEW,
  firstOf,
  isWell,
  type PageProblems,
  PROBLEMS,
} from './overview-row.ts';
import type { StatusSources } from './status.ts';

/** How much one page gets at most; what is left out is counted. */
const ROWS = 50;
const LISTENERS = 20;
const MEMBERS = 200;
/** Searches whose finds are kept. */
const SEARCHES = 32;

export class Overview implements ChangeObserver {
  readonly #sources: StatusSources;
  readonly #entries = new Map<string, Entry>();
  /** Load balancers whose row may not be as it is. */
  readonly #marked = new Set<string>();
  /** The keys of all rows in order; undefined where one has come or gone. */
  #order: readonly string[] | undefined;
  /** How many load balancers have an address. */
  readonly #vips = new Map<string, number>();
  readonly #counts: Record<Verdict, number> = { served: 0, 'served in part': 0, 'not served': 0 };
  readonly #members = { ready: 0, down: 0, all: 0 };
  /** What was found in all rows by a search, and their problems; forgotten when a row changes. */
  readonly #found = new Map<string, readonly PageRow[]>();
  #rowProblems: PageProblems | undefined;
  /** Counts changes of rows. */
  #changes = 0;
  #worker = -1;
  #settling: Promise<void> | undefined;

  constructor(sources: StatusSources) {
    this.#sources = sources;
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: Iterable<string>): void {
    for (const key of keys) {
      if (this.#sources.desired.loadBalancers.has(key)) {
        this.#marked.add(key);
      } else {
        // Nobody may ever look: what is gone is not kept for it.
        this.#marked.delete(key);
        this.#put(key, undefined);
      }
    }
  }

  /**
   * What a page sees that asks for this. `search`: a part of a key, an address or a port; `only=trouble`: those that
   * are not well; `page`: from 1 on; `open`: the key of the one that is shown in detail.
   */
  async look(asked: URLSearchParams): Promise<PageView> {
    this.#settling ??= this.#settle().finally(() => {
      this.#settling = undefined;
    });
    await this.#settling;
    const open = asked.get('open') ?? '';
    return {
      summary: await this.#summary(),
      list: await this.#list(asked),
      load: this.#load(),
      detail: open === '' ? undefined : await this.#detail(open),
    };
  }

  async #settle(): Promise<void> {
    const { desired, dataplane } = this.#sources;
    const { workerPid } = dataplane.status();
    if (workerPid !== this.#worker) {
      this.#worker = workerPid;
      this.changed(desired.loadBalancers.keys());
    }
    const slice = new Slice();
    for (const key of this.#marked) {
      this.#marked.delete(key);
      const loadBalancer = desired.loadBalancers.get(key);
      this.#put(key, loadBalancer && entryOf(loadBalancer, this.#sources));
      if (slice.isOver) await slice.breathe();
    }
  }

  #put(key: string, entry: Entry | undefined): void {
    const before = this.#entries.get(key);
    this.#changes++;
    this.#found.clear();
    this.#rowProblems = undefined;
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
    const shown = [...others.shown, ...ofRows.shown].slice(0, PROBLEMS);
    return { shown, count: others.count + ofRows.count };
  }

  async #problemsOfRows(): Promise<PageProblems> {
    if (this.#rowProblems !== undefined) return this.#rowProblems;
    const changes = this.#changes;
    const lists: (readonly Problem[])[] = [];
    const slice = new Slice();
    for (const key of this.#keys()) {
      const { problems = [] } = this.#entries.get(key) ?? {};
      if (problems.length > 0) lists.push(problems);
      if (slice.isOver) await slice.breathe();
    }
    const first = firstOf(lists);
    if (changes === this.#changes) this.#rowProblems = first;
    return first;
  }

  async #list(asked: URLSearchParams): Promise<PageList> {
    const found = await this.#search(
      (asked.get('search') ?? '').trim().toLowerCase(),
      asked.get('only') === 'trouble',
    );
    const pages = Math.max(1, Math.ceil(found.length / ROWS));
    const wanted = Number.parseInt(asked.get('page') ?? '1', 10);
    const page = Math.min(pages, Math.max(1, wanted || 1));
    return { rows: found.slice((page - 1) * ROWS, page * ROWS), found: found.length, page, pages };
  }

  async #search(search: string, onlyTrouble: boolean): Promise<readonly PageRow[]> {
    const question = `${onlyTrouble} ${search}`;
    const known = this.#found.get(question);
    if (known !== undefined) return known;
    const changes = this.#changes;
    const [troubled, well]: [PageRow[], PageRow[]] = [[], []];
    const slice = new Slice();
    for (const key of this.#keys()) {
      const entry = this.#entries.get(key);
      if (entry?.text.includes(search)) (isWell(entry.row) ? well : troubled).push(entry.row);
      if (slice.isOver) await slice.breathe();
    }
    const found = onlyTrouble ? troubled : [...troubled, ...well];
    if (this.#found.size >= SEARCHES) this.#found.clear();
    if (changes === this.#changes) this.#found.set(question, found);
    return found;
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
    let room = MEMBERS;
    const shown: PageListener[] = [];
    for (const listener of listeners.slice(0, LISTENERS)) {
      const stats = await this.#sources.dataplane.stats(listener.name);
      const { name, protocol, port } = listener;
      const members = listener.members
        .toSorted((a, b) => Number(takesConnections(a)) - Number(takesConnections(b)))
        .slice(0, room)
        .map((member) => memberOf(member, stats?.servers.get(member.name)));
      room -= members.length;
      shown.push({
        ...{ name, protocol, port, members },
        addresses: listener.addresses.slice(0, FEW),
        sessions: stats?.sessions,
        sessionRate: stats?.sessionRate,
      });
    }
    const all = listeners.reduce((sum, { members }) => sum + members.length, 0);
    return {
      key: cut(key),
      verdict,
      reasons: reasons.slice(0, PROBLEMS).map(cut),
      vips: addresses.slice(0, PROBLEMS),
      listeners: shown,
      moreListeners: listeners.length - shown.length,
      moreMembers: all - (MEMBERS - room),
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
