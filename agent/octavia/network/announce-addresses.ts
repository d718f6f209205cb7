// Tells the neighbours of an interface that its addresses are here, by ARP and neighbour discovery: another machine may have
// had them. A small program in Perl does it (templates/octavia/announce.pl), because it needs raw sockets in the namespace.

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { Link } from './found-network.ts';

const PROGRAM = readFileSync(new URL('../../../templates/octavia/announce.pl', import.meta.url), 'utf8');
const TIMEOUT_MS = 10_000;

/** Errors: COMMAND_FAILED. */
export async function announceAddresses(
  netns: string,
  { index, mac, name }: Link,
  addresses: readonly string[],
): Promise<void> {
  if (addresses.length === 0) return;
  const words = ['-e', PROGRAM, String(index), mac.replaceAll(':', ''), ...addresses];
  const [program, args] = inNamespace(netns, 'perl', words);
  const { exitCode, stderr } = await runCommand(program, args, { timeout: TIMEOUT_MS });
  if (exitCode !== 0)
    throw new HeadgateError('COMMAND_FAILED', `Cannot announce addresses on ${name}: ${stderr.trim()}`);
}
