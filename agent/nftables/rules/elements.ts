// The elements of the kernel's maps and sets that make a listener, and the difference between two versions of it: an endpoint
// change touches only the slots that move. templates/nftables/table.mustache has the maps and the rules that read them. Pure.

import type { Member } from '../../model/load-balancer.ts';
import { CHOSEN, membersByNumber, numbersOfSlots } from './affinity.ts';
import { type DirectElement, directElements } from './direct-elements.ts';
import { isDirect, isInGatewayMode, type KernelListener } from './kernel-listener.ts';
import type { Place } from './place.ts';

export type Element =
  | DirectElement
  /** Counts packets of clients to the place, whose members are direct. */
  | { readonly map: 'passed'; readonly place: Place }
  /** A destination of the kernel path, also without a ready member. */
  | { readonly map: 'places'; readonly place: Place }
  /** A place whose members see the addresses of clients. */
  | { readonly map: 'kept'; readonly place: Place }
  /** The chain that chooses a slot for new flows to the place. */
  | {
      readonly map: 'choices';
      readonly place: Place;
      readonly by: KernelListener['by'];
      readonly size: number;
      /** `by: client`: the bits of its address that count; undefined: all. */
      readonly prefix?: number | undefined;
    }
  | { readonly map: 'slots'; readonly place: Place; readonly slot: number; readonly member: Member }
  /** With session affinity: the chain that chooses a member for clients that have none. */
  | { readonly map: 'choosers'; readonly place: Place; readonly size: number }
  /** With session affinity: from a slot to the number of its member, with CHOSEN; or from the number of a member to itself. */
  | { readonly map: 'shares'; readonly place: Place; readonly from: number; readonly to: number }
  /** With session affinity: the member of a number. */
  | { readonly map: 'members'; readonly place: Place; readonly number: number; readonly member: Member }
  /** How long a client keeps its member after a new flow to the place. */
  | { readonly map: 'timeouts'; readonly place: Place; readonly seconds: number }
  /** New flows to the place are refused. */
  | { readonly map: 'refused'; readonly place: Place }
  /** Only clients in `allowed` reach the place. */
  | { readonly map: 'guarded'; readonly place: Place }
  | { readonly map: 'allowed'; readonly place: Place; readonly client: string }
  /** Counts new flows to the place. */
  | { readonly map: 'flows'; readonly place: Place }
  /** The group of addresses from which members get the packets of clients to a VIP. */
  | { readonly map: 'sources'; readonly vip: string; readonly group: number }
  /** Counts packets of flows to the place, in one direction. */
  | { readonly map: 'traffic'; readonly place: Place; readonly direction: 'received' | 'sent' }
  /** Where packets of a member come from. */
  | { readonly map: 'endpoints'; readonly place: Place }
  /** A source address that moves between the hosts of a pair. */
  | { readonly map: 'anchors'; readonly address: string }
  /**
   * A member that sees the addresses of clients. Its own connections are masqueraded, because other members would reply to it
   * directly.
   */
  | { readonly map: 'neighbours'; readonly address: string }
  /** The place as which a member answers on connections that this host does not know yet. */
  | { readonly map: 'answers'; readonly member: Member; readonly place: Place }
  /** A member that answers as one of several places, so that it is not known which. */
  | { readonly map: 'unclear'; readonly member: Member };

/** What an element has counted. */
export interface Count {
  readonly packets: number;
  /** Bytes of the packets, with the headers of IP. */
  readonly bytes: number;
}

/** An element that counts. */
export type CountingElement = Extract<Element, { map: 'flows' | 'traffic' | 'passed' }>;

export interface Count {
  readonly packets: number;
  /** Bytes of the packets, with the headers of IP. */
  readonly bytes: number;
}

export interface ElementChange {
  readonly removed: readonly Element[];
  readonly added: readonly Element[];
}

