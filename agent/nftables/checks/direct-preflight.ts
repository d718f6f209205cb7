// What `headgate check` finds about direct members: which of them this host reaches without a router, and which have the VIPs.

import { messageOf } from '../../base/errors.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import { isDirect, type KernelListener } from '../rules/kernel-listener.ts';
import { readRoutes } from './direct-reach.ts';
import { answersAsVip } from './loopback-probe.ts';

const WHAT = 'direct members';
/** Pairs of member and VIP that are asked. */
const MAX_PAIRS = 64;

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
  return vipFindings(netns, listeners.filter(isDirect), `${addresses.length} on networks of this host`);
}

async function vipFindings(
  netns: string,
  listeners: readonly KernelListener[],
  found: string,
): Promise<readonly Finding[]> {
  const all = listeners
    .filter(({ family }) => family === 'v4')
    .flatMap(({ addresses, members }) =>
      addresses.flatMap((vip) => members.map(({ address }) => ({ member: address, vip }))),
    );
  const pairs = [...new Map(all.map((pair) => [`${pair.member} ${pair.vip}`, pair])).values()];
  const asked = pairs.slice(0, MAX_PAIRS);
  const answers = await answersAsVip(netns, asked).catch(() => []);
  const without = asked.filter((_, at) => answers[at] === false);
  if (without.length > 0)
    return without.map(({ member, vip }) =>
      bad(WHAT, `${member} does not answer a ping to ${vip}: it needs the VIP on its loopback`),
    );
  const known = answers.filter((each) => each === true).length;
  const rest = known === pairs.length ? '' : ', of the others that is not known (root can ask, in IPv4)';
  return [good(WHAT, `${found}; ${known} answer as the VIP${rest}`)];
}
