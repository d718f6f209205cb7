// Which flows of a place may stay, as a line for templates/nftables/flows.pl; and for which places a change of the rules makes
// that different. Pure.

import { addressNumber } from '../../base/ip-range.ts';
import type { Family, Protocol } from '../../model/load-balancer.ts';
import type { KernelListener, ListenerChange } from '../rules/kernel-listener.ts';
import type { Place } from '../rules/place.ts';

/** In hexadecimal: address, port and protocol. */
export type PlaceKey = string;

const PROTOCOLS: Readonly<Record<Protocol, string>> = { TCP: '06', UDP: '11', SCTP: '84' };
const DIGITS: Readonly<Record<Family, number>> = { v4: 8, v6: 32 };

export function placeKey({ family, address, protocol, port }: Place): PlaceKey {
  return `${endpoint(family, address, port)}${PROTOCOLS[protocol]}`;
}

export function familyOfKey(key: PlaceKey): Family {
  return key.length < DIGITS.v6 ? 'v4' : 'v6';
}

/** By the key of each of its places. */
export function keysOf(listener: KernelListener): readonly PlaceKey[] {
  return listener.addresses.map((address) => placeKey({ ...listener, address }));
}

/** undefined: the place is gone. `leaving`: endpoints of members that are gone, and still answer. */
export function orderOf(
  key: PlaceKey,
  listener: KernelListener | undefined,
  leaving: readonly string[] = [],
): string {
  if (listener === undefined) return `${key} all`;
  const { slots } = listener;
  return [key, slots.length > 0 ? 'some' : 'few', ...new Set([...keptEndpoints(listener), ...leaving])].join(
    ' ',
  );
}

/** The endpoints whose flows end with the change, in hexadecimal. */
export function goneWith({ before, after }: ListenerChange): readonly string[] {
  if (before === undefined || after === undefined) return [];
  const kept = new Set(keptEndpoints(after));
  return keptEndpoints(before).filter((each) => !kept.has(each));
}

function keptEndpoints(listener: KernelListener): readonly string[] {
  return [...keeping(listener)].map(({ address, port }) => endpoint(listener.family, address, port));
}

export interface Due {
  /** Places whose flows have no member, or which are gone. */
  readonly now: readonly PlaceKey[];
  /** Places with flows to members that are gone: when their last answers have reached the clients. */
  readonly later: readonly PlaceKey[];
}

export function dueAfter({ before, after }: ListenerChange): Due {
  const [now, later]: [PlaceKey[], PlaceKey[]] = [[], []];
  const [old, places] = [
    before === undefined ? [] : keysOf(before),
    after === undefined ? [] : keysOf(after),
  ];
  const hadMembers = before !== undefined && before.slots.length > 0;
  if (after !== undefined && after.slots.length > 0)
    now.push(...places.filter((key) => !hadMembers || !old.includes(key)));
  if (before === undefined) return { now, later };
  if (before.protocol !== 'TCP') now.push(...old.filter((key) => !places.includes(key)));
  if (after === undefined) return { now, later };
  const names = new Set(Array.from(keeping(after), ({ name }) => name));
  const isAnyGone = [...keeping(before)].some(({ name }) => !names.has(name));
  if (isAnyGone) later.push(...old.filter((key) => places.includes(key)));
  return { now, later };
}

/**
 * Members that keep their flows. One of UDP that fails its checks keeps none, because its clients may never pause; one of TCP
 * that gets no new flow keeps the established ones in any case.
 */
function* keeping({
  protocol,
  members,
  slots,
  down,
}: KernelListener): Generator<KernelListener['members'][0]> {
  const inUse = new Set(slots);
  yield* inUse;
  if (protocol === 'TCP' && slots.length > 0) return;
  for (const member of members)
    if (!inUse.has(member) && (protocol !== 'UDP' || !down.includes(member.name))) yield member;
}

function endpoint(family: Family, address: string, port: number): string {
  const digits = addressNumber(address).toString(16).padStart(DIGITS[family], '0');
  return `${digits}${port.toString(16).padStart(4, '0')}`;
}
