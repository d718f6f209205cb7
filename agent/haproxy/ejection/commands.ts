// The commands by which a member rests, is probed, and comes back, and the question how many requests it has answered. Pure.

import { type HealthMonitor, PLAIN_MONITOR, type Pool } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import { serverKeywords } from '../config/listener-config.ts';
import type { Command } from '../socket/commands.ts';
import { positionOf } from '../stats/columns.ts';
import { parseStatRows } from '../stats/stat-rows.ts';
import { memberId, type Place } from './member-places.ts';

/** Also its time-out: twice as long a member that is well again may have to wait. */
const PROBE_INTERVAL_MS = 400;

export function restCommands(places: readonly Place[]): readonly Command[] {
  return places.map(({ listener, member }) => ({
    kind: 'AssumeFailure',
    backend: listener.name,
    server: member.name,
  }));
}

/** A member with a health monitor comes back when the monitor says so. */
export function returnCommands(places: readonly Place[]): readonly Command[] {
  return places.filter(({ listener }) => listener.pool.monitor === undefined).map(upCommand);
}

export function upCommand({ listener, member }: Place): Command {
  return { kind: 'AssumeHealth', backend: listener.name, server: member.name };
}

/** The place whose pool says how a member is probed; undefined if it has health monitors everywhere. */
export function probedPlace(places: readonly Place[]): Place | undefined {
  return places.find(({ listener }) => listener.pool.monitor === undefined);
}

/** HAProxy probes with the TLS and the PROXY protocol of the pool: by HTTP, or by a connection. */
export function probeBackend({ listener: { mode, pool } }: Place): string {
  return mode === 'http' && pool.httpVersion === '1.1' ? 'headgate:probes' : 'headgate:connections';
}

function probeName({ key, member }: Place): string {
  return memberId(ownerOf(key).namespace, member.name);
}

/** A probe that has not passed yet. `certificates`: the folder of the authorities' files. */
export function probeCommands(place: Place, certificates: string): readonly Command[] {
  const { listener, member } = place;
  const pool: Pool = {
    ...listener.pool,
    monitor: PROBE,
    httpVersion: '1.1',
    memberConnectionLimit: 0,
    slowStart: undefined,
  };
  const [, , ...keywords] = serverKeywords(pool, member, 'usual', certificates);
  const { address, port } = member;
  const at = { backend: probeBackend(place), server: probeName(place) };
  return [
    { kind: 'AddServer', ...at, address, port, keywords },
    { kind: 'SetServerState', ...at, state: 'ready' },
    { kind: 'AssumeFailure', ...at },
    { kind: 'EnableHealth', ...at },
  ];
}

export function endProbeCommands(place: Place): readonly Command[] {
  const at = { backend: probeBackend(place), server: probeName(place) };
  return [
    { kind: 'SetServerState', ...at, state: 'maint' },
    { kind: 'DeleteServer', ...at },
  ];
}

const PROBE: HealthMonitor = {
  type: 'http',
  ...PLAIN_MONITOR,
  interval: PROBE_INTERVAL_MS,
  timeout: 0,
  rise: 1,
  fall: 1,
  port: 0,
};

export function answersQuestion({ listener, member }: Place): string {
  return `show stat ${listener.name} 4 ${member.id}`;
}

const GOOD = (['hrsp_1xx', 'hrsp_2xx', 'hrsp_3xx', 'hrsp_4xx'] as const).map(positionOf);
const [ALL, FAILED, BROKEN] = (['stot', 'econ', 'eresp'] as const).map(positionOf) as [
  number,
  number,
  number,
];

/** What went well: responses, in mode tcp connections. */
export function goodAnswers(answer: string): number {
  let sum = 0;
  for (const { mode, values } of parseStatRows(answer)) {
    const at = (position: number): number => values[position] || 0;
    sum +=
      mode === 'http'
        ? GOOD.reduce((all, position) => all + at(position), 0)
        : at(ALL) - at(FAILED) - at(BROKEN);
  }
  return sum;
}
