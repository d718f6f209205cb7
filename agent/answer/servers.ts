// The servers of the agent: its socket for the commands, HTTP for Prometheus and the page, and notices to systemd.

import type { Metrics } from '../../health/metrics.ts';
import { startHealthServer } from '../../health/server.ts';
import { ServiceNotifier } from '../../health/service-notifier.ts';
import { messageOf } from '../base/errors.ts';
import type { RoundPace } from '../dataplane/dataplane.ts';
import type { Log } from '../host/log.ts';
import { OwnFiles } from '../host/own-files.ts';
import { explainService } from '../report/explain.ts';
import { operatingFamilies } from '../report/operating-metrics.ts';
import type { Overview } from '../report/overview.ts';
import { agentStatus, type StatusSources } from '../report/status.ts';
import type { CurrentSettings } from '../settings/current-settings.ts';
import type { Sources } from '../sources/sources.ts';
import { agentSocketPath } from './agent-socket.ts';
import { AgentSocketFile } from './agent-socket-file.ts';
import { pairOrders } from './pair-orders.ts';
import { useStateDir } from './state-dir-owner.ts';

export interface ServersOptions {
  readonly settings: CurrentSettings;
  readonly statusSources: StatusSources;
  readonly sources: Pick<Sources, 'objects'>;
  readonly overview: Overview;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface Servers {
  /** Of the HTTP server. */
  readonly address: string;
  /** Resolves once systemd knows that the agent stops. */
  stopping(): Promise<void>;
  close(): void;
}

/** Milliseconds for one round of the loop, after which the agent no longer counts as alive. */
const LOOP_DEADLINE = 30_000;

/** Errors: AGENT_RUNNING where another agent answers there already, or uses the state folder; those of listening. */
export async function startServers({
  settings,
  statusSources,
  sources,
  overview,
  metrics,
  log,
}: ServersOptions): Promise<Servers> {
  const { desired, dataplane, announcer, operating, pair } = statusSources;
  const { stateDir, runtimeDir, listen } = settings.now;
  const answers = {
    status: () => agentStatus(statusSources),
    why: (query: URLSearchParams) => explainService(query.get('service') ?? '', statusSources),
  };
  const path = agentSocketPath(runtimeDir);
  await useStateDir(stateDir, path);
  const agentSocket = new AgentSocketFile(path, answers, pairOrders(pair));
  await agentSocket.open();
  const ownFiles = new OwnFiles({
    files: [agentSocket, ...(announcer?.ownFiles ?? [])],
    onRestored: (kind) => metrics.dataplane.repaired(kind),
    log,
  });
  ownFiles.start();
  const alive = (): string => (metrics.loop.roundTime > LOOP_DEADLINE ? 'The loop does not come round' : '');
  const ready = (): string =>
    sources.objects === 'unread' ? 'The objects have not been read yet' : dataplane.status().fault;
  const round = async (pace: RoundPace) => {
    const { metricsDetail } = settings.now;
    const forwarded = await dataplane.families(pace);
    return [
      ...forwarded,
      ...(await operatingFamilies(operating.all(), desired.loadBalancers, metricsDetail)),
    ];
  };
  const own = async () => [...(await metrics.families()), ...(announcer?.families() ?? [])];
  const look = (asked: URLSearchParams) => overview.look(asked);
  const health = await startHealthServer(listen, { metrics: { round, own }, alive, ready, look });
  const notifier = new ServiceNotifier({
    env: process.env,
    alive,
    ready,
    status: () => `Serving ${desired.loadBalancers.size} load balancers`,
    onFailure: (error) => log.warn('Cannot tell systemd how the agent is', { error: messageOf(error) }),
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
