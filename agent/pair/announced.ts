// Whether the host that has the VIPs of a new load balancer serves it: clients rely on an address that is published, and the
// agent that publishes it may be that of the other host. Each host names in its report what it has begun to serve at its VIPs.
// Owns a timer, which runs while something is waited for.
// Why: docs/design/decisions/0079-published-when-announced.md

import { hash } from 'node:crypto';
import { type Clock, systemClock } from '../base/clock.ts';
import type { LoadBalancer, OwnerKey } from '../model/load-balancer.ts';
import { isActive, type Roles } from './roles.ts';

export interface AnnouncedOptions {
  /** The desired state by key. */
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** As of DataplaneFacts. */
  readonly served: (key: OwnerKey) => LoadBalancer | 'pending' | undefined;
  readonly vrrp: AnnouncingVrrp;
  /** undefined without a recent report. */
  readonly peer: () =>
    | { readonly roles: Roles; readonly announced: readonly string[]; readonly unannounced: number }
    | undefined;
  /** The peer serves what this host does, this load balancer included. */
  readonly isServedAlike: (key: OwnerKey) => boolean;
  /** VIPs are about to move, of which a new one is none: connections to it would be cut. */
  readonly isMoving: () => boolean;
  readonly hooks: AnnouncedHooks;
  readonly clock?: Clock;
}

export interface AnnouncingVrrp {
  readonly roles: () => Roles;
  /** VRRP has the address, and is its master here. */
  readonly holds: (address: string) => boolean;
  /** VRRP cannot have all of its addresses. */
  readonly isRefused: (loadBalancer: LoadBalancer) => boolean;
}

export interface AnnouncedHooks {
  /** The report of this host has changed. */
  readonly onReport: () => void;
  /** The addresses of these load balancers may be published now. */
  readonly onAnnounced: (keys: readonly OwnerKey[]) => void;
}

const LOOK_EVERY_MS = 100;
/** A host that cannot say what it serves keeps no address back forever. */
export const MOST_WAIT_MS = 30_000;
/** In one report. */
const MOST_NAMED = 24;
const MOST_SEEN = 1_000;

export class Announced {
  readonly #options: AnnouncedOptions;
  readonly #clock: Clock;
  /** Key → its addresses, as text. */
  readonly #known = new Map<OwnerKey, string>();
  /** New here, and not served at VIPs of this host yet: key → since when. */
  readonly #open = new Map<OwnerKey, number>();
  /** Not to be published yet: key → since when. */
  readonly #waiting = new Map<OwnerKey, number>();
  readonly #published = new Set<OwnerKey>();
  #named: readonly string[] = [];
  /** What the peer has named, the oldest first. */
  readonly #ofPeer = new Set<string>();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: AnnouncedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** For the report: what this host has begun to serve at its VIPs, the newest last. */
  get named(): readonly string[] {
    return this.#named;
  }

  /** For the report: how many are new here, and not served at VIPs of this host yet. */
  get open(): number {
    return this.#open.size;
  }

  /** The addresses may be published, or are: asked again for these keys after onAnnounced(). */
  mayPublish(key: OwnerKey, isPublished: boolean): boolean {
    if (this.#published.has(key)) return true;
    const since = this.#waiting.get(key) ?? this.#clock.monotonic();
    if (!isPublished && !this.#isAnnounced(key, since)) {
      this.#waiting.set(key, since);
      this.#lookSoon();
      return false;
    }
    this.#waiting.delete(key);
    this.#notePublished(key);
    return true;
  }

  changed(keys: Iterable<OwnerKey>): void {
    const { desired } = this.#options;
    for (const key of keys) {
      const now = textOf(key, desired.get(key));
      if (now === this.#known.get(key)) continue;
      if (now === undefined) {
        for (const each of [this.#known, this.#open, this.#waiting, this.#published]) each.delete(key);
        continue;
      }
      this.#known.set(key, now);
      this.#open.set(key, this.#clock.monotonic());
      // Another address is published as a new one is.
      this.#published.delete(key);
    }
    this.look();
  }

  /** Called also when the peer's report or a role has changed. */
  look(): void {
    for (const token of this.#options.peer()?.announced ?? []) this.#ofPeer.add(token);
    for (const token of this.#ofPeer) if (this.#ofPeer.size > MOST_SEEN) this.#ofPeer.delete(token);
    this.#name();
    const now = [...this.#waiting].filter(([key, since]) => this.#isAnnounced(key, since));
    for (const [key] of now) this.#notePublished(key);
    for (const [key] of now) this.#waiting.delete(key);
    if (now.length > 0) this.#options.hooks.onAnnounced(now.map(([key]) => key));
    this.#lookSoon();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  /** Nothing is published of one that has no address yet: it waits when it gets one. */
  #notePublished(key: OwnerKey): void {
    if ((this.#options.desired.get(key)?.vips.length ?? 0) > 0) this.#published.add(key);
  }

  #lookSoon(): void {
    if (this.#isClosed || this.#open.size + this.#waiting.size === 0) return;
    this.#cancel ??= this.#clock.after(LOOK_EVERY_MS, () => {
      this.#cancel = undefined;
      this.look();
    });
  }

  #name(): void {
    const { desired, served, isMoving, hooks } = this.#options;
    const fresh: string[] = [];
    for (const [key, since] of this.#open) {
      const loadBalancer = desired.get(key);
      const isServed = loadBalancer !== undefined && served(key) === loadBalancer;
      if (isServed && this.#holdsAll(loadBalancer) && !isMoving())
        fresh.push(tokenOf(this.#known.get(key) ?? ''));
      else if (this.#clock.monotonic() < since + MOST_WAIT_MS) continue;
      this.#open.delete(key);
    }
    if (fresh.length === 0) return;
    this.#named = [...this.#named, ...fresh].slice(-MOST_NAMED);
    hooks.onReport();
  }

  #isAnnounced(key: OwnerKey, since: number): boolean {
    const { desired, vrrp, isMoving, peer: peerNow, isServedAlike } = this.#options;
    const loadBalancer = desired.get(key);
    if (loadBalancer === undefined || loadBalancer.vips.length === 0) return true;
    if (Object.keys(vrrp.roles()).length === 0 || vrrp.isRefused(loadBalancer)) return true;
    if (this.#clock.monotonic() >= since + MOST_WAIT_MS) return true;
    if (isMoving()) return false;
    if (this.#holdsAll(loadBalancer)) return true;
    const peer = peerNow();
    if (peer === undefined || !isActive(peer.roles)) return false;
    if (this.#ofPeer.has(tokenOf(textOf(key, loadBalancer) ?? ''))) return true;
    return peer.unannounced === 0 && isServedAlike(key);
  }

  #holdsAll({ vips }: LoadBalancer): boolean {
    return vips.every(({ address }) => this.#options.vrrp.holds(address));
  }
}

/** undefined without addresses. */
function textOf(key: OwnerKey, loadBalancer: LoadBalancer | undefined): string | undefined {
  if (loadBalancer === undefined || loadBalancer.vips.length === 0) return undefined;
  return [key, ...loadBalancer.vips.map(({ address }) => address)].join(' ');
}

/** Short, because a report is. */
function tokenOf(text: string): string {
  return hash('sha256', text).slice(0, 8);
}
