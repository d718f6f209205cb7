// The anchors of the setting `hosts`: source addresses of a host's packets to members, which every host announces, so that routers
// lead members' packets to the next host when one is dead. Pure.

import type { HostGroup, LbHost } from '../model/host-group.ts';
import type { SourceGroups } from '../model/source-groups.ts';

/** A route to an anchor, and how far this host is from the host that has it: 0 for its own. */
export interface AnchorRoute {
  readonly address: string;
  readonly rank: number;
}

/** By the place in the setting `hosts`, which is the same on every host. */
export function groupIdOf({ hosts }: HostGroup, name: string): number {
  return 1 + hosts.findIndex((host) => host.name === name);
}

export function hostAnchors(group: HostGroup): SourceGroups {
  const { self, hosts } = group;
  const groups = hosts.flatMap(({ name, anchors: addresses }) =>
    addresses.length === 0 ? [] : [{ id: groupIdOf(group, name), addresses }],
  );
  const own = groupIdOf(group, self.name);
  const has = (vip: string): boolean => self.anchors.some((each) => each.includes(':') === vip.includes(':'));
  return { groups, areAdopted: groups.length > 1, groupOf: (vip) => (has(vip) ? own : 0) };
}

/** The route to a host's anchor is better the fewer hosts are between: the next living one after a dead host has the best. */
export function anchorRoutes(group: HostGroup | undefined, isReady: boolean): readonly AnchorRoute[] {
  if (group === undefined) return [];
  const { self, hosts } = group;
  const at = hosts.findIndex(({ name }) => name === self.name);
  // A host that joins leads packets of connections that others have taken over to itself only when it can pass them on.
  const rankOf = (host: number): number =>
    host === at && !isReady ? hosts.length : (at - host + hosts.length) % hosts.length;
  return hosts.flatMap(({ anchors }, host) => anchors.map((address) => ({ address, rank: rankOf(host) })));
}

/** The first host after a dead one, in the order of the setting, that lives. */
export function heirOf({ hosts }: HostGroup, dead: string, living: ReadonlySet<string>): LbHost | undefined {
  const at = hosts.findIndex(({ name }) => name === dead);
  return [...hosts.slice(at + 1), ...hosts.slice(0, at)].find(({ name }) => living.has(name));
}
