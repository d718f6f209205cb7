// The elements of the kernel's maps and sets that make a listener, and the difference between two versions of it: an endpoint
// change touches only the slots that move. templates/nftables/table.mustache has the maps and the rules that read them. Pure.

import type { Family, Member, Protocol } from '../model/load-balancer.ts';
import type { KernelListener } from './kernel-listener.ts';

/** A destination of packets. */
export interface Place {
  readonly family: Family;
  readonly address: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export type Element =
  /** The chain that chooses a slot for new flows to the place. */
  | {
      readonly map: 'choices';
      readonly place: Place;
      readonly by: KernelListener['by'];
      readonly size: number;
    }
  | { readonly map: 'slots'; readonly place: Place; readonly slot: number; readonly member: Member }
  /** New flows to the place are refused. */
  | { readonly map: 'refused'; readonly place: Place }
  /** Only clients in `allowed` reach the place. */
  | { readonly map: 'guarded'; readonly place: Place }
  | { readonly map: 'allowed'; readonly place: Place; readonly client: string }
  /** New flows to the place count for the listener. */
  | { readonly map: 'counters'; readonly place: Place; readonly listener: string }
  /** The address from which members get the packets of clients to a VIP. */
  | { readonly map: 'sources'; readonly vip: string; readonly source: string }
  /** A source address that moves between the hosts of a pair. */
  | { readonly map: 'anchors'; readonly address: string };

/** The counter of a listener, for all of its places. */
export interface Counter {
  readonly family: Family;
  readonly listener: string;
}

export interface ElementChange {
  readonly removed: readonly Element[];
  readonly added: readonly Element[];
  readonly removedCounters: readonly Counter[];
  readonly addedCounters: readonly Counter[];
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
  return {
    removed,
    added,
    removedCounters: before !== undefined && after === undefined ? [counterOf(before)] : [],
    addedCounters: before === undefined && after !== undefined ? [counterOf(after)] : [],
  };
}

/** All elements of a listener but its slots, by a text that differs for different elements. */
function fewOf(listener: KernelListener | undefined, address: string): ReadonlyMap<string, Element> {
  const elements = new Map<string, Element>();
  if (listener === undefined) return elements;
  const { name, by, slots, clients } = listener;
  const place = placeOf(listener, address);
  const put = (element: Element, text = ''): void => void elements.set(`${element.map} ${text}`, element);
  put({ map: 'counters', place, listener: name }, name);
  if (slots.length === 0) put({ map: 'refused', place });
  else put({ map: 'choices', place, by, size: slots.length }, `${by} ${slots.length}`);
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
  const [was, is] = [before?.slots ?? [], after?.slots ?? []];
  for (let slot = 0; slot < Math.max(was.length, is.length); slot++) {
    const [old, now] = [was[slot], is[slot]];
    if (old?.address === now?.address && old?.port === now?.port) continue;
    if (before !== undefined && old !== undefined)
      removed.push({ map: 'slots', place: placeOf(before, address), slot, member: old });
    if (after !== undefined && now !== undefined)
      added.push({ map: 'slots', place: placeOf(after, address), slot, member: now });
  }
}

function counterOf({ family, name }: KernelListener): Counter {
  return { family, listener: name };
}

function placeOf({ family, protocol, port }: KernelListener, address: string): Place {
  return { family, address, protocol, port };
}
