// A second name for HAProxy's admin socket, to bring back the first when someone has removed it: HAProxy itself never
// does, as its workers hand the open socket on to each other. A name leads to the socket, not to whoever made it.

import { lstatSync } from 'node:fs';
import { link, unlink } from 'node:fs/promises';
import { askOnce } from '../socket/ask-once.ts';

const ANSWER = 500;

/**
 * Gives the socket its second name, or restores the first one from it; true where that was done and HAProxy answers
 * there. Where the folder does not allow it nothing is done.
 */
export async function keepSocket(path: string): Promise<boolean> {
  const kept = `${path}.kept`;
  const [own, other] = [inodeOf(path), inodeOf(kept)];
  try {
    if (own !== undefined) {
      if (own === other) return false;
      if (other !== undefined) await unlink(kept);
      await link(path, kept);
      return false;
    }
    if (other === undefined) return false;
    await link(kept, path);
  } catch {
    return false;
  }
  if (await isAnswering(path)) return true;
  // It was the name of a socket whose HAProxy has gone.
  await Promise.all([path, kept].map((each) => unlink(each).catch(() => undefined)));
  return false;
}

/** Synchronous: asked every second, and a hundred times as cheap as by the thread pool. */
function inodeOf(path: string): number | undefined {
  try {
    const status = lstatSync(path, { throwIfNoEntry: false });
    return status?.isSocket() ? status.ino : undefined;
  } catch {
    return undefined;
  }
}

function isAnswering(path: string): Promise<boolean> {
  return askOnce(path, 'show info', { timeoutMs: ANSWER }).then(
    (text) => text.includes('Pid: '),
    () => false,
  );
}
