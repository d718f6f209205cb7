// An environment whose PATH has Node and a few standard tools, and no other program.

import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

export const onlyNodeTools = [
  'sh',
  'cat',
  'cut',
  'dirname',
  'env',
  'find',
  'grep',
  'gzip',
  'mkfifo',
  'readlink',
  'sleep',
];

/** Replaces `folder` and makes it the whole PATH. */
export function onlyNode(env: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const tool of onlyNodeTools) symlinkSync(join('/bin', tool), join(folder, tool));
  symlinkSync(process.execPath, join(folder, 'node'));
  // bin/headgate adds the folders of daemons to PATH, so the daemons get names that do not exist.
  return { ...env, PATH: folder, HAPROXY: 'no-haproxy', KEEPALIVED: 'no-keepalived' };
}
