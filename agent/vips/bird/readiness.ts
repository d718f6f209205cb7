// Checks if this host can announce VIPs by BGP: the program, and the settings of the kernel. Reads only.

import { messageOf } from '../../base/errors.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import { readSysctl } from '../../host/sysctl.ts';
import type { BirdSettings } from './options.ts';
import { birdVersion } from './process.ts';

export async function birdReadiness({
  bird,
  netns,
}: Pick<BirdSettings, 'bird' | 'netns'>): Promise<readonly Finding[]> {
  const program = await birdVersion(bird).then(
    (version) => good('BIRD', version),
    (error) => bad('BIRD', messageOf(error)),
  );
  return [program, ...(await Promise.all([nonlocalBind(netns, 'ipv4'), nonlocalBind(netns, 'ipv6')])).flat()];
}

/** HAProxy listens on a VIP before it is local here. */
async function nonlocalBind(netns: string, family: 'ipv4' | 'ipv6'): Promise<readonly Finding[]> {
  const name = `net.${family}.ip_nonlocal_bind`;
  try {
    const value = await readSysctl(netns, ['net', family, 'ip_nonlocal_bind']);
    if (value === '') return []; // a kernel without IPv6
    if (value === '1') return [good(name, 'is 1')];
    return [
      bad(
        name,
        `is ${value}, so that HAProxy cannot listen on VIPs in time: set it to 1 (sysctl -w ${name}=1)`,
      ),
    ];
  } catch (error) {
    return [bad(name, messageOf(error))];
  }
}
