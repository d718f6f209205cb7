// How full the kernel's table of connections is. Each flow of the kernel path has an entry; when there is no room for
// another, the kernel drops packets of new flows without a word to anybody. Reads only.

import { readSysctl } from '../../host/sysctl.ts';

export interface ConntrackUsage {
  readonly entries: number;
  readonly limit: number;
}

/** From this share on new flows are in danger. */
const FULL = 0.95;

/** undefined if the kernel has no such table (yet). */
export async function conntrackUsage(netns: string): Promise<ConntrackUsage | undefined> {
  const read = async (name: string): Promise<number> =>
    Number((await readSysctl(netns, ['net', 'netfilter', name]).catch(() => '')) || Number.NaN);
  const [entries, limit] = [await read('nf_conntrack_count'), await read('nf_conntrack_max')];
  return limit > 0 && entries >= 0 ? { entries, limit } : undefined;
}

/** Why new flows are dropped, or about to be, with the remedy; '' if there is room. */
export function whyFull(usage: ConntrackUsage | undefined): string {
  if (usage === undefined || usage.entries < FULL * usage.limit) return '';
  const name = 'net.netfilter.nf_conntrack_max';
  const remedy = `raise ${name} (sysctl -w ${name}=${2 * usage.limit})`;
  return `the kernel's table of connections has nearly all of its ${usage.limit} entries, and drops new flows without room: ${remedy}`;
}
