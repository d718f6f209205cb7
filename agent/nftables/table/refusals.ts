// Reads which members have refused packets of clients by ICMP lately, from nft's list of the set `closed`
// (templates/nftables/table.mustache). Pure.

import { memberName } from '../../model/names.ts';

/** The timeout of an element, which each refused packet renews. */
const TIMEOUT_MS = 10_000;
const ELEMENT = /([0-9a-f.:]+) \. (\d+) expires (?:(\d+)s)?(?:(\d+)ms)?/g;

/** The milliseconds since the last refusal, by the member's name. */
export function refusalsIn(text: string): ReadonlyMap<string, number> {
  const refusals = new Map<string, number>();
  for (const [, address = '', port, seconds = '0', milliseconds = '0'] of text.matchAll(ELEMENT)) {
    const leftMs = Number(seconds) * 1_000 + Number(milliseconds);
    refusals.set(memberName(address, Number(port)), TIMEOUT_MS - leftMs);
  }
  return refusals;
}
