// Finds processes by the words that they were started with, where no pid file names them.

import { readdir, readFile } from 'node:fs/promises';

/** Those whose words are right, each with its parent. Errors: those of /proc, for lack of descriptors. */
export async function startedWith(
  isRight: (words: readonly string[]) => boolean,
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (!isRight(words)) continue;
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    found.set(Number(pid), Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0));
  }
  return found;
}
