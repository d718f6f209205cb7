// What a host of a soak uses, at the beginning and at the end: memory, open files and sockets of its agent, files in its
// folder, processes.

import { readdirSync } from 'node:fs';
import { residentMemory } from '../../../bench/support/usage.ts';
import { processesOf } from '../host/agent.ts';
import type { SoakHost } from './soak-changes.ts';

export interface SoakUsage {
  /** Megabytes. */
  readonly memory: number;
  readonly descriptors: number;
  readonly files: number;
  readonly processes: number;
}

const MOST_MEMORY = 300;
/** Connections to the API server and to HAProxy come and go. */
const MORE_DESCRIPTORS = 20;
/** The maps of the Ingress are there twice, some 30 files, once it has moved from the landing; certificates and counts. */
const MORE_FILES = 60;

export function soakUsage({ host, agent }: SoakHost): SoakUsage {
  return {
    memory: Math.round(residentMemory(agent.pid)),
    descriptors: readdirSync(`/proc/${agent.pid}/fd`).length,
    files: readdirSync(host.directory, { recursive: true }).length,
    processes: processesOf(host.directory).length,
  };
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
