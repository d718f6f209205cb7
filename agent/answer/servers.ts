// The agent's servers: its socket for the commands, HTTP for Prometheus and the status page, and notices to systemd.

import type { Metrics } from '../../health/metrics.ts';
import { startHealthServer } from '../../health/server.ts';
import { ServiceNotifier } from '../../health/service-notifier.ts';
import { systemClock } from '../base/clock.ts';
import { counted } from '../base/counted.ts';
import { messageOf } from '../base/errors.ts';
import type { RoundPace } from '../dataplane/meter.ts';
import type { Log } from '../host/log.ts';
import { OwnFiles } from '../host/own-files.ts';
import { ownerOf } from '../model/names.ts';
import type { BgpHost } from '../pair/bgp-host.ts';
import { type KeyedVrrp, takeKey } from '../pair/orders/key-order.ts';
import type { OrderOutcome } from '../pair/orders/orders.ts';
import type { Pair } from '../pair/pair.ts';
import type { ReleaseOrder } from '../release/release-order.ts';
import { clientOf } from '../report/answers/access/client.ts';
import { explainService } from '../report/answers/explain.ts';
import { explainVip, placeOf } from '../report/answers/explain-location.ts';
import { explainObject } from '../report/answers/explain-object.ts';
import { explainRequest } from '../report/answers/explain-request.ts';
import { listLoadBalancers, namesOf, namespacesOf } from '../report/answers/list.ts';
import type { LoadBalancerSummaries } from '../report/answers/load-balancer-summaries.ts';
import { agentStatus, type StatusSources } from '../report/answers/status.ts';
import { operatingFamilies } from '../report/operating/operating-metrics.ts';
import { verdictFamilies } from '../report/operating/verdict-metrics.ts';
import type { Overview } from '../report/page/overview.ts';
import type { TrafficBook } from '../report/page/traffic-book.ts';
import type { CurrentSettings } from '../settings/current-settings.ts';
import type { Sources } from '../sources/sources.ts';
import type { ReleaseScope } from '../state/release-mark.ts';
import { AgentSocketFile, agentSocketPath } from './agent-socket.ts';
import { useStateDir } from './state-dir-owner.ts';

/** What carries out orders, besides the pair. */
export interface OrderedParts {
  readonly bgpHost: Pick<BgpHost, 'maintenance'> | undefined;
  readonly releaseOrder: ReleaseOrder;
  readonly vrrp: KeyedVrrp | undefined;
}