/** undefined: there is no such listener before, or after. */
export function elementChange(
  before: KernelListener | undefined,
  after: KernelListener | undefined,
): ElementChange {
  const removed: Element[] = [];
  const added: Element[] = [];
  for (const address of new Set([...(before?.addresses ?? []), ...(after?.addresses ?? [])])) {
    const was = before?.addresses.includes(address) ? before : undefined;
    const is = after?.addresses.includes(address) ? after : undefined;
    const [old, now] = [fewOf(was, address), fewOf(is, address)];
    for (const [key, element] of old) if (!now.has(key)) removed.push(element);
    for (const [key, element] of now) if (!old.has(key)) added.push(element);
    changeSlots(was, is, address, removed, added);
  }
  return { removed, added };
}

/** The counters of one of the listener's addresses: new flows, packets from clients and packets to them. */
export function countingElements(listener: KernelListener, address: string): readonly CountingElement[] {
  const place = placeOf(listener, address);
  if (isDirect(listener))
    return [
      { map: 'flows', place },
      { map: 'passed', place },
    ];
  return [
    { map: 'flows', place },
    { map: 'traffic', place, direction: 'received' },
    { map: 'traffic', place, direction: 'sent' },
  ];
}

/** All elements of a listener but those of its slots, by a text that differs for different elements. */
function fewOf(listener: KernelListener | undefined, address: string): ReadonlyMap<string, Element> {
  const elements = new Map<string, Element>();
  if (listener === undefined) return elements;
  const { by, prefix, affinitySeconds, slots, clients } = listener;
  const place = placeOf(listener, address);
  const put = (element: Element, text = ''): void => void elements.set(`${element.map} ${text}`, element);
  for (const element of countingElements(listener, address))
    put(element, element.map === 'traffic' ? element.direction : '');
  if (isDirect(listener)) {
    if (slots.length === 0) put({ map: 'refused', place });
    for (const [text, element] of directElements(listener, place)) elements.set(text, element);
    return elements;
  }
  put({ map: 'places', place });
  if (isInGatewayMode(listener)) put({ map: 'kept', place });
  if (slots.length === 0) put({ map: 'refused', place });
  else put({ map: 'choices', place, by, size: slots.length, prefix }, `${by} ${slots.length} ${prefix}`);
  if (by === 'affinity') {
    put({ map: 'timeouts', place, seconds: affinitySeconds }, String(affinitySeconds));
    if (slots.length > 0) put({ map: 'choosers', place, size: slots.length }, String(slots.length));
    for (const [number, member] of membersByNumber(slots)) {
      put({ map: 'shares', place, from: number, to: number }, String(number));
      put({ map: 'members', place, number, member }, `${number} ${member.name}`);
    }
  }
  if (clients !== undefined) put({ map: 'guarded', place });
  for (const client of clients ?? []) put({ map: 'allowed', place, client }, client);
  return elements;
}

function changeSlots(
  before: KernelListener | undefined,
  after: KernelListener | undefined,
  address: string,
  removed: Element[],
  added: Element[],
): void {
  const [was, is] = [slotValues(before), slotValues(after)];
  for (let slot = 0; slot < Math.max(was.length, is.length); slot++) {
    if (isSameSlot(was[slot], is[slot])) continue;
    if (before !== undefined && slot < was.length) removed.push(slotOf(before, address, slot));
    if (after !== undefined && slot < is.length) added.push(slotOf(after, address, slot));
  }
}

/** With session affinity numbers of members. */
function slotValues(listener: KernelListener | undefined): readonly (Member | number)[] {
  if (listener === undefined || isDirect(listener)) return [];
  return listener.by === 'affinity' ? numbersOfSlots(listener.slots) : listener.slots;
}

function isSameSlot(a: Member | number | undefined, b: Member | number | undefined): boolean {
  if (typeof a !== 'object' || typeof b !== 'object') return a === b;
  return a.address === b.address && a.port === b.port;
}

function slotOf(listener: KernelListener, address: string, slot: number): Element {
  const place = placeOf(listener, address);
  const value = slotValues(listener)[slot];
  if (typeof value === 'number') return { map: 'shares', place, from: slot, to: value + CHOSEN };
  return { map: 'slots', place, slot, member: value as Member };
}

export function placeOf({ family, protocol, port }: KernelListener, address: string): Place {
  return { family, address, protocol, port };
}
