// Finds processes by the words that they were started with, where no pid file names them. Those of containers on this
// host have the same words as ours where their paths are the same inside: they are left out.

import { readdir, readFile } from 'node:fs/promises';
import { isShortage } from './shortage.ts';

/**
 * Those of our own process namespace whose words are right, each with its parent. Errors: those of /proc, for lack of
 * descriptors or memory: one that lives must not be taken for gone.
 */
export async function startedWith(
  isRight: (words: readonly string[]) => boolean,
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await textOf(`/proc/${pid}/cmdline`)).split('\0');
    if (!isRight(words)) continue;
    const status = await textOf(`/proc/${pid}/status`);
    // One number for each process namespace that it has one in, from the one whose /proc this is inwards.
    if (/^NSpid:\s+\d+\s+\d/m.test(status)) continue;
    found.set(Number(pid), Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0));
  }
  return found;
}

/** Whether the process was started on its own, as detached ones are, and not forked by another of its group. */
export async function leadsGroup(pid: number): Promise<boolean> {
  // Behind its name, which may be anything: state, parent, group.
  const [, , group] = (await textOf(`/proc/${pid}/stat`)).split(') ').at(-1)?.split(' ') ?? [];
  return Number(group) === pid;
}

/** '' of a process that has ended meanwhile, or that we may not look at. */
async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isShortage(error)) throw error;
    return '';
  }
}