export interface ServersOptions {
  readonly settings: CurrentSettings;
  readonly statusSources: StatusSources;
  readonly sources: Pick<Sources, 'objects'>;
  readonly ordered: OrderedParts;
  readonly page: PageParts;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What the status page and the list show, updated with each round of the metrics. */
export interface PageParts {
  readonly overview: Overview;
  readonly rows: LoadBalancerSummaries;
  readonly traffic: Pick<TrafficBook, 'record'>;
}

export interface Servers {
  /** The HTTP server's address and port. */
  readonly address: string;
  /** Resolves once systemd knows that the agent stops. */
  stopping(): Promise<void>;
  close(): void;
}

/** A longer round of the loop means that the agent hangs. */
const MAX_ROUND_MS = 30_000;

/** Errors: AGENT_RUNNING if another agent uses the socket or the state folder; LISTEN_FAILED, FILE_WRITE. */
export async function startServers({
  settings,
  statusSources,
  ordered: { bgpHost, releaseOrder, vrrp },
  sources,
  page: { overview, rows, traffic },
  metrics,
  log,
}: ServersOptions): Promise<Servers> {
  const { desired, dataplane, announcers, operating, pair, egress } = statusSources;
  const { stateDir, runtimeDir, listen } = settings.now;
  const answers = {
    status: () => agentStatus(statusSources),
    why: (query: URLSearchParams) => explainService(query.get('service') ?? '', statusSources),
    'why-place': (query: URLSearchParams) => explainVip(placeOf(query), statusSources),
    'why-object': (query: URLSearchParams) => explainObject(query.get('object') ?? '', statusSources),
    'why-request': (query: URLSearchParams) =>
      explainRequest(query.get('url') ?? '', statusSources, clientOf(query)),
    list: (query: URLSearchParams) =>
      listLoadBalancers(rows, statusSources, {
        namespace: query.get('namespace') ?? undefined,
        hasPools: query.get('pools') === 'true',
      }),
    names: (query: URLSearchParams) => namesOf(statusSources, query.get('beginning') ?? ''),
    'release-preview': (query: URLSearchParams) => releaseOrder.preview(scopeOf(query)),
    namespaces: (query: URLSearchParams) => namespacesOf(statusSources, query.get('beginning') ?? ''),
  };
  const path = agentSocketPath(runtimeDir);
  await useStateDir(stateDir, path);
  const agentSocket = new AgentSocketFile(path, answers, {
    ...ordersOf(pair, bgpHost),
    'vrrp-key': () => takeKey(vrrp, settings.now.vrrpKey !== '', systemClock),
    release: (query) =>
      query.get('undo') === 'true' ? releaseOrder.undo(scopeOf(query)) : releaseOrder.release(scopeOf(query)),
  });
  await agentSocket.restore();
  // Also if a later step of the start fails: commands then see that no agent runs.
  process.once('exit', () => agentSocket.close());
  const ownFiles = new OwnFiles({
    files: [agentSocket, ...announcers.ownFiles],
    onRestored: (kind) => metrics.dataplane.repaired(kind),
    log,
  });
  ownFiles.start();
  const alive = (): string => (metrics.loop.roundTime > MAX_ROUND_MS ? 'The loop hangs' : '');
  const ready = (): string =>
    sources.objects === 'unread' ? 'The objects have not been read yet' : dataplane.status().fault;
  const round = async (pace: RoundPace) => {
    const { metricsDetail } = settings.now;
    const forwarded = await dataplane.families(pace);
    await traffic.record();
    await rows.update();
    return [
      ...forwarded,
      ...(await operatingFamilies(operating.all(), desired.loadBalancers, metricsDetail)),
      ...verdictFamilies(rows),
      ...(await egress.families()),
    ];
  };
  const own = async () => [...(await metrics.families()), ...announcers.families()];
  const look = (asked: URLSearchParams) => overview.look(asked);
  const health = await startHealthServer(listen, { metrics: { round, own }, alive, ready, look });
  const notifier = new ServiceNotifier({
    env: process.env,
    alive,
    ready,
    status: () => `Serving ${counted(reachedBy(desired.loadBalancers), 'load balancer')}`,
    onFailure: (error) => log.warn('Cannot notify systemd', { error: messageOf(error) }),
  });
  notifier.start();
  return {
    address: health.address,
    stopping: () => notifier.close(),
    close: () => {
      health.server.close();
      ownFiles.close();
      agentSocket.close();
    },
  };
}

/** How many load balancers clients reach: a pool of routes is a part of others. */
function reachedBy(loadBalancers: ReadonlyMap<string, unknown>): number {
  let count = 0;
  for (const key of loadBalancers.keys()) if (ownerOf(key).kind !== 'Pool') count++;
  return count;
}

function ordersOf(
  pair: Pair | undefined,
  bgpHost: OrderedParts['bgpHost'],
): Readonly<Record<string, (query: URLSearchParams) => Promise<OrderOutcome>>> {
  return {
    failover: async (query) =>
      pair?.failover(query.get('force') === 'true') ?? (bgpHost === undefined ? NO_PEER : ALL_SERVE),
    maintenance: async (query) => (pair ?? bgpHost)?.maintenance(query.get('turn') === 'on') ?? NO_PEER,
  };
}

/** Without a namespace everything. */
function scopeOf(query: URLSearchParams): Omit<ReleaseScope, 'at'> {
  const namespace = query.get('namespace') ?? '';
  return { all: namespace === '', namespaces: namespace === '' ? [] : [namespace] };
}

/** It has no peer that could take over: all hosts serve at once. */
const ALL_SERVE: OrderOutcome = {
  ok: false,
  active: 'unknown',
  tookMs: 0,
  message: 'All hosts serve at once by BGP: "headgate maintenance on" leads clients to the others',
};

const NO_PEER: OrderOutcome = {
  ok: false,
  active: 'unknown',
  tookMs: 0,
  message: 'This host has no peer: set "pairPeer"',
};
