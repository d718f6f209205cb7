// The servers of an agent that is an amphora, beside the REST API of the controller: its socket for the commands, HTTP for
// Prometheus and the status page, and notices to systemd.

import { hostname } from 'node:os';
import { type AmphoraMetrics, amphoraListenerFamilies } from '../../health/metrics/amphora-metrics.ts';
import { startHealthServer } from '../../health/server.ts';
import { ServiceNotifier } from '../../health/service-notifier.ts';
import { counted } from '../base/counted.ts';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import type { Log } from '../host/log.ts';
import { OwnFiles } from '../host/own-files.ts';
import type { Heartbeats } from '../octavia/heartbeat/heartbeats.ts';
import type { LoadBalancers } from '../octavia/load-balancers/load-balancers.ts';
import type { AmphoraDatagrams, AmphoraVrrp } from '../octavia/parts.ts';
import { amphoraPage } from '../octavia/report/amphora-page.ts';
import {
  type AmphoraList,
  type AmphoraStatus,
  type AmphoraWhy,
  amphoraListeners,
  amphoraStatus,
} from '../octavia/report/amphora-report.ts';
import type { CurrentAmphoraSettings } from '../octavia/settings/current-amphora-settings.ts';
import type { CurrentSettings } from '../settings/current-settings.ts';
import { AgentSocketFile, agentSocketPath } from './agent-socket.ts';
import type { Servers } from './servers.ts';
import { useStateDir } from './state-dir-owner.ts';

export interface AmphoraServersOptions {
  readonly settings: CurrentSettings;
  readonly own: CurrentAmphoraSettings;
  readonly loadBalancers: LoadBalancers;
  readonly datagrams: AmphoraDatagrams;
  readonly vrrp: AmphoraVrrp;
  readonly heartbeats: Heartbeats;
  readonly metrics: AmphoraMetrics;
  readonly log: Log;
}

/** Each look asks HAProxy for its statistics. */
const PAGE_INTERVAL_MS = 2_000;

/** `address`: of the REST API; '' while it does not listen. Errors: as startServers(). */
export async function serveAmphora(options: AmphoraServersOptions, address: () => string): Promise<Servers> {
  const { settings, own, loadBalancers, datagrams, vrrp, heartbeats, metrics, log } = options;
  const startedAt = new Date();
  const status = async (): Promise<AmphoraStatus> =>
    amphoraStatus({
      ...{ version, startedAt, settings: own.now, address: address() },
      loadBalancers: loadBalancers.views(),
      heartbeat: heartbeats.status(),
      isVrrpWell: await vrrp.isWell(),
    });
  const listeners = async () =>
    amphoraListeners(loadBalancers.views(), await loadBalancers.running(), await datagrams.report());
  const why = async (id: string): Promise<AmphoraWhy> => {
    const listener = (await listeners()).find((each) => each.id === id);
    if (listener === undefined)
      throw new HeadgateError('QUESTION_FAILED', `This amphora has no listener "${id}"`, { retry: 'never' });
    const { loadBalancers: all } = await status();
    return { listener, loadBalancer: all.find((each) => each.id === listener.loadBalancer) };
  };
  const idsFrom = async (beginning: string) =>
    (await listeners()).map(({ id }) => id).filter((id) => id.startsWith(beginning));
  const path = agentSocketPath(settings.now.runtimeDir);
  await useStateDir(settings.now.stateDir, path);
  const socket = new AgentSocketFile(
    path,
    {
      status,
      list: async (): Promise<AmphoraList> => ({ amphora: true, listeners: await listeners() }),
      // The command asks for a Service in a namespace.
      why: (query: URLSearchParams) => why(query.get('service')?.split('/').at(-1) ?? ''),
      names: (query: URLSearchParams) => idsFrom(query.get('beginning') ?? ''),
      namespaces: () => [],
    },
    {},
  );
  await socket.restore();
  process.once('exit', () => socket.close());
  const ownFiles = new OwnFiles({ files: [socket], onRestored: () => undefined, log });
  ownFiles.start();
  const alive = (): string => '';
  const ready = (): string => (address() === '' ? 'The amphora starts' : '');
  const health = await startHealthServer(settings.now.listen, {
    metrics: {
      round: async () => amphoraListenerFamilies(await listeners()),
      own: () => metrics.families(),
    },
    alive,
    ready,
    look: async () => amphoraPage(hostname(), await status(), await listeners()),
    page: 'amphora.html',
    intervalMs: PAGE_INTERVAL_MS,
  });
  const notifier = new ServiceNotifier({
    env: process.env,
    alive,
    ready,
    status: () => `An amphora with ${counted(loadBalancers.views().length, 'load balancer')}`,
    onFailure: (error) => log.warn('Cannot notify systemd', { error: messageOf(error) }),
  });
  notifier.start();
  return {
    address: health.address,
    stopping: () => notifier.close(),
    close: () => {
      health.server.close();
      ownFiles.close();
      socket.close();
    },
  };
}
