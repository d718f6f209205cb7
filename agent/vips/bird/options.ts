// What the announcer with BIRD is given. Types only.

import type { Log } from '../../host/log.ts';
import type { HostGroup } from '../../model/host-group.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import type { BgpSettings, VipRoute } from '../bgp.ts';
import type { ReadSecret } from './passwords.ts';

export interface BirdSettings {
  readonly runtimeDir: string;
  readonly bird: string;
  readonly nft: string;
  /** The table of nftables for packets that are passed on. */
  readonly passingTable: string;
  /** `external`: another program, such as systemd, starts and restarts BIRD. */
  readonly birdSupervisor: 'agent' | 'external';
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  /** Changes by configure(); the other settings are fixed. */
  readonly bgp: BgpSettings;
}

/** What this host knows of a VIP besides its load balancers. */
export interface VipFacts {
  /** As of Dataplane. */
  readonly serves: (listener: string, address: string) => boolean;
  /** It is announced by BGP, if by anything. */
  readonly isRouted: (address: string) => boolean;
  /** undefined if no pool says anything of it. */
  readonly routeSpec: (address: string) => VipRoute | undefined;
  /** False if none of the members of a load balancer can be reached. */
  readonly hasMembers: (owner: OwnerKey) => boolean;
}

export interface BirdOptions {
  readonly settings: BirdSettings;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** The hosts that serve the same VIPs; undefined if this host knows no other. */
  readonly group: () => HostGroup | undefined;
  readonly hosts: HostsByLink;
  readonly vips: VipFacts;
  readonly peers: PeerFacts;
  /** problemsOf() of these load balancers has changed. */
  readonly onChanged: (keys: Iterable<OwnerKey>) => void;
  readonly log: Log;
}

/** What this host knows of BGPPeers besides those that are its peers. */
export interface PeerFacts {
  /** False: there may be more than the agent knows. */
  readonly areRead: () => boolean;
  readonly secret: ReadSecret;
  /** BGPPeers that this host cannot use. */
  readonly problems: () => readonly Problem[];
}

/** What the links know of the other hosts, and what they are told. */
export interface HostsByLink {
  /** Another host announces every VIP that this one has: none is unreachable if only this host's routers lack it. */
  readonly isAnnouncedElsewhere: () => boolean;
  /** As of HostBfdOptions. */
  readonly blind: () => ReadonlySet<string>;
  readonly onBlind: () => void;
  /** Hosts with another setting `hosts` than this one. */
  readonly differing: () => ReadonlySet<string>;
}
