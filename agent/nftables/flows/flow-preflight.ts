// Checks what only flows show about members and source addresses, and the filter of the kernel that drops packets which come
// back by another way. Reads only.

import { sleep } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { bad, type Finding, good } from '../../host/finding.ts';
import type { SourceGroups } from '../../model/source-groups.ts';
import { isInGatewayMode, type KernelListener } from '../rules/kernel-listener.ts';
import { lastingSilence, type Silence } from './flow-counts.ts';
import { nextHop, silenceInWords, whyShort } from './flow-faults.ts';
import { readFlows } from './read-flows.ts';

/** Between two readings. */
const READING_GAP_MS = 3_000;

/** What the flows of now show about source addresses and about members in gateway mode. */
export async function flowFindings(
  netns: string,
  listeners: readonly KernelListener[],
  sources: SourceGroups,
): Promise<readonly Finding[]> {
  const [first] = listeners.filter(isInGatewayMode);
  const what = 'gateway mode';
  try {
    const counts = await readFlows(netns, listeners);
    const short = whyShort(counts);
    const findings = short === '' ? [] : [bad('source addresses', short)];
    if (first === undefined) return findings;
    const silent = await stillSilent(netns, listeners, counts.silent);
    const detail = `no flow shows a member whose route to the clients does not lead to ${nextHop(first, sources)}`;
    if (silent.length === 0) return [...findings, good(what, detail)];
    return [...findings, ...silent.map((each) => bad(what, silenceInWords(each, sources)))];
  } catch (error) {
    // An ordinary user may not read flows.
    const todo =
      first && `see that the route of its members to the clients leads to ${nextHop(first, sources)}`;
    return todo === undefined ? [] : [good(what, `${messageOf(error)}: ${todo}`)];
  }
}

/** Errors: COMMAND_FAILED. */
async function stillSilent(
  netns: string,
  listeners: readonly KernelListener[],
  silent: readonly Silence[],
): Promise<readonly Silence[]> {
  if (silent.length === 0) return silent;
  await sleep(READING_GAP_MS);
  return lastingSilence(silent, (await readFlows(netns, listeners.filter(isInGatewayMode))).silent);
}

/**
 * `text`: lines such as `/proc/sys/net/ipv4/conf/eth0/rp_filter:1`. The higher number of `all` and the interface counts: 1 is
 * strict, 2 is loose.
 */
export function strictFilters(text: string): readonly Finding[] {
  const values = new Map(
    [...text.matchAll(/conf\/([^/\n]+)\/rp_filter:(\d)/g)].map(([, name = '', value]) => [
      name,
      Number(value),
    ]),
  );
  const ofAll = values.get('all') ?? 0;
  const strict = [...values].flatMap(([name, value]) =>
    Math.max(value, ofAll) === 1 && !['all', 'default', 'lo'].includes(name) ? [name] : [],
  );
  if (strict.length === 0) return [];
  const detail = `strict on ${strict.join(', ')}: packets of clients and members that come in by another interface than the route back to them are dropped; if there are any, set net.ipv4.conf.INTERFACE.rp_filter to 2`;
  return [good('reverse path filter', detail)];
}
