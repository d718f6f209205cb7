// A HAProxy for which the loopback network is its own, so that two hosts of one machine may listen on the same addresses.

import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { haproxyExecutable } from './haproxy.ts';

/** Gives the path of the program, for the option `haproxy` of TestHost; needs root, unshare and ip. */
export async function aloneInItsNetwork(directory: string): Promise<string> {
  const path = join(directory, 'haproxy');
  const script = `#!/bin/sh\nexec unshare --net sh -c 'ip link set lo up && exec "$0" "$@"' ${haproxyExecutable} "$@"\n`;
  await writeFile(path, script);
  await chmod(path, 0o755);
  return path;
}
