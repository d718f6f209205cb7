// Removes a folder in which others are at work, as somebody does who clears /run.

import { rename, rm } from 'node:fs/promises';

/** All at once: a file that is made in it meanwhile would keep rm() from it. */
export async function removeFolder(path: string): Promise<void> {
  const aside = `${path}.removed`;
  await rename(path, aside);
  await rm(aside, { recursive: true });
}
