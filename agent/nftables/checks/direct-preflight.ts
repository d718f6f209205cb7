// What `headgate check` finds about direct members: which of them this host reaches without a router. Reads only.

import { messageOf } from '../../base/errors.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import { isDirect, type KernelListener } from '../rules/kernel-listener.ts';
import { readRoutes } from './direct-reach.ts';

const WHAT = 'direct members';

export async function directFindings(
  netns: string,
  listeners: readonly KernelListener[],
): Promise<readonly Finding[]> {
  const members = listeners.filter(isDirect).flatMap((listener) => listener.members);
  if (members.length === 0) return [];
  const addresses = [...new Set(members.map(({ address }) => address))];
  const found = await readRoutes(netns, addresses).catch(messageOf);
  if (typeof found === 'string') return [bad(WHAT, `their routes are not known: ${found}`)];
  const unreached = [...found].filter(([, why]) => why !== '');
  if (unreached.length > 0) return unreached.map(([address, why]) => bad(WHAT, `${address}: ${why}`));
  const vips = 'whether they have the VIPs on their loopback only traffic shows';
  return [good(WHAT, `${addresses.length} on networks of this host; ${vips}`)];
}
