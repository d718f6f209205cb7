// The content of the status page: the list, the sums and the details of the open load balancer. Reads the agent's parts;
// changes nothing.

import { hostname } from 'node:os';
import type {
  PageDetail,
  PageList,
  PageListener,
  PageLoad,
  PageMember,
  PageSummary,
  PageView,
} from '../../health/page-model.ts';
import type { ServerStats } from '../dataplane/status.ts';
import { explainService, type ListenerExplanation } from './explain.ts';
import { isWell } from './load-balancer-row.ts';
import type { LoadBalancerRows } from './load-balancer-rows.ts';
import { takesConnections } from './load-balancer-view.ts';
import { clusterOf, poolsOf } from './overview-cluster.ts';
import {
  cut,
  type Found,
  groupsOf,
  hasText,
  MAX_ADDRESSES,
  MAX_PROBLEMS,
  pageRowOf,
} from './overview-row.ts';
import type { StatusSources } from './status.ts';

/** Of one page, which counts the rest. */
const MAX_ROWS = 50;
const MAX_LISTENERS = 20;
const MAX_MEMBERS = 200;

export class Overview {
  readonly #sources: StatusSources;
  readonly #rows: LoadBalancerRows;

  constructor(sources: StatusSources, rows: LoadBalancerRows) {
    this.#sources = sources;
    this.#rows = rows;
  }

  /**
   * `search`: a part of a key, an address or a port; `only=trouble`: load balancers that are not well; `page`: from 1;
   * `open`: the key of the load balancer with details.
   */
  async look(query: URLSearchParams): Promise<PageView> {
    await this.#rows.update();
    const open = query.get('open') ?? '';
    return {
      summary: await this.#summary(),
      list: await this.#list(query),
      load: this.#load(),
      detail: open === '' ? undefined : await this.#detail(open),
    };
  }

  async #summary(): Promise<PageSummary> {
    const { version, startedAt, desired } = this.#sources;
    const haproxy = this.#sources.dataplane.status();
    const vrrp = this.#sources.announcer?.status();
    const pair = this.#sources.pair?.status();
    const found = await this.#problems();
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
      counts: { ...this.#rows.counts, ignored: desired.ignored.size },
      members: { ...this.#rows.members },
      vips: this.#rows.vips,
      cluster: clusterOf(this.#sources),
      ...poolsOf(this.#sources),
      problems: groupsOf(found),
      problemCount: found.reduce((sum, { problems }) => sum + problems.length, 0),
    };
  }

  /** Those of the host and of the sources first, then those of the load balancers, the worst first. */
  async #problems(): Promise<readonly Found[]> {
    const { sourceProblems, addresses, pair } = this.#sources;
    const ofNone = [...(pair?.problems() ?? []), ...sourceProblems(), ...addresses.problems];
    const troubled = await this.#rows.worstFirst(({ problems }) => problems.length > 0);
    return [{ key: '', problems: ofNone }, ...troubled];
  }

  async #list(query: URLSearchParams): Promise<PageList> {
    const search = (query.get('search') ?? '').trim().toLowerCase();
    const onlyTrouble = query.get('only') === 'trouble';
    const found = await this.#rows.worstFirst((row) => hasText(row, search) && !(onlyTrouble && isWell(row)));
    const pages = Math.max(1, Math.ceil(found.length / MAX_ROWS));
    const requested = Number.parseInt(query.get('page') ?? '1', 10);
    const page = Math.min(pages, Math.max(1, requested || 1));
    const rows = found.slice((page - 1) * MAX_ROWS, page * MAX_ROWS).map(pageRowOf);
    return { rows, found: found.length, page, pages };
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
