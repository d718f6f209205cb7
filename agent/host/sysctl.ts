// Reads kernel parameters, also those of a network namespace.

import { inNamespace } from './namespace.ts';
import { runCommand } from './run-command.ts';

const TIMEOUT_MS = 5_000;

/**
 * The value of a sysctl, '' if this kernel does not have it. `key`: the parts of its name, because an interface's name may
 * contain dots. Errors: COMMAND_FAILED.
 */
export async function readSysctl(netns: string, key: readonly string[]): Promise<string> {
  const [program, args] = inNamespace(netns, 'cat', [`/proc/sys/${key.join('/')}`]);
  return (await runCommand(program, args, { timeout: TIMEOUT_MS })).stdout.trim();
}
