// Starts HAProxy as a service manager does: with the existing file, and again each time it has ended.

import { spawn } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootId } from '../../../agent/host/boot-id.ts';
import type { TestHost } from '../host/agent.ts';

/**
 * For the setting haproxySupervisor. Ends with its host, because its arguments name the host's directory; and resolves with its
 * pid. `boot`: the boot that it tells HAProxy.
 */
export async function startStarter(
  { directory, haproxyProgram, paths }: TestHost,
  boot = bootId(),
): Promise<number | undefined> {
  const path = join(directory, 'starter');
  const words = `-W -S '${paths.masterSocket},mode,600' -p '${paths.pidFile}' -f '${paths.config}'`;
  await writeFile(
    path,
    `#!/bin/bash
while :; do
  until [ -s '${paths.config}' ]; do sleep 0.05; done
  '${haproxyProgram}' ${words} </dev/null 2>>'${paths.log}'
  sleep 0.1
done
`,
  );
  await chmod(path, 0o755);
  const env = { ...process.env, HEADGATE_BOOT: boot };
  const starter = spawn(path, { stdio: 'ignore', env });
  starter.unref();
  return starter.pid;
}
