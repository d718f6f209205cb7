// Compares the elements that the kernel has with those that it should have, by a count and a sum for each place, so that not
// all texts must be kept. The texts are those of `nft -n`: protocols, directions and marks are numbers. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import { partsOf } from './command-text.ts';
import { type Element, elementChange } from './elements.ts';
import { isInGatewayMode, type KernelListener } from './kernel-listener.ts';

interface Digest {
  readonly count: number;
  /** Of the hashes of the texts, modulo 2^32. */
  readonly sum: number;
}

/** By place: `192.0.2.1 . 17 . 53`, or the whole key of an element that has no place. */
export type Digests = Map<string, Digest>;

export interface Differences {
  /** Places that lack elements and have no others. */
  readonly lacking: ReadonlySet<string>;
  /** How many elements they lack. */
  readonly missing: number;
  /** A place with elements that it should not have; undefined if there is none. */
  readonly wrong: string | undefined;
}

const NUMBERS: Readonly<Record<string, string>> = {
  tcp: '6',
  udp: '17',
  sctp: '132',
  original: '0',
  reply: '1',
};
const MAX_PORT = 65_535;

/** `map`: ` slots`, or with the suffix of its table in front: `_counts traffic`. `text`: `key : value`, or a key. */
export function addListed(digests: Digests, map: string, text: string): void {
  const place = placeOf(text);
  const { count, sum } = digests.get(place) ?? { count: 0, sum: 0 };
  digests.set(place, { count: count + 1, sum: (sum + hashOf(`${map} ${text}`)) >>> 0 });
}

/** The same value for the same listener. */
export const digestsOf = memoByIdentity((listener: KernelListener) =>
  digestsOfElements(elementChange(undefined, listener).added),
);

export function digestsOfElements(elements: Iterable<Element>): Digests {
  const digests: Digests = new Map();
  for (const element of elements) {
    const [, map, key, value] = partsOf(element, '');
    addListed(digests, map, listed(value === '' ? key : `${key} : ${value}`));
  }
  return digests;
}

/** The places of a listener, and those of elements that it shares with others. */
export function placesOf(listener: KernelListener): readonly string[] {
  const { addresses, protocol, port, members } = listener;
  const place = (address: string, of: number): string =>
    listed(`${address} . ${protocol.toLowerCase()} . ${of}`);
  const shared = isInGatewayMode(listener) ? members : [];
  return [
    ...addresses.flatMap((each) => [place(each, port), each]),
    ...members.map((member) => place(member.address, member.port)),
    ...shared.flatMap((member) => [member.address, `${member.address} . ${member.port}`]),
  ];
}

/** `changed`: places to be left out. */
export function differences(wanted: Digests, found: Digests, changed: ReadonlySet<string>): Differences {
  const lacking = new Set<string>();
  let [missing, wrong]: [number, string | undefined] = [0, undefined];
  for (const [place, { count, sum }] of wanted) {
    const there = found.get(place) ?? { count: 0, sum: 0 };
    if (changed.has(place) || (there.count === count && there.sum === sum)) continue;
    missing += count - there.count;
    lacking.add(place);
    if (there.count >= count) wrong ??= place;
  }
  for (const place of found.keys()) if (!wanted.has(place) && !changed.has(place)) wrong ??= place;
  return { lacking, missing, wrong };
}

function placeOf(text: string): string {
  const key = text.split(' : ', 1)[0] ?? '';
  const parts = key.split(' . ');
  return parts.length < 3 ? key : parts.slice(0, 3).join(' . ');
}

/** As nft lists it: marks in hexadecimal, hosts without a prefix length. */
function listed(text: string): string {
  const parts = text.split(/( [.:] )/).map((part) => {
    if (/^\d+$/.test(part) && Number(part) > MAX_PORT)
      return `0x${Number(part).toString(16).padStart(8, '0')}`;
    return NUMBERS[part] ?? part.replace(/(?<=\..*)\/32$|(?<=:.*)\/128$/, '');
  });
  return parts.join('');
}

/** FNV-1a. */
function hashOf(text: string): number {
  let sum = 0x811c_9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x0100_0193);
  return sum >>> 0;
}
