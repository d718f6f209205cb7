// What a host of a soak uses, at the beginning and at the end: memory, open files and sockets of its agent, files in its
// folder, processes. A replaced worker with a session is no leftover: the host that the VIP went to got the end of the client's
// connection, and this one waits for its timeout.

import { readdirSync } from 'node:fs';
import { askOnce } from '../../../agent/haproxy/socket/ask-once.ts';
import { showProc } from '../../../agent/haproxy/socket/master.ts';
import { parseSessions } from '../../../agent/haproxy/socket/readings.ts';
import { residentMemory } from '../../../bench/support/usage.ts';
import { processesOf, type TestHost } from '../host/agent.ts';
import type { SoakHost } from './soak-changes.ts';

export interface SoakUsage {
  /** Megabytes. */
  readonly memory: number;
  readonly descriptors: number;
  readonly files: number;
  /** Without replaced workers that have sessions. */
  readonly processes: number;
}

const MOST_MEMORY = 300;
/** Connections to the API server and to HAProxy come and go. */
const MORE_DESCRIPTORS = 20;
/** The maps of the Ingress are there twice, some 30 files, once it has moved from the landing; certificates and counts. */
const MORE_FILES = 60;

export async function soakUsage({ host, agent }: SoakHost): Promise<SoakUsage> {
  const waiting = await workersWithSessions(host);
  return {
    memory: Math.round(residentMemory(agent.pid)),
    descriptors: readdirSync(`/proc/${agent.pid}/fd`).length,
    files: readdirSync(host.directory, { recursive: true }).length,
    processes: processesOf(host.directory).filter((pid) => !waiting.has(pid)).length,
  };
}

/** Replaced ones, of both HAProxies of the host; none of a master that does not answer now. */
async function workersWithSessions({ paths, landing }: TestHost): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  for (const { masterSocket } of [paths, landing]) {
    const { oldWorkers } = await showProc(masterSocket).catch(() => ({ oldWorkers: [] }));
    for (const { pid } of oldWorkers) {
      const text = await askOnce(masterSocket, `@!${pid} show sess;quit`).catch(() => '');
      if (!parseSessions(text).next().done) found.add(pid);
    }
  }
  return found;
}

/** What has grown too much; empty if nothing has. */
export function grown(before: SoakUsage, now: SoakUsage): readonly string[] {
  const most: SoakUsage = {
    memory: MOST_MEMORY,
    descriptors: before.descriptors + MORE_DESCRIPTORS,
    files: before.files + MORE_FILES,
    processes: before.processes,
  };
  return (Object.keys(most) as (keyof SoakUsage)[])
    .filter((name) => now[name] > most[name])
    .map((name) => `${name}: ${before[name]} → ${now[name]}, at most ${most[name]}`);
}
