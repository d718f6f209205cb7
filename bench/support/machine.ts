// The machine and the program versions of a measurement.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { version } from '../../agent/base/version.ts';
import { sum } from './statistics.ts';
import { pause } from './until.ts';

export interface Machine {
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryMB: number;
  readonly kernel: string;
  readonly openFiles: number;
}

export function versions(haproxy: string): Readonly<Record<string, string>> {
  return {
    headgate: version,
    node: process.versions.node,
    haproxy: firstMatch(haproxy, ['-v'], /version (\S+)/),
    wrk: firstMatch('wrk', ['-v'], /wrk \S*?(\d[\w.]*)/),
  };
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? '',
    cpus: cpus().length,
    memoryMB: Math.round(totalmem() / 1e6),
    kernel: release(),
    openFiles: Number(firstMatch('sh', ['-c', 'ulimit -Hn'], /(\d+)/)),
  };
}

/** Returns '' if the program is missing or prints something else. wrk prints its version with status 1. */
function firstMatch(program: string, args: readonly string[], pattern: RegExp): string {
  try {
    return (
      pattern.exec(
        execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
      )?.[1] ?? ''
    );
  } catch (error) {
    return pattern.exec(String((error as { stdout?: string }).stdout ?? ''))?.[1] ?? '';
  }
}

/** Percentage of the processors' time that is in use during the next `milliseconds`. */
export async function busy(milliseconds: number): Promise<number> {
  const before = processorTimes();
  await pause(milliseconds);
  const after = processorTimes();
  return 100 * (1 - (after.idle - before.idle) / (after.all - before.all));
}

function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times);
  return {
    idle: sum(times.map(({ idle }) => idle)),
    all: sum(times.flatMap((each) => Object.values(each))),
  };
}

/**
 * Returns a function that gives the percentage of the processors' time that the hypervisor has given to other machines
 * since now. 0 on a physical machine.
 */
export function stolen(): () => number {
  const before = stealTimes();
  return () => {
    const after = stealTimes();
    return (100 * (after.stolen - before.stolen)) / (after.all - before.all);
  };
}

/** /proc/stat has user, nice, system, idle, iowait, irq, softirq, steal, and then guest times that user and nice include. */
function stealTimes(): { readonly stolen: number; readonly all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const times = line.split(/ +/).slice(1, 9).map(Number);
  return { stolen: times[7] ?? 0, all: sum(times) };
}
