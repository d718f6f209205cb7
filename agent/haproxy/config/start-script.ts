// The script in Lua that haproxy.cfg has a HAProxy before 2.8 load, because its start takes less time with it. Such a
// HAProxy does not start without the file, so it lies beside haproxy.cfg, is there first, and is put back where it is
// gone. `haproxy -c` does without it.

import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeAtomically } from '../../base/atomic-file.ts';
import { makeFolder } from '../../base/make-folder.ts';
import type { HaproxyPaths } from '../process/process.ts';

export const startScript = readFileSync(new URL('../../../templates/haproxy/start.lua', import.meta.url));

type Paths = Pick<HaproxyPaths, 'startScript' | 'fileMode'>;

/**
 * In place of whatever stands there, perhaps one of another version of the agent; makes the folder, too. Errors:
 * FILE_WRITE.
 */
export async function writeStartScript({ startScript: path, fileMode: mode }: Paths): Promise<void> {
  await makeFolder(dirname(path), 0o700);
  await writeAtomically(path, [startScript], { mode });
}

/** Costs one look where it is there. Errors: FILE_WRITE. */
export async function keepStartScript(paths: Paths): Promise<void> {
  if (!existsSync(paths.startScript)) await writeStartScript(paths);
}
