// Removes a folder while other processes write into it.

import { rename, rm } from 'node:fs/promises';

/** Renames the folder first, because a new file in it would make rm() fail. */
export async function removeFolder(path: string): Promise<void> {
  const aside = `${path}.removed`;
  await rename(path, aside);
  await rm(aside, { recursive: true });
}
