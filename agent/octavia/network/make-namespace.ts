// Makes the network namespace of an amphora, in which HAProxy and keepalived run: it forwards packets, and programs may bind
// addresses that another amphora has.

import { existsSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { IpProgram } from './ip-program.ts';

const TIMEOUT_MS = 10_000;
/** Of the namespace; an old kernel, or one without IPv6, lacks some. */
const SYSCTLS: readonly string[] = [
  'net/ipv4/ip_forward',
  'net/ipv6/conf/all/forwarding',
  'net/ipv4/ip_nonlocal_bind',
  'net/ipv6/ip_nonlocal_bind',
  // Without it the removal of an address takes the others of its subnet along.
  'net/ipv4/conf/all/promote_secondaries',
];

/** Does nothing twice. `host`: the namespace where interfaces appear first. Errors: COMMAND_FAILED. */
export async function makeNamespace(netns: string, host: IpProgram, namespace: IpProgram): Promise<void> {
  // A name is there, but its namespace is not, only after a crash in the middle of this.
  if (!existsSync(`/run/netns/${netns}`)) await host.run('netns', 'add', netns);
  await namespace.run('link', 'set', 'dev', 'lo', 'up');
  const writes = SYSCTLS.map((key) => `[ ! -e /proc/sys/${key} ] || echo 1 > /proc/sys/${key} || exit 1`);
  const [program, args] = inNamespace(netns, 'sh', ['-c', writes.join('\n')]);
  const { exitCode, stderr } = await runCommand(program, args, { timeout: TIMEOUT_MS });
  if (exitCode !== 0)
    throw new HeadgateError('COMMAND_FAILED', `Cannot set up network namespace "${netns}": ${stderr.trim()}`);
}
