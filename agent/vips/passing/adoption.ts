// Which host takes over connections of the kernel path that a dead host had: its heir, the next host in the order of the setting
// `hosts` that lives. A packet of a connection that no living host has is of the host that died last. Pure.

import type { HostGroup } from '../../model/host-group.ts';
import type { SourceGroup } from '../../model/source-groups.ts';
import { heirOf, hostAnchors } from '../host-anchors.ts';

export interface Adoption {
  /** The anchors of all hosts, by their places in the setting; [] if connections cannot be taken over. */
  readonly groups: readonly SourceGroup[];
  /** This host's anchors. */
  readonly own: readonly string[];
  /** The group of the host that died last; 0 if none has. */
  readonly last: number;
  /** The back addresses of its heir; [] for this host. */
  readonly heir: readonly string[];
}

export const NO_ADOPTION: Adoption = { groups: [], own: [], last: 0, heir: [] };

/** Connections of a dead host are taken over for so long: longer than a client without a keepalive of its own is silent. */
export const ADOPTION_MS = 3 * 3_600_000;

/** `deadFor`: of the hosts that do not live, in milliseconds. */
export function adoptionOf(
  group: HostGroup,
  living: ReadonlySet<string>,
  deadFor: ReadonlyMap<string, number>,
): Adoption {
  const { groups } = hostAnchors(group);
  const { self, hosts } = group;
  const [last] = hosts
    .filter(({ anchors }) => anchors.length > 0)
    .map(({ name }) => ({ name, age: living.has(name) ? ADOPTION_MS : (deadFor.get(name) ?? ADOPTION_MS) }))
    .filter(({ age }) => age < ADOPTION_MS)
    // Hosts that die at once are in the order of their names.
    .toSorted((one, other) => one.age - other.age);
  const heir = last === undefined ? undefined : heirOf(group, last.name, living);
  const id = last === undefined ? 0 : 1 + hosts.findIndex(({ name }) => name === last.name);
  const isUsed = groups.length > 1;
  return {
    groups: isUsed ? groups : [],
    own: isUsed ? self.anchors : [],
    last: isUsed ? id : 0,
    heir: heir === undefined || heir.name === self.name ? [] : heir.back,
  };
}
