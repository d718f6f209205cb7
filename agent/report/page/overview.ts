// The content of the status page: the list, the sums and the details of the open load balancer. Reads the agent's parts;
// changes nothing.

import { hostname } from 'node:os';
import type {
  PageBroken,
  PageDetail,
  PageListener,
  PageLoad,
  PageMember,
  PageSummary,
  PageView,
} from '../../../health/page-model.ts';
import type { ServerStats } from '../../dataplane/status.ts';
import { ownerOf } from '../../model/names.ts';
import { explainService, type ListenerExplanation } from '../answers/explain.ts';
import type { LoadBalancerSummaries } from '../answers/load-balancer-summaries.ts';
import type { LoadBalancerSummary } from '../answers/load-balancer-summary.ts';
import type { StatusSources } from '../answers/status.ts';
import { allClassProblems } from '../operating/class-problems.ts';
import { takesConnections } from '../operating/load-balancer-view.ts';
import { dashboardOf, dashboardOfOne } from './dashboard-link.ts';
import { bgpOf } from './overview-bgp.ts';
import { clusterOf, diskOf, kernelOf, poolsOf } from './overview-host.ts';
import { listOf } from './overview-list.ts';
import { foldedPools } from './overview-pools.ts';
import { insideOf } from './overview-routes.ts';
import { cut, type Found, groupsOf, historyOf, MAX_ADDRESSES, MAX_PROBLEMS, shown } from './overview-row.ts';
import type { TrafficBook } from './traffic-book.ts';

/** The most on one page, which counts the rest. */
const MAX_BROKEN = 8;
const MAX_LISTENERS = 20;
const MAX_MEMBERS = 200;
const MAX_NAMESPACES = 500;
const NO_SESSIONS: ServerStats = { sessions: 0, sessionRate: 0 };

export class Overview {
  readonly #sources: StatusSources;
  readonly #rows: LoadBalancerSummaries;
  readonly #traffic: TrafficBook;
  readonly #broken = new WeakMap<LoadBalancerSummary, PageBroken>();

  constructor(sources: StatusSources, rows: LoadBalancerSummaries, traffic: TrafficBook) {
    this.#sources = sources;
    this.#rows = rows;
    this.#traffic = traffic;
  }

  /** `open`: the key of the load balancer with details; the others are those of listOf(). */
  async look(query: URLSearchParams): Promise<PageView> {
    this.#traffic.want();
    await this.#rows.update();
    const open = query.get('open') ?? '';
    return {
      summary: await this.#summary(),
      list: await listOf(query, {
        rows: this.#rows,
        traffic: this.#traffic,
        desired: this.#sources.desired,
      }),
      namespaces: this.#rows.namespaces().slice(0, MAX_NAMESPACES),
      load: this.#load(),
      detail: open === '' ? undefined : await this.#detail(open),
    };
  }

