// What a text of ours has keepalived do, read back from the text itself: the one that is in force may be older than the
// settings. Pure.

/** One instance, as the file has it. */
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

/** The addresses that a text has keepalived hold, anchors and VIPs, by instance. */
export function addressesIn(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map([...instancesIn(text)].map(([name, { addresses }]) => [name, addresses]));
}

/** Every address that a text has keepalived hold. */
export function heldIn(text: string): ReadonlySet<string> {
  return new Set([...instancesIn(text).values()].flatMap(({ addresses }) => [...addresses]));
}

/** A text without its VIPs: all that only the settings decide. */
export function frameOf(text: string): string {
  return text.replaceAll(/(?<=virtual_ipaddress_excluded \{\n)(?: {4}\S+ dev \S+\n)*/g, '');
}
