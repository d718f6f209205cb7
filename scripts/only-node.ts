// An environment in which a test finds Node and a few small tools of every Unix, and no other program.

import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const TOOLS = ['sh', 'cat', 'sleep', 'mkfifo', 'gzip'];

/** `folder` is made, or made again, and is the whole PATH. */
export function onlyNode(env: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const tool of TOOLS) symlinkSync(join('/bin', tool), join(folder, tool));
  symlinkSync(process.execPath, join(folder, 'node'));
  // The daemons by the variables of the version matrix, too.
  return { ...env, PATH: folder, HAPROXY: '/nowhere/haproxy', KEEPALIVED: '/nowhere/keepalived' };
}
