// What the controller and its operators are shown of the machine: processors, memory, disk, load. Reads /proc and the root
// file system.

import { readFile, statfs } from 'node:fs/promises';
import { cpus } from 'node:os';

export interface MachineDetails {
  readonly cpu: {
    readonly total: number;
    readonly user: string;
    readonly system: string;
    readonly soft_irq: string;
  };
  readonly cpu_count: number;
  /** In KiB. */
  readonly memory: Readonly<Record<(typeof MEMORY)[number][0], number>>;
  /** In bytes. */
  readonly disk: { readonly used: number; readonly available: number };
  readonly load: readonly string[];
}

export async function machineDetails(): Promise<MachineDetails> {
  const [stat, meminfo, loadavg, disk] = await Promise.all([
    readFile('/proc/stat', 'utf8'),
    readFile('/proc/meminfo', 'utf8'),
    readFile('/proc/loadavg', 'utf8'),
    statfs('/'),
  ]);
  return {
    cpu: readCpu(stat),
    cpu_count: cpus().length,
    memory: readMemory(meminfo),
    disk: { used: (disk.blocks - disk.bfree) * disk.bsize, available: disk.bavail * disk.bsize },
    load: loadavg.split(' ').slice(0, 3),
  };
}

/** In jiffies: proc_stat(5). All but the total are texts, as Octavia's agent has them. */
export function readCpu(stat: string): MachineDetails['cpu'] {
  const [, ...times] = /^cpu .*/m.exec(stat)?.[0].split(/ +/) ?? [];
  const [user = '0', , system = '0', , , , softIrq = '0'] = times;
  return { total: times.reduce((sum, time) => sum + Number(time), 0), user, system, soft_irq: softIrq };
}

/** The controller's names, and those of /proc/meminfo. */
const MEMORY = [
  ['total', 'MemTotal'],
  ['free', 'MemFree'],
  ['buffers', 'Buffers'],
  ['cached', 'Cached'],
  ['swap_used', 'SwapCached'],
  ['shared', 'Shmem'],
  ['slab', 'Slab'],
] as const;

export function readMemory(meminfo: string): MachineDetails['memory'] {
  const sizes = new Map(
    [...meminfo.matchAll(/^(\w+):\s+(\d+) kB/gm)].map(([, name, size]) => [name, Number(size)]),
  );
  return Object.fromEntries(
    MEMORY.map(([name, of]) => [name, sizes.get(of) ?? 0]),
  ) as MachineDetails['memory'];
}
