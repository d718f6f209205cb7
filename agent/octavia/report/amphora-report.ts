// What the commands show of an amphora: the load balancer, its text and listeners, the controllers. Values only; pure.

import type { HeartbeatStatus } from '../heartbeat/heartbeats.ts';
import { composeMessage, type RunningText } from '../heartbeat/message.ts';
import type { LoadBalancerView } from '../load-balancers/load-balancers.ts';
import type { DatagramListener } from '../parts.ts';
import type { AmphoraSettings } from '../settings/amphora-settings.ts';

export interface AmphoraStatus {
  /** Tells this answer from that of an agent with objects. */
  readonly amphora: { readonly id: string; readonly topology: string; readonly address: string };
  readonly version: string;
  readonly startedAt: string;
  readonly loadBalancers: readonly LoadBalancerStatus[];
  readonly heartbeat: HeartbeatReport;
  /** '' if all is well. */
  readonly fault: string;
}

export interface LoadBalancerStatus {
  readonly id: string;
  readonly listeners: number;
  /** HAProxy answers. */
  readonly isRunning: boolean;
  /** MD5 of the text that runs; '' if none. */
  readonly text: string;
  /** Since when; '' if none runs. */
  readonly since: string;
  /** The text that the controller has sent last does not run. */
  readonly isBehind: boolean;
  /** Why HAProxy was reloaded last; '' if it was not. */
  readonly lastReload: string;
  readonly fault: string;
}

export interface HeartbeatReport {
  readonly controllers: readonly string[];
  readonly sent: number;
  /** The last one; '' before the first. */
  readonly lastAt: string;
  readonly lastTo: string;
  readonly fault: string;
}

export interface AmphoraList {
  /** Tells this answer from that of an agent with objects. */
  readonly amphora: true;
  readonly listeners: readonly AmphoraListener[];
}

export interface AmphoraWhy {
  readonly listener: AmphoraListener;
  /** The listener's; undefined for one of UDP or SCTP. */
  readonly loadBalancer: LoadBalancerStatus | undefined;
}

/** A listener as `list` and `why` show it. */
export interface AmphoraListener {
  readonly id: string;
  readonly loadBalancer: string;
  readonly type: string;
  /** `ADDRESS:PORT`; '' if it is not known. */
  readonly place: string;
  readonly engine: 'haproxy' | 'kernel';
  /** The word of the heartbeat; '' if the listener is not in it. */
  readonly status: string;
  readonly connections: number;
  readonly pools: readonly AmphoraPool[];
}

export interface AmphoraPool {
  readonly id: string;
  readonly status: string;
  /** Status by member. */
  readonly members: Readonly<Record<string, string>>;
}

export interface AmphoraFacts {
  readonly version: string;
  readonly startedAt: Date;
  readonly settings: AmphoraSettings;
  readonly address: string;
  readonly loadBalancers: readonly LoadBalancerView[];
  readonly heartbeat: HeartbeatStatus;
  readonly isVrrpWell: boolean;
}

export function amphoraStatus(facts: AmphoraFacts): AmphoraStatus {
  const { version, startedAt, settings, address, heartbeat } = facts;
  const loadBalancers = facts.loadBalancers.map(statusOf);
  const faults = [
    ...facts.loadBalancers.map(faultOf),
    facts.isVrrpWell ? '' : 'keepalived is configured, but does not run',
    heartbeat.fault === '' ? '' : `No heartbeat is sent: ${heartbeat.fault}`,
  ];
  return {
    amphora: {
      id: settings.amphoraId,
      topology: settings.isActiveStandby ? 'ACTIVE_STANDBY' : 'SINGLE',
      address,
    },
    version,
    startedAt: startedAt.toISOString(),
    loadBalancers,
    heartbeat: {
      controllers: settings.heartbeat.controllers.map(({ host, port }) => `${host}:${port}`),
      sent: heartbeat.sent,
      lastAt: heartbeat.last?.at.toISOString() ?? '',
      lastTo: heartbeat.last?.to ?? '',
      fault: heartbeat.fault,
    },
    fault: faults.find((fault) => fault !== '') ?? '',
  };
}

/** '' if its HAProxy runs, or need not run. */
function faultOf({ id, isWanted, haproxy }: LoadBalancerView): string {
  return haproxy.fault || (isWanted && !haproxy.isRunning ? `HAProxy of ${id} does not run` : '');
}

function statusOf({ id, uploaded, isBehind, haproxy }: LoadBalancerView): LoadBalancerStatus {
  const { isRunning, text, since, cause, fault } = haproxy;
  return {
    id,
    listeners: uploaded.listeners.length,
    isRunning,
    text,
    since: since?.toISOString() ?? '',
    isBehind,
    lastReload: cause,
    fault,
  };
}

/** Listeners of the uploaded texts, with the statuses of a heartbeat of this moment. */
export function amphoraListeners(
  loadBalancers: readonly LoadBalancerView[],
  running: readonly RunningText[],
  datagrams: readonly DatagramListener[],
): readonly AmphoraListener[] {
  const { listeners, pools } = composeMessage({ id: '', seq: 0 }, running, datagrams, new Map());
  const reported = (id: string) => ({
    status: listeners[id]?.status ?? '',
    connections: listeners[id]?.stats.conns ?? 0,
  });
  const ofHaproxy = loadBalancers.flatMap(({ id: loadBalancer, uploaded }) =>
    uploaded.listeners.map(
      ({ id, type, bind }): AmphoraListener => ({
        ...{ id, loadBalancer, type, place: bind, engine: 'haproxy', ...reported(id) },
        pools: uploaded.pools
          .filter(({ listener }) => listener === id)
          .map(({ name, pool }) => ({ id: pool, status: '', members: {}, ...pools[name] })),
      }),
    ),
  );
  const ofKernel = datagrams.map(
    ({ id, pool }): AmphoraListener => ({
      ...{ id, loadBalancer: '', type: 'UDP', place: '', engine: 'kernel', ...reported(id) },
      pools:
        pool === undefined
          ? []
          : [{ id: pool.id, status: pool.status, members: Object.fromEntries(pool.members) }],
    }),
  );
  return [...ofHaproxy, ...ofKernel];
}
