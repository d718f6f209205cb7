// The elements that several listeners need: the source of a VIP, members, and those that see the addresses of clients. Remembers
// who needs each, so that a change of one listener costs no more than its own elements.

import { sameValue } from '../../base/same-value.ts';
import type { SourceGroups } from '../../model/source-groups.ts';
import type { Element, ElementChange } from './elements.ts';
import { isDirect, type KernelListener, type ListenerChange } from './kernel-listener.ts';

interface Need {
  /** The key of the element; the same for all who need it. */
  readonly key: string;
  readonly user: string;
  readonly element: Element;
}

export class SharedElements {
  readonly #groupOf: SourceGroups['groupOf'];
  /** By the key of the element, then by user. */
  readonly #needs = new Map<string, Map<string, Element>>();

  constructor(groupOf: SourceGroups['groupOf']) {
    this.#groupOf = groupOf;
  }

  /** Takes the changes over, and gives what changes in the kernel with them. */
  change(changes: readonly ListenerChange[]): ElementChange {
    const before = new Map<string, Element | undefined>();
    const needsOf = (key: string): Map<string, Element> => {
      const needs = this.#needs.get(key) ?? new Map<string, Element>();
      if (!before.has(key)) before.set(key, elementOf(needs));
      this.#needs.set(key, needs);
      return needs;
    };
    for (const each of changes) for (const { key, user } of this.#of(each.before)) needsOf(key).delete(user);
    for (const each of changes)
      for (const { key, user, element } of this.#of(each.after)) needsOf(key).set(user, element);
    const [removed, added]: [Element[], Element[]] = [[], []];
    for (const [key, was] of before) {
      const needs = needsOf(key);
      const now = elementOf(needs);
      if (needs.size === 0) this.#needs.delete(key);
      if (sameValue(was, now)) continue;
      if (was !== undefined) removed.push(was);
      if (now !== undefined) added.push(now);
    }
    return { removed, added };
  }

  *#of(listener: KernelListener | undefined): Generator<Need> {
    if (listener === undefined || isDirect(listener)) return;
    const { name, family, protocol, port, addresses, members, sourceAddress } = listener;
    for (const { address, port, name: member } of members) {
      const place = { family, address, protocol, port };
      yield { key: `endpoint ${protocol} ${member}`, user: name, element: { map: 'endpoints', place } };
    }
    for (const vip of addresses) {
      const group = this.#groupOf(vip);
      if (group !== 0) yield { key: `source ${vip}`, user: name, element: { map: 'sources', vip, group } };
      if (sourceAddress !== 'client') continue;
      const place = { family, address: vip, protocol, port };
      for (const member of members) {
        const user = `${name} ${vip} ${member.name}`;
        const { address } = member;
        yield { key: `neighbour ${address}`, user, element: { map: 'neighbours', address } };
        if (protocol === 'TCP')
          yield { key: `answer ${member.name}`, user, element: { map: 'answers', member, place } };
      }
    }
  }
}

/**
 * undefined if there is no need. `unclear`: several ports of VIPs lead to the member's port, so that its replies cannot be
 * attributed.
 */
function elementOf(needs: ReadonlyMap<string, Element>): Element | undefined {
  const [first, second] = needs.values();
  if (first?.map === 'answers' && second !== undefined) return { map: 'unclear', member: first.member };
  return first;
}
