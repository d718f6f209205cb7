// What `status`, `list` and `why` print if the agent is an amphora of Octavia.

import { counted } from '../base/counted.ts';
import type { AmphoraListener, AmphoraStatus, LoadBalancerStatus } from '../octavia/report/amphora-report.ts';
import { bad, good, type Line, type Part, tableLines, title } from './text.ts';

/** The agent answers `status` with one of two forms. */
export function isAmphora(answer: object): answer is AmphoraStatus {
  return 'amphora' in answer;
}

export function amphoraStatusLines(status: AmphoraStatus): readonly Line[] {
  const { amphora, heartbeat, fault } = status;
  const last =
    heartbeat.lastAt === '' ? 'none sent yet' : `last one ${heartbeat.lastAt} to ${heartbeat.lastTo}`;
  return [
    `Headgate ${status.version}, since ${status.startedAt}, is an amphora of Octavia`,
    row('Amphora', `${amphora.id}, ${amphora.topology}, API at ${amphora.address}`),
    row('Controllers', heartbeat.controllers.join(', ') || bad('none')),
    row('Heartbeats', `${heartbeat.sent}, ${last}`),
    ...(heartbeat.fault === '' ? [] : [row('', bad(heartbeat.fault))]),
    ...(status.loadBalancers.length === 0 ? [row('Load balancer', 'none was pushed yet')] : []),
    ...status.loadBalancers.flatMap(loadBalancerLines),
    row('Fault', fault === '' ? 'none' : bad(fault)),
  ];
}

function loadBalancerLines(each: LoadBalancerStatus): readonly Line[] {
  const { id, listeners, isRunning, text, since, isBehind, lastReload, fault } = each;
  const runs = isRunning ? `runs ${text} since ${since}` : bad('does not run');
  return [
    row('Load balancer', `${id}, ${counted(listeners, 'listener')}`),
    row('  HAProxy', runs),
    ...(isBehind
      ? [row('  Upload', { text: 'the last uploaded text does not run yet', tone: 'warning' })]
      : []),
    row('  Last reload', lastReload || 'none'),
    ...(fault === '' ? [] : [row('  Fault', bad(fault))]),
  ];
}

export function amphoraListLines(listeners: readonly AmphoraListener[]): readonly Line[] {
  if (listeners.length === 0) return ['No listener'];
  const head = ['LISTENER', 'TYPE', 'ADDRESS', 'POOLS', 'MEMBERS', 'ENGINE', 'STATUS'].map(title);
  return tableLines([
    head,
    ...listeners.map(({ id, type, place, pools, engine, status }): readonly Part[] => {
      const members = pools.flatMap((pool) => Object.values(pool.members));
      const well = members.filter((each) => each.startsWith('UP') || each === 'no check').length;
      return [id, type, place, `${pools.length}`, `${well}/${members.length}`, engine, statusPart(status)];
    }),
  ]);
}

/** `loadBalancer`: the listener's; undefined for one of UDP or SCTP. */
export function amphoraWhyLines(
  listener: AmphoraListener,
  loadBalancer: LoadBalancerStatus | undefined,
): readonly Line[] {
  const { id, type, place, engine, status, connections, pools } = listener;
  return [
    [title(id), `: ${type} ${place}, `, statusPart(status)],
    row('Engine', engine),
    row('Connections', `${connections}`),
    ...(loadBalancer === undefined ? [] : loadBalancerLines(loadBalancer)),
    ...pools.flatMap((pool): readonly Line[] => [
      row('Pool', pool.id, ', ', statusPart(pool.status)),
      ...Object.entries(pool.members).map(([member, each]): Line => [`  ${member}  `, statusPart(each)]),
    ]),
  ];
}

function statusPart(status: string): Part {
  if (status === '') return bad('not served');
  if (/^(OPEN|UP)/.test(status)) return good(status);
  return /^(DOWN|FULL)/.test(status) ? bad(status) : status;
}

/** The width of the column of titles. */
const TITLE_COLUMNS = 16;

function row(name: string, ...parts: readonly Part[]): Line {
  const head = name === '' ? '' : `${name}:`;
  return [title(head), ' '.repeat(Math.max(1, TITLE_COLUMNS - head.length)), ...parts];
}
