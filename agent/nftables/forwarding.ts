// Whether the kernel forwards packets, which it must to reach members: HAProxy needs no forwarding. Reads only.

import { readSysctl } from '../host/sysctl.ts';
import type { Family } from '../model/load-balancer.ts';

const SYSCTLS: Readonly<Record<Family, string>> = {
  v4: 'net.ipv4.ip_forward',
  v6: 'net.ipv6.conf.all.forwarding',
};
/** Why packets of these families cannot be forwarded, with the remedy; '' if they can. */
export async function whyNotForwarding(netns: string, families: ReadonlySet<Family>): Promise<string> {
  for (const family of families) {
    const name = SYSCTLS[family];
    const value = await readSysctl(netns, name.split('.')).catch(() => '');
    if (value === '0')
      return `the kernel of this host does not forward packets: set ${name} to 1 (sysctl -w ${name}=1)`;
  }
  return '';
}
