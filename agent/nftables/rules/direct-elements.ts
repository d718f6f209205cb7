// The elements of a listener whose members are direct (templates/nftables/direct.mustache): which member each slot has, and
// which members keep the flows that they have. Pure.
// Why: docs/design/decisions/0095-direct-server-return.md

import type { Member } from '../../model/load-balancer.ts';
import { membersByNumber } from './affinity.ts';
import type { KernelListener } from './kernel-listener.ts';
import type { Place } from './place.ts';

export type DirectElement =
  /** The chain that chooses a slot, for packets of clients or for errors of ICMP about packets to them. */
  | {
      readonly map: 'direct-choices' | 'direct-errors';
      readonly place: Place;
      readonly by: KernelListener['by'];
      readonly size: number;
      readonly prefix?: number | undefined;
      /** Only clients in `direct-allowed` reach the place; never for errors. */
      readonly isGuarded: boolean;
    }
  /** From a slot to the number of its member. */
  | { readonly map: 'direct-shares'; readonly place: Place; readonly from: number; readonly to: number }
  /** The member of a slot, for errors of ICMP. */
  | {
      readonly map: 'direct-error-slots';
      readonly place: Place;
      readonly slot: number;
      readonly member: Member;
    }
  /** The member of a number, also of one that only keeps its flows. */
  | {
      readonly map: 'direct-members';
      readonly place: Place;
      readonly number: number;
      readonly member: Member;
    }
  /** The number of a member with slots. */
  | { readonly map: 'direct-ready'; readonly place: Place; readonly number: number }
  | { readonly map: 'direct-allowed'; readonly place: Place; readonly client: string };

/** By a text that differs for different elements. */
export function directElements(listener: KernelListener, place: Place): ReadonlyMap<string, DirectElement> {
  const { by, prefix, slots, clients } = listener;
  const elements = new Map<string, DirectElement>();
  const put = (element: DirectElement, text = ''): void =>
    void elements.set(`${element.map} ${text}`, element);
  if (slots.length === 0) return elements;
  const size = slots.length;
  const isGuarded = clients !== undefined;
  const choice = `${by} ${size} ${prefix}`;
  put({ map: 'direct-choices', place, by, size, prefix, isGuarded }, `${choice} ${isGuarded}`);
  put({ map: 'direct-errors', place, by, size, prefix, isGuarded: false }, choice);
  const ready = new Set(slots);
  const members = membersByNumber([...slots, ...keeping(listener)]);
  const numbers = new Map(Array.from(members, ([number, member]) => [member, number]));
  for (const [number, member] of members) {
    put({ map: 'direct-members', place, number, member }, `${number} ${member.name}`);
    if (ready.has(member)) put({ map: 'direct-ready', place, number }, String(number));
  }
  for (const [slot, member] of slots.entries()) {
    const to = numbers.get(member) ?? 0;
    put({ map: 'direct-shares', place, from: slot, to }, `${slot} ${to}`);
    put({ map: 'direct-error-slots', place, slot, member }, `${slot} ${member.name}`);
  }
  for (const client of clients ?? []) put({ map: 'direct-allowed', place, client }, client);
  return elements;
}

/** Flows of UDP leave a member that fails its checks, because their clients may never pause. */
function keeping({ protocol, members, down }: KernelListener): readonly Member[] {
  return members.filter(({ name }) => protocol !== 'UDP' || !down.includes(name));
}
