// Measures the memory and the open resources of a pair's host: its agent, its HAProxy and its keepalived. Reads /proc and
// the agent's inspector.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { keepalivedPaths } from '../../../agent/vips/keepalived/paths.ts';
import { residentMemory } from '../../../bench/support/usage.ts';
import type { TestHost } from '../host/agent.ts';
import type { Side } from '../vrrp/agent-pair.ts';
import { activeResources, liveHeap, setTimers } from './live-heap.ts';

/** Name of a value → megabytes or a count. A value of 0 may be missing. */
export type Measures = ReadonlyMap<string, number>;

/** Several readings, because a host at rest still has work at most moments. */
const LOOKS = 10;
/** Milliseconds between two readings. */
const APART = 300;

export async function measure({ agent, host }: Side): Promise<Measures> {
  const heap = (await liveHeap(agent)) / 1e6;
  return new Map([
    ['agent live heap', Math.round(heap * 100) / 100],
    ['agent RSS', megabytesOf([agent.pid])],
    ...(await agentCounts({ agent })),
    ...(await haproxyMeasures(host)),
    ...keepalivedMeasures(host),
  ]);
}

/** The lowest value of several readings, which is the value without work in progress. */
export async function measureAtRest(side: Side): Promise<Measures> {
  let least = await measure(side);
  for (let look = 1; look < LOOKS; look++) {
    await delay(APART);
    least = lowest(least, await measure(side));
  }
  return least;
}

export function lowest(one: Measures, other: Measures): Measures {
  return new Map([...one].map(([name, value]) => [name, Math.min(value, other.get(name) ?? 0)]));
}

/** Describes each value that has grown by more than `allowed`. */
export function moreThan(
  before: Measures,
  now: Measures,
  allowed: (name: string) => number,
): readonly string[] {
  return [...now]
    .filter(([name, value]) => value - (before.get(name) ?? 0) > allowed(name))
    .map(([name, value]) => `${name}: ${before.get(name) ?? 0} → ${value}`);
}

async function agentCounts({ agent }: Pick<Side, 'agent'>): Promise<Measures> {
  const resources = await activeResources(agent);
  return new Map([
    ['agent descriptors', entriesOf(`/proc/${agent.pid}/fd`)],
    ['agent threads', entriesOf(`/proc/${agent.pid}/task`)],
    ['agent timers', await setTimers(agent)],
    ['agent resources', [...resources.values()].reduce((sum, count) => sum + count, 0)],
    ...[...resources].map(([kind, count]) => [`agent ${kind}`, count] as const),
  ]);
}

/** During a reload the master and its newest worker execute other programs for a moment. */
async function haproxyMeasures(host: TestHost): Promise<Measures> {
  for (;;) {
    const reloads = await host.reloads();
    const [master, worker] = [await host.master(), await host.worker()];
    const children = readFileSync(`/proc/${master}/task/${master}/children`, 'utf8').trim().split(' ');
    const measures = new Map([
      ['HAProxy processes', 1 + children.length],
      ['HAProxy master RSS', megabytesOf([master])],
      ['HAProxy master descriptors', entriesOf(`/proc/${master}/fd`)],
      ['HAProxy worker RSS', megabytesOf([worker])],
      ['HAProxy worker descriptors', entriesOf(`/proc/${worker}/fd`)],
    ]);
    if ((await host.reloads()) === reloads) return measures;
  }
}

function keepalivedMeasures({ stateDir, runtimeDir }: TestHost): Measures {
  const { pidFile, vrrpPidFile } = keepalivedPaths(stateDir, runtimeDir);
  const pids = [pidFile, vrrpPidFile].map((path) => Number.parseInt(readFileSync(path, 'utf8'), 10));
  const descriptors = pids.map((pid) => entriesOf(`/proc/${pid}/fd`));
  return new Map([
    ['keepalived RSS', megabytesOf(pids)],
    ['keepalived descriptors', descriptors.reduce((sum, count) => sum + count)],
  ]);
}

function megabytesOf(pids: readonly number[]): number {
  const sum = pids.map(residentMemory).reduce((one, other) => one + other);
  return Math.round(sum * 10) / 10;
}

/** Returns 0 if the process has ended. */
function entriesOf(folder: string): number {
  try {
    return readdirSync(folder).length;
  } catch {
    return 0;
  }
}
