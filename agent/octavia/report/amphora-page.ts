// What the status page shows of an amphora: the answers of `status` and `list`, cut to what a page holds, the worst first.
// Pure.

import type {
  AmphoraPageMembers,
  AmphoraPagePool,
  AmphoraPageRow,
  AmphoraPageView,
} from '../../../health/amphora-page-model.ts';
import type { AmphoraListener, AmphoraPool, AmphoraStatus, LoadBalancerStatus } from './amphora-report.ts';

const MAX_LOAD_BALANCERS = 20;
const MAX_LISTENERS = 100;
const MAX_POOLS = 20;
const MAX_MEMBERS = 50;
/** Characters of what HAProxy says. */
const MAX_LENGTH = 1_000;

export function amphoraPage(
  host: string,
  status: AmphoraStatus,
  listeners: readonly AmphoraListener[],
): AmphoraPageView {
  const rows = listeners.map(rowOf);
  const sum = (field: keyof AmphoraPageMembers): number =>
    rows.reduce((total, { members }) => total + members[field], 0);
  return {
    summary: {
      ...status,
      host,
      fault: cut(status.fault),
      loadBalancers: status.loadBalancers.slice(0, MAX_LOAD_BALANCERS).map(loadBalancerOf),
      listeners: { all: rows.length, unserved: rows.filter((row) => row.status === '').length },
      members: { ready: sum('ready'), down: sum('down'), all: sum('all') },
    },
    list: { rows: rows.toSorted(worstFirst).slice(0, MAX_LISTENERS), found: rows.length },
  };
}

function loadBalancerOf({ fault, lastReload, ...rest }: LoadBalancerStatus): LoadBalancerStatus {
  return { ...rest, lastReload: cut(lastReload), fault: cut(fault) };
}

function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}

function rowOf({ pools, ...listener }: AmphoraListener): AmphoraPageRow {
  const all = pools.flatMap(({ members }) => Object.values(members));
  return {
    ...listener,
    members: { ready: all.filter(isReady).length, down: all.filter(isDown).length, all: all.length },
    pools: pools.slice(0, MAX_POOLS).map(poolOf),
    morePools: Math.max(0, pools.length - MAX_POOLS),
  };
}

function poolOf({ id, status, members }: AmphoraPool): AmphoraPagePool {
  const all = Object.entries(members).map((member) => ({ id: member[0], status: member[1] }));
  const isOther = (each: { readonly status: string }): number => (isDown(each.status) ? 0 : 1);
  return {
    ...{ id, status },
    members: all.toSorted((a, b) => isOther(a) - isOther(b)).slice(0, MAX_MEMBERS),
    moreMembers: Math.max(0, all.length - MAX_MEMBERS),
  };
}

function isReady(status: string): boolean {
  return status.startsWith('UP') || status === 'no check';
}

function isDown(status: string): boolean {
  return status.startsWith('DOWN');
}

/** Listeners that are not served, then those with the most members that are down. */
function worstFirst(a: AmphoraPageRow, b: AmphoraPageRow): number {
  const served = Number(a.status !== '') - Number(b.status !== '');
  return served || b.members.down - a.members.down;
}
