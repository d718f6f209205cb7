// All announcers of this host as one, as the loop, the reports and the pair have them. Each follows all VIPs and announces
// those that it can.

import type { MetricFamily } from '../base/metric-family.ts';
import type { OwnFile } from '../host/own-files.ts';
import type { HostGroup } from '../model/host-group.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import type { SourceGroups } from '../model/source-groups.ts';
import type { Announcer, StandingReason, Withheld } from './announcer.ts';
import type { BgpAnnouncer, BgpStatus } from './bgp.ts';
import { hostAnchors } from './host-anchors.ts';
import { anchorGroups, type VrrpSettings, type VrrpStatus } from './vrrp.ts';

/** By what the status calls them; undefined if this host has none of the kind. */
export interface AnnouncersOfHost {
  readonly vrrp: Announcer<VrrpStatus> | undefined;
  readonly bgp?: BgpAnnouncer | undefined;
}

/** The status has a section for each announcer. */
export interface AnnouncerSections {
  readonly vrrp: VrrpStatus | undefined;
  readonly bgp: BgpStatus | undefined;
}

export class Announcers implements Omit<Announcer, 'status'> {
  readonly #all: readonly Announcer[];
  readonly #ofHost: AnnouncersOfHost;

  constructor(ofHost: AnnouncersOfHost) {
    this.#ofHost = ofHost;
    this.#all = Object.values(ofHost).filter((each) => each !== undefined);
  }

  /** True if this host announces nothing: other programs make its VIPs reachable. */
  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  get ownFiles(): readonly OwnFile[] {
    return this.#all.flatMap((each) => each.ownFiles);
  }

  async start(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.start()));
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.close()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.stop()));
  }

  follow(keys: Iterable<string>, loadBalancers: ReadonlyMap<string, LoadBalancer>): void {
    const changed = [...keys];
    for (const each of this.#all) each.follow(changed, loadBalancers);
  }

  standing(reasons: readonly StandingReason[]): void {
    for (const each of this.#all) each.standing(reasons);
  }

  /** '' if one of them announces the address; otherwise the first reason of one that could. */
  withheld(address: string): Withheld {
    const reasons = this.#all.map((each) => each.withheld(address));
    if (reasons.includes('')) return '';
    return reasons.find((reason) => reason !== 'unwanted') ?? 'unwanted';
  }

  problemsOf(loadBalancer: Pick<LoadBalancer, 'key' | 'vips' | 'listeners'>): readonly Problem[] {
    return this.#all.flatMap((each) => each.problemsOf(loadBalancer));
  }

  families(): readonly MetricFamily[] {
    return this.#all.flatMap((each) => each.families());
  }

  /** The first fault of now, '' if there is none. */
  get fault(): string {
    return this.#all.map((each) => each.status().fault).find(Boolean) ?? '';
  }

  sections(): AnnouncerSections {
    return { vrrp: this.#ofHost.vrrp?.status(), bgp: this.#ofHost.bgp?.status() };
  }

  /** Which routers have a VIP of this host, or why none has it, as a sentence; '' without BGP. */
  announced(address: string): string {
    return this.#ofHost.bgp?.announced(address) ?? '';
  }

  /** What is wrong with the announcers themselves, not with one load balancer. */
  problems(): readonly Problem[] {
    return this.#ofHost.bgp?.problems() ?? [];
  }
}

/** The source addresses that the announcers move between the hosts; none without VRRP, and without anchors of hosts. */
export function movingSources(
  { vrrp }: { readonly vrrp: VrrpSettings | undefined },
  group: HostGroup | undefined,
): SourceGroups {
  return vrrp === undefined && group !== undefined ? hostAnchors(group) : anchorGroups(vrrp);
}
