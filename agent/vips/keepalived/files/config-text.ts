// Reads back a text of keepalived.conf that the agent has rendered, which may be older than the settings, and compares it
// with another text or with a running keepalived. Pure.

import type { InstanceDump } from '../process/dump.ts';

/** One instance as the text has it. */
export interface TextInstance {
  readonly priority: number;
  /** Milliseconds. */
  readonly advertInterval: number;
  /** Anchors and VIPs. */
  readonly addresses: ReadonlySet<string>;
}

/** By name. */
export function instancesIn(text: string): ReadonlyMap<string, TextInstance> {
  const all = new Map<string, { priority: number; advertInterval: number; addresses: Set<string> }>();
  let current = { priority: 0, advertInterval: 0, addresses: new Set<string>() };
  for (const line of text.split('\n')) {
    const [, name, address, priority, seconds] = LINE.exec(line) ?? [];
    if (name !== undefined) {
      current = { priority: 0, advertInterval: 0, addresses: new Set() };
      all.set(name, current);
    } else if (address !== undefined) current.addresses.add(address);
    else if (priority !== undefined) current.priority = Number(priority);
    else if (seconds !== undefined) current.advertInterval = Math.round(Number(seconds) * 1000);
  }
  return all;
}

const LINE =
  /^(?:vrrp_instance (\S+) \{|\s+([0-9a-f.:]+)\/(?:32|128) dev \S+| {2}priority (\d+)| {2}advert_int ([\d.]+))$/;

/** The addresses of each instance, anchors and VIPs, by the instance's name. */
export function addressesIn(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map([...instancesIn(text)].map(([name, { addresses }]) => [name, addresses]));
}

/** The addresses of all instances, anchors and VIPs. */
export function heldIn(text: string): ReadonlySet<string> {
  return new Set([...instancesIn(text).values()].flatMap(({ addresses }) => [...addresses]));
}

/** The text without its VIPs: the part that follows from the settings alone. */
export function frameOf(text: string): string {
  return text.replaceAll(/(?<=virtual_ipaddress_excluded \{\n)(?: {4}\S+ dev \S+\n)*/g, '');
}

export type TextChange =
  | { readonly kind: 'none' }
  /** Only VIPs are added or removed; no advertisement changes. */
  | { readonly kind: 'vips'; readonly added: readonly string[]; readonly removed: readonly string[] }
  /** There was no text, or the settings have changed. */
  | { readonly kind: 'settings' };

/** From one rendered text to another; `old` is undefined if there is none. */
export function changeOf(old: string | undefined, desired: string): TextChange {
  if (old === desired) return { kind: 'none' };
  if (old === undefined || frameOf(old) !== frameOf(desired)) return { kind: 'settings' };
  const [before, after] = [heldIn(old), heldIn(desired)];
  return {
    kind: 'vips',
    added: [...after].filter((address) => !before.has(address)),
    removed: [...before].filter((address) => !after.has(address)),
  };
}

/** The first difference between a running keepalived and a rendered text, as half a sentence; '' if there is none. */
export function differenceOf(dump: readonly InstanceDump[], text: string): string {
  const desired = instancesIn(text);
  if (dump.length !== desired.size) return `it has ${dump.length} instances instead of ${desired.size}`;
  for (const [name, { priority, advertInterval, addresses }] of desired) {
    const running = dump.find((each) => each.name === name);
    if (running === undefined) return `it has no instance ${name}`;
    if (running.basePriority !== priority || running.advertInterval !== advertInterval)
      return `${name} has another priority or interval`;
    const missing = [...addresses].filter((each) => !running.addresses.has(each));
    if (missing.length > 0) return `${name} lacks ${missing.length} addresses, ${missing[0]} for one`;
    const excess = running.addresses.size - addresses.size;
    if (excess > 0) return `${name} has ${excess} addresses too many`;
    const unset = running.state === 'master' ? addresses.size - running.set.size : 0;
    if (unset > 0) return `${unset} addresses of ${name} are not on the interface`;
  }
  return '';
}
