// Answers those who ask: operators by the commands, Prometheus and people over HTTP, and systemd.

import type { Metrics } from '../../health/metrics.ts';
import { startHealthServer } from '../../health/server.ts';
import { ServiceNotifier } from '../../health/service-notifier.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../host/log.ts';
import { operatingFamilies } from '../report/operating-metrics.ts';
import type { Overview } from '../report/overview.ts';
import { agentStatus, explainService, type StatusSources } from '../report/status.ts';
import type { CurrentSettings } from '../settings/current-settings.ts';
import type { Sources } from '../sources/sources.ts';
import { agentSocketPath } from './agent-socket.ts';
import { pairOrders } from './pair-orders.ts';
import { SocketKeeper } from './socket-keeper.ts';
import { useStateDir } from './state-dir-owner.ts';

export interface AnsweringOptions {
  readonly settings: CurrentSettings;
  readonly known: StatusSources;
  readonly sources: Pick<Sources, 'objects'>;
  readonly overview: Overview;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface Answering {
  /** Of the HTTP server. */
  readonly address: string;
  /** Resolves once systemd knows that the agent stops. */
  stopping(): Promise<void>;
  close(): void;
}

/** Milliseconds for one round of the loop, after which the agent no longer counts as alive. */
const LOOP_DEADLINE = 30_000;

/** Errors: AGENT_RUNNING where another agent answers there already, or uses the state folder; those of listening. */
export async function startAnswering({
  settings,
  known,
  sources,
  overview,
  metrics,
  log,
}: AnsweringOptions): Promise<Answering> {
  const { model, haproxy, keepalived, operating, pair } = known;
  const { stateDir, runtimeDir, listen } = settings.now;
  const answers = {
    status: () => agentStatus(known),
    why: (query: URLSearchParams) => explainService(query.get('service') ?? '', known),
  };
  const path = agentSocketPath(runtimeDir);
  await useStateDir(stateDir, path);
  const agentSocket = new SocketKeeper({
    path,
    answers,
    orders: pairOrders(pair),
    onRepair: () => metrics.dataplane.repaired('socket'),
    log,
  });
  await agentSocket.open();
  const alive = (): string => (metrics.loop.roundTime > LOOP_DEADLINE ? 'The loop does not come round' : '');
  const ready = (): string =>
    sources.objects === 'unread' ? 'The objects have not been read yet' : haproxy.status().fault;
  const round = async (pace: { readonly isAwaited: boolean }) => {
    const { metricsDetail } = settings.now;
    const ofHaproxy = await haproxy.families(pace);
    return [...ofHaproxy, ...(await operatingFamilies(operating.all(), model.loadBalancers, metricsDetail))];
  };
  const own = async () => [...(await metrics.families()), ...(keepalived?.families() ?? [])];
  const look = (asked: URLSearchParams) => overview.look(asked);
  const health = await startHealthServer(listen, { metrics: { round, own }, alive, ready, look });
  const notifier = new ServiceNotifier({
    env: process.env,
    alive,
    ready,
    status: () => `Serving ${model.loadBalancers.size} load balancers`,
    onFailure: (error) => log.warn('Cannot tell systemd how the agent is', { error: messageOf(error) }),
  });
  notifier.start();
  return {
    address: health.address,
    stopping: () => notifier.close(),
    close: () => {
      health.server.close();
      agentSocket.close();
    },
  };
}
