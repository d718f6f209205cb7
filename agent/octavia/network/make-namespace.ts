// Makes the network namespace of an amphora, in which HAProxy and keepalived run: it forwards packets, and programs may bind
// addresses that another amphora has.

import { statfs } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { IpProgram } from './ip-program.ts';

const TIMEOUT_MS = 10_000;
/** linux/magic.h: the file system of namespaces. */
const NSFS_MAGIC = 0x6e73_6673;
/** Kernel parameters of the namespace; an old kernel, or one without IPv6, lacks some. */
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
  const kind = await kindOf(`/run/netns/${netns}`);
  // After a crash in the middle of `ip netns add` the name is an empty file.
  if (kind === 'file') await host.run('netns', 'delete', netns);
  if (kind !== 'namespace') await host.run('netns', 'add', netns);
  await namespace.run('link', 'set', 'dev', 'lo', 'up');
  const writes = SYSCTLS.map((key) => `[ ! -e /proc/sys/${key} ] || echo 1 > /proc/sys/${key} || exit 1`);
  const [program, args] = inNamespace(netns, 'sh', ['-c', writes.join('\n')]);
  const { exitCode, stderr } = await runCommand(program, args, { timeout: TIMEOUT_MS });
  if (exitCode !== 0)
    throw new HeadgateError('COMMAND_FAILED', `Cannot set up network namespace "${netns}": ${stderr.trim()}`);
}

async function kindOf(path: string): Promise<'namespace' | 'file' | undefined> {
  try {
    return (await statfs(path)).type === NSFS_MAGIC ? 'namespace' : 'file';
  } catch {
    return undefined;
  }
}
