// What the kernel has counted, read from the text of nft, which counts for each address of a listener. The sum of a listener
// never goes back, also if another process has removed counters. Pure.
// Why: docs/design/decisions/0052-elements-count.md

import { counterKey } from './command-text.ts';
import { type Count, type CountingElement, countingElements } from './elements.ts';
import type { KernelListener } from './kernel-listener.ts';

/** First packets of flows, packets from clients, packets to clients. */
export interface ListenerCounts {
  readonly flows: Count;
  readonly received: Count;
  readonly sent: Count;
}

export interface Counts {
  /** What the kernel had when it was read last, by counterKey(). */
  readonly elements: ReadonlyMap<string, Count>;
  readonly listeners: ReadonlyMap<string, ListenerCounts>;
}

const NOTHING: Count = { packets: 0, bytes: 0 };
export const NO_LISTENER_COUNTS: ListenerCounts = { flows: NOTHING, received: NOTHING, sent: NOTHING };
export const NO_COUNTS: Counts = { elements: new Map(), listeners: new Map() };

/** What `nft -n` lists: protocols and directions are numbers. */
const ELEMENT = /([0-9a-f.:]+) \. (6|17|132) \. (\d+)(?: \. ([01]))? counter packets (\d+) bytes (\d+)/g;
/** In the set `passed`. */
const PASSED = /(?<![0-9a-f.:] \. )\b(6|17|132) \. ([0-9a-f.:]+) \. (\d+) counter packets (\d+) bytes (\d+)/g;
const PROTOCOLS: Readonly<Record<string, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp' };
const DIRECTIONS: Readonly<Record<string, string>> = { 0: ' . original', 1: ' . reply' };

/** What the kernel forwards, as `address protocol port`, by the text of the sets `flows`. */
export function placesCounted(text: string): ReadonlySet<string> {
  return new Set(
    Array.from(
      text.matchAll(ELEMENT),
      ([, address, protocol = '', port]) => `${address} ${PROTOCOLS[protocol]} ${port}`,
    ),
  );
}

/** `before`, and what the counters in `text` have counted since; one that is less than before has started again from 0. */
export function newCounts(listeners: readonly KernelListener[], before: Counts, text: string): Counts {
  const found = new Map<string, Count>();
  for (const [, address, protocol = '', port, direction = '', packets, bytes] of text.matchAll(ELEMENT)) {
    const key = `${address} . ${PROTOCOLS[protocol]} . ${port}${DIRECTIONS[direction] ?? ''}`;
    found.set(key, { packets: Number(packets), bytes: Number(bytes) });
  }
  for (const [, protocol = '', address, port, packets, bytes] of text.matchAll(PASSED)) {
    const key = `${PROTOCOLS[protocol]} . ${address} . ${port}`;
    found.set(key, { packets: Number(packets), bytes: Number(bytes) });
  }
  const elements = new Map<string, Count>();
  const sums = new Map<string, ListenerCounts>();
  for (const listener of listeners) {
    const { name, addresses } = listener;
    const sum = { ...(before.listeners.get(name) ?? NO_LISTENER_COUNTS) };
    for (const element of addresses.flatMap((each) => countingElements(listener, each))) {
      const key = counterKey(element);
      const was = before.elements.get(key) ?? NOTHING;
      const now = found.get(key) ?? was;
      const kind = kindOf(element);
      elements.set(key, now);
      sum[kind] = plus(sum[kind], now.packets < was.packets ? NOTHING : was, now);
    }
    sums.set(name, sum);
  }
  return { elements, listeners: sums };
}

function kindOf(element: CountingElement): keyof ListenerCounts {
  if (element.map === 'flows') return 'flows';
  return element.map === 'passed' ? 'received' : element.direction;
}

function plus(sum: Count, before: Count, now: Count): Count {
  return { packets: sum.packets + now.packets - before.packets, bytes: sum.bytes + now.bytes - before.bytes };
}
