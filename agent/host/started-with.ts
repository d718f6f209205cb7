// Finds processes by the words of their command lines, if no pid file names them. Leaves out the processes of containers
// on this host, whose command lines may be equal.

import { readdir, readFile } from 'node:fs/promises';
import { isShortage } from './shortage.ts';

/**
 * The processes of the agent's process namespace with matching words, and the parent of each. Errors: those of reading
 * /proc without descriptors or memory, because a live process must not count as gone.
 */
export async function startedWith(
  matches: (words: readonly string[]) => boolean,
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await textOf(`/proc/${pid}/cmdline`)).split('\0');
    if (!matches(words)) continue;
    const status = await textOf(`/proc/${pid}/status`);
    // One number for each process namespace, from the one of this /proc inwards.
    if (/^NSpid:\s+\d+\s+\d/m.test(status)) continue;
    found.set(Number(pid), Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0));
  }
  return found;
}

/** True if the process leads its process group, as a detached process does, instead of being forked in it. */
export async function leadsGroup(pid: number): Promise<boolean> {
  // After the name, which may contain anything: state, parent, group.
  const [, , group] = (await textOf(`/proc/${pid}/stat`)).split(') ').at(-1)?.split(' ') ?? [];
  return Number(group) === pid;
}

/** '' if the process has ended, or if the agent may not read it. */
async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isShortage(error)) throw error;
    return '';
  }
}