  async #summary(): Promise<PageSummary> {
    const { version, startedAt } = this.#sources;
    const haproxy = this.#sources.dataplane.status();
    const { announcers, bgpHost } = this.#sources;
    const { vrrp, bgp } = announcers.sections();
    const pair = this.#sources.pair?.status();
    const found = await this.#problems();
    const broken = await this.#rows.worstFirst(
      ({ key, verdict }) => verdict !== 'served' && ownerOf(key).kind !== 'Pool',
    );
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
    const faults = [haproxy.fault, haproxy.persistFault, announcers.fault, pair?.fault];
    return {
      host: hostname(),
      version,
      startedAt: startedAt.toISOString(),
      fault: cut(faults.find(Boolean) ?? ''),
      role: roleOf(instances.map(({ state }) => state)),
      instances,
      peer,
      bgp: bgpOf(bgp, bgpHost?.hosts()),
      lowered: pair?.lowered.map(({ reason }) => reason) ?? vrrp?.lowered ?? bgp?.lowered ?? [],
      maintenance: pair?.maintenance ?? bgp?.lowered.includes('maintenance') ?? false,
      haproxy: {
        version: haproxy.version,
        serving: haproxy.serving,
        reloadPending: haproxy.reloadPending,
      },
      kernel: kernelOf(this.#sources, this.#rows.ofKernel),
      disk: diskOf(this.#sources),
      dashboard: dashboardOf(this.#sources.dashboardUrl()),
      counts: { ...this.#rows.reached },
      members: { ...this.#rows.members },
      vips: this.#rows.vips,
      broken: broken.slice(0, MAX_BROKEN).map((row) => this.#brokenOf(row)),
      cluster: clusterOf(this.#sources),
      ...poolsOf(this.#sources),
      problems: groupsOf(found),
      problemCount: found.reduce((sum, { problems }) => sum + problems.length, 0),
      problemObjects: new Set(found.flatMap(({ problems }) => problems.map(({ object }) => object))).size,
    };
  }

  /** Problems of the host and of the sources first, then those of the load balancers, the worst first. */
  async #problems(): Promise<readonly Found[]> {
    const { sourceProblems, addresses, announcers, pair, desired } = this.#sources;
    const ofNone = [
      ...(pair?.problems() ?? []),
      ...announcers.problems(),
      ...sourceProblems(),
      ...addresses.problems,
      ...allClassProblems(desired.statuses),
    ];
    const troubled = await this.#rows.worstFirst(({ problems }) => problems.length > 0);
    return [
      { key: '', isGrave: true, problems: ofNone },
      ...troubled.map(({ key, verdict, problems }) => ({ key, isGrave: verdict !== 'served', problems })),
    ];
  }

  #load(): PageLoad {
    const busy = this.#sources.dataplane.loads().map((load) => load.busy);
    return { ...historyOf(this.#traffic.historyOfAll), busy };
  }

  /** Its first sentence of `why`, kept while its row is the same: a row is made again after each change. */
  #brokenOf(row: LoadBalancerSummary): PageBroken {
    const known = this.#broken.get(row);
    if (known !== undefined) return known;
    const [why = ''] = explainService(row.key, this.#sources).reasons;
    const broken = { key: row.key, verdict: row.verdict, why: cut(why) };
    this.#broken.set(row, broken);
    return broken;
  }

  async #detail(key: string): Promise<PageDetail> {
    const { reasons, verdict, addresses, listeners } = explainService(key, this.#sources);
    let room = MAX_MEMBERS;
    const traffic = this.#traffic.of(key);
    const own = new Map(
      this.#sources.desired.loadBalancers.get(key)?.listeners.map((each) => [each.name, each]),
    );
    const listed: PageListener[] = [];
    for (const listener of listeners.slice(0, MAX_LISTENERS)) {
      const stats = await this.#sources.dataplane.stats(listener.name);
      const { name, protocol, port, engine } = listener;
      const members = listener.members
        .toSorted((a, b) => Number(takesConnections(a)) - Number(takesConnections(b)))
        .slice(0, room)
        .map((member) => memberOf(member, stats && (stats.servers.get(member.name) ?? NO_SESSIONS)));
      room -= members.length;
      listed.push({
        ...{ name, protocol, port, engine, members },
        isServed: this.#sources.dataplane.serves(name),
        addresses: listener.addresses.slice(0, MAX_ADDRESSES),
        ...insideOf(own.get(name)),
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
      listeners: listed,
      ...foldedPools(key, this.#rows, this.#sources.desired.poolUses),
      moreListeners: listeners.length - listed.length,
      moreMembers: all - (MAX_MEMBERS - room),
      open: nowOf(listeners, listed, 'sessions') ?? shown(traffic.open),
      rate: nowOf(listeners, listed, 'sessionRate') ?? shown(traffic.rate),
      history: historyOf(this.#traffic.history(key)),
      dashboard: verdict === 'not found' ? '' : dashboardOfOne(this.#sources.dashboardUrl(), key),
    };
  }
}

/** The sum of all listeners, as HAProxy has just answered; undefined if it has not for some, as for those of the kernel. */
function nowOf(
  all: readonly ListenerExplanation[],
  listed: readonly PageListener[],
  field: 'sessions' | 'sessionRate',
): number | undefined {
  if (listed.length < all.length || listed.some((each) => each[field] === undefined)) return undefined;
  return listed.reduce((sum, each) => sum + (each[field] ?? 0), 0);
}

function roleOf(states: readonly string[]): PageSummary['role'] {
  if (states.length === 0) return 'alone';
  return (['master', 'fault', 'backup'] as const).find((role) => states.includes(role)) ?? 'unknown';
}

function memberOf(
  { name, target, status, cause }: ListenerExplanation['members'][number],
  stats: ServerStats | undefined,
): PageMember {
  const counts = { sessions: stats?.sessions, sessionRate: stats?.sessionRate };
  return { name, target: cut(target), state: status, why: cut(cause), ...counts };
}
