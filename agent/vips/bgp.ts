// VIPs on BGP: the settings, and what the announcer reports. Types only.

import type { Family, Problem } from '../model/load-balancer.ts';
import type { Announcer, AnnouncerStatus } from './announcer.ts';

export interface BfdSettings {
  /** Milliseconds between two packets. */
  readonly interval: number;
  /** The session is down after so many missing packets. */
  readonly multiplier: number;
}

/** A field of a Secret in the agents' namespace. */
export interface SecretField {
  readonly name: string;
  readonly key: string;
}

/** A router that gets this host's routes. */
export interface BgpPeer {
  /** Lower-case letters, digits and dashes. */
  readonly name: string;
  readonly address: string;
  /** The interface of a link-local address; '' for any other. */
  readonly interface: string;
  /** This host's address of the session; '' for that of the way to the peer. */
  readonly source: string;
  /** Where this host takes connections of the router at `source`; 179 for all its addresses. */
  readonly localPort: number;
  readonly asn: number;
  readonly port: number;
  readonly families: readonly Family[];
  /** '' for no password, or one of a Secret. */
  readonly passwordFile: string;
  /** What a BGPPeer has besides: the Secret of its password; undefined for a peer of the settings. */
  readonly object?: { readonly secret: SecretField | undefined } | undefined;
  /** At most so many hops away; 0 for a peer on the same network. */
  readonly multihop: number;
  readonly ttlSecurity: boolean;
  /** undefined for none. */
  readonly bfd: BfdSettings | undefined;
  /** `65001:100` */
  readonly communities: readonly string[];
  /** `65001:1:2` */
  readonly largeCommunities: readonly string[];
  /** The preference of routes to a peer of the same AS; undefined for the default. */
  readonly localPreference: number | undefined;
  /** How often this host's ASN stands in the path besides once. */
  readonly prepends: number;
}

export interface BgpSettings {
  readonly asn: number;
  /** An IPv4 address. */
  readonly routerId: string;
  /** Milliseconds without a message after which a session ends. */
  readonly holdTime: number;
  /** A peer gets at most so many routes of a family. */
  readonly routeLimit: number;
  /** A VIP all of whose members are down is announced, so that clients get a refusal, or is not. */
  readonly withoutMembers: 'announce' | 'withdraw';
  readonly peers: readonly BgpPeer[];
  /** Patterns of the networks that may leave besides VIPs: `198.51.100.0/22{24,24}`. */
  readonly aggregates: readonly string[];
}

/** How a VIP is announced, by its pool. */
export interface VipRoute {
  /** Why this host does not announce it, as a sentence; '' if it may. */
  readonly whyNot: string;
  /** Names of the peers that get it; empty for all. */
  readonly peers: readonly string[];
  readonly communities: readonly string[];
  readonly largeCommunities: readonly string[];
  readonly localPreference: number | undefined;
  /** `198.51.100.0/24`: announced while a VIP inside is; '' for none. */
  readonly aggregate: string;
}

/** `first`: routers prefer it. `last`: routers send no traffic here as long as another host announces the VIP. */
export type Worn = 'first' | 'last';

/** How a host announces a VIP; the texts are short. */
export interface VipAnnouncement {
  readonly address: string;
  readonly worn: Worn | 'none';
  /** How many routers have it of this host, of how many. */
  readonly count: number;
  readonly of: number;
  /** Their names. */
  readonly routers: string;
  /** Why it is not announced as the first choice; '' if it is. */
  readonly why: string;
}

/** The session with a router, as BIRD reports it. */
export interface BgpSession {
  readonly peer: string;
  readonly address: string;
  readonly asn: number;
  /** `Established`, `Idle`, `Active`, `Connect`, `OpenSent`, `OpenConfirm`; '' if BIRD does not have it. */
  readonly state: string;
  /** The time of the last change of state, ISO 8601; '' if it is not known. */
  readonly since: string;
  /** Why it is not established, in words; '' if it is. */
  readonly why: string;
  /** Routes that the router has of this host, by family. */
  readonly routes: Readonly<Record<Family, number>>;
  /** The state of BFD, `Up` or `Down`; '' without BFD. */
  readonly bfd: string;
}

export interface BgpStatus extends AnnouncerStatus {
  /** The version of BIRD; '' if it is not known yet. */
  readonly version: string;
  /** 0 if BIRD does not run. */
  readonly pid: number;
  readonly asn: number;
  readonly sessions: readonly BgpSession[];
  /** VIPs by how their routes are worn; `withheld`: not announced. */
  readonly vips: { readonly first: number; readonly last: number; readonly withheld: number };
  /** VIPs that it announces and no router has. */
  readonly unreached: number;
  /** To which host packets of others' connections are passed on, '' for none; packets since the start. */
  readonly passing: {
    readonly next: string;
    readonly passed: number;
    /** Connections of dead hosts that this host has taken over. */
    readonly adopted: number;
    readonly strays: number;
    readonly limited: number;
  };
  /** What of this host is not as BGP needs it, with the remedy. */
  readonly unready: readonly { readonly what: string; readonly detail: string }[];
}

/** An announcer that leads clients here by routes. */
export interface BgpAnnouncer extends Announcer<BgpStatus> {
  /** What is wrong with the sessions with routers. */
  problems(): readonly Problem[];
  /** Which routers have a VIP of this host, or why none has it, as a sentence. */
  announced(address: string): string;
}
