// The script in Lua that haproxy.cfg has a HAProxy before 2.8 load, because its start takes less time with it. Such a
// HAProxy does not start without the file, nor with another one that is no Lua, so it lies beside haproxy.cfg, is there
// first, and is kept as it is. `haproxy -c` does without it.

import { readFileSync } from 'node:fs';
import { KeptFile } from '../../host/kept-file.ts';
import type { HaproxyPaths } from '../process/process.ts';

export const startScript = readFileSync(new URL('../../../templates/haproxy/start.lua', import.meta.url));

/** Before it is written for the first time another version of the agent may have left one. */
export function startScriptFile({
  startScript: path,
  fileMode,
}: Pick<HaproxyPaths, 'startScript' | 'fileMode'>): KeptFile {
  return new KeptFile(path, startScript, fileMode);
}
