// Whether the kernel forwards packets, which it must to reach members: HAProxy needs no forwarding. Reads only.

import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { Family } from '../model/load-balancer.ts';

const SYSCTLS: Readonly<Record<Family, string>> = {
  v4: 'net.ipv4.ip_forward',
  v6: 'net.ipv6.conf.all.forwarding',
};
const TIMEOUT_MS = 5_000;

/** Why packets of these families cannot be forwarded, with the remedy; '' if they can. */
export async function whyNotForwarding(netns: string, families: ReadonlySet<Family>): Promise<string> {
  for (const family of families) {
    const name = SYSCTLS[family];
    const [program, args] = inNamespace(netns, 'cat', [`/proc/sys/${name.replaceAll('.', '/')}`]);
    const value = await runCommand(program, args, { timeout: TIMEOUT_MS }).then(
      ({ stdout }) => stdout.trim(),
      () => '',
    );
    if (value === '0')
      return `the kernel of this host does not forward packets: set ${name} to 1 (sysctl -w ${name}=1)`;
  }
  return '';
}
