// Keeps the tables that pass packets of connections on to the host that has them, while other hosts live and this one has a back
// address. The tables stay when the agent ends, and as they are until it is known which hosts live.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { MetricFamily } from '../../base/metric-family.ts';
import { Rounds } from '../../base/rounds.ts';
import { serial } from '../../base/serial.ts';
import { contentOf, replaceInMemory } from '../../host/atomic-file.ts';
import type { Log } from '../../host/log.ts';
import type { HostGroup, LivingHosts } from '../../model/host-group.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { BgpPeer } from '../bgp.ts';
import { adoptionOf } from './adoption.ts';
import { type BackLink, readBackLink } from './back-link.ts';
import { DeadHosts } from './dead-hosts.ts';
import { NO_PASSED, type PassingCounts, PassingTable } from './passing-table.ts';
import { type PassingRules, renderChange, renderPassing, renderRemoval } from './render.ts';
import { ringOf } from './ring.ts';

export interface PassingOptions {
  readonly settings: { readonly nft: string; readonly netns: string; readonly table: string };
  /** Is there while the kernel has tables of this agent, or of one before it; since when hosts are dead. */
  readonly file: string;
  readonly group: () => HostGroup | undefined;
  readonly peers: () => readonly BgpPeer[];
  readonly living: PassingHosts;
  /** isSettled has changed. */
  readonly onSettled: () => void;
  readonly log: Log;
  readonly clock?: Clock;
}

/** Which other hosts live, and which of them pass nothing to this one. */
export interface PassingHosts extends LivingHosts {
  /** Hosts with another setting `hosts`, which number hosts otherwise: a packet between them and this one might go round forever. */
  differing(): ReadonlySet<string>;
}

const ROUND_MS = 10_000;
/** Other hosts are found within this time after the start, or after all of them were lost. */
const SETTLE_MS = 6_000;

type Wanted = Pick<PassingRules, 'ring' | 'device' | 'isLoose' | 'next' | 'adoption'>;

interface Loaded {
  readonly key: string;
  readonly next: string;
  readonly families: readonly ('ip' | 'ip6')[];
  readonly vips: ReadonlySet<string>;
}

export class Passing {
  readonly #options: PassingOptions;
  readonly #clock: Clock;
  readonly #table: PassingTable;
  readonly #rounds: Rounds;
  readonly #turns = serial();
  readonly #dead: DeadHosts;
  #vips: ReadonlySet<string> = new Set();
  #loaded: Loaded | undefined;
  #link: BackLink | undefined;
  #knowsSockets: boolean | undefined;
  #fault = '';
  /** The counts of tables before the one that is loaded, and those of that one. */
  #before = NO_PASSED;
  #now = NO_PASSED;
  #aloneSince: number | undefined;
  #cancelAlone: (() => void) | undefined;
  #unfollow: (() => void) | undefined;
  /** The hosts that the ring leaves out for their other setting `hosts`. */
  #differing = '';
  #isSettled = false;
  #isOpen = false;

  constructor(options: PassingOptions) {
    const { settings, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#dead = new DeadHosts(clock);
    this.#table = new PassingTable(settings.nft, settings.netns, settings.table);
    this.#rounds = new Rounds({
      intervalMs: () => ROUND_MS,
      work: () => this.#turns.run(() => this.#round()),
      onFailed: (error) => this.#failed(error),
      clock,
    });
  }

  async start(): Promise<void> {
    this.#dead.restore((await contentOf(this.#options.file)) ?? '');
    this.#isOpen = true;
    this.#unfollow = this.#options.living.follow(() => void this.renew());
    this.#rounds.start();
    void this.renew();
  }

  /** The tables stay. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#unfollow?.();
    this.#cancelAlone?.();
    this.#rounds.close();
    await this.#turns.idle();
  }

  /** After close(): removes the tables. Never rejects. */
  stop(): Promise<void> {
    return this.#turns.run(() => this.#remove()).catch((error) => this.#failed(error));
  }

  /** Living hosts or the setting `hosts` may have changed. Never rejects. */
  renew(): Promise<void> {
    return this.#turns.run(() => this.#renew()).catch((error) => this.#failed(error));
  }

  /** Called each second. */
  differingMayHaveChanged(): void {
    if (textOf(this.#options.living.differing()) !== this.#differing) void this.renew();
  }

  /** Before the route of a new VIP, and after that of one that is gone. Never rejects: an error is a fault, and is retried. */
  setVips(vips: ReadonlySet<string>): Promise<void> {
    this.#vips = vips;
    return this.#turns.run(() => this.#changeVips()).catch((error) => this.#failed(error));
  }

  /** Every host is known, or none but this one has been found for a while: before that, packets would be lost here. */
  get isSettled(): boolean {
    return this.#isSettled || !this.#isAsked;
  }

  problems(): readonly Problem[] {
    if (!this.#isAsked) return [];
    const faults = (this.#link?.findings ?? [])
      .filter(({ ok }) => !ok)
      .map(({ what, detail }) => `${what}: ${detail}`);
    return [...faults, ...(this.#fault === '' ? [] : [this.#fault])].map((message) => ({
      object: 'back network',
      reason: 'PassingFaulty',
      message: `Open connections may end when the set of hosts changes: ${message}`,
    }));
  }

  /** The next living host, '' while nothing is passed on; packets since the start. */
  status(): { readonly next: string } & PassingCounts {
    return { next: this.#loaded?.next ?? '', ...this.#counts };
  }

  families(): readonly MetricFamily[] {
    if (!this.#isAsked) return [];
    const { passed, adopted, strays, limited } = this.#counts;
    return [
      counter(
        'headgate_passing_packets_total',
        'Packets passed on to the next host, whose connections this host does not have',
        passed,
      ),
      counter(
        'headgate_passing_adopted_total',
        'Connections of dead hosts that this host has taken over',
        adopted,
      ),
      counter('headgate_passing_strays_total', 'Packets of VIPs whose connection no living host has', strays),
      counter(
        'headgate_passing_limited_total',
        'Packets dropped because too many came at once that no host may have',
        limited,
      ),
    ];
  }

  get #counts(): PassingCounts {
    return sum(this.#before, this.#now);
  }

  get #isAsked(): boolean {
    const group = this.#options.group();
    return group !== undefined && group.hosts.length > 1 && group.self.back.length > 0;
  }

  async #round(): Promise<void> {
    if (!this.#isOpen) return;
    await this.#readLink();
    if (this.#loaded !== undefined) {
      const counts = await this.#table.counts(this.#loaded.families);
      if (counts === undefined) {
        this.#options.log.warn('Another process has removed the rules of passing: loaded again');
        this.#loaded = undefined;
      } else this.#now = counts;
    }
    await this.#renew();
  }

  async #renew(): Promise<void> {
    if (!this.#isOpen) return;
    const group = this.#options.group();
    if (group === undefined || !this.#isAsked) {
      await this.#remove();
      return;
    }
    const living = this.#options.living.living();
    const differing = this.#options.living.differing();
    this.#differing = textOf(differing);
    const ring = ringOf(group, new Set([...living].filter((name) => !differing.has(name))));
    if (this.#dead.follow(group, living) && existsSync(this.#options.file))
      replaceInMemory(this.#options.file, this.#dead.text(), 0o600);
    const adoption = adoptionOf(group, living, this.#dead.ages());
    if (ring === undefined || ring.next === '') {
      this.#aloneSince ??= this.#clock.monotonic();
      if (differing.size === 0 && this.#clock.monotonic() - this.#aloneSince < SETTLE_MS) {
        this.#lookLater();
      } else {
        this.#settle();
        if (adoption.last === 0) await this.#remove();
      }
      if (ring === undefined || adoption.last === 0) return;
    } else this.#aloneSince = undefined;
    if (this.#link === undefined || this.#link.device === '') await this.#readLink();
    const { device, isLoose } = this.#link ?? { device: '', isLoose: true };
    const next = group.hosts.find(({ name }) => name === ring.next) ?? group.self;
    if (device === '') {
      this.#settle();
      await this.#remove();
      return;
    }
    await this.#load({ ring, device, isLoose, next: next.back, adoption });
    if (group.hosts.every(({ name }) => living.has(name))) this.#settle();
    else if (!this.#isSettled) this.#lookLater();
    this.#recovered();
  }

  async #load(wanted: Wanted): Promise<void> {
    this.#knowsSockets ??= await this.#table.findsSockets();
    const { ring, device, next, adoption } = wanted;
    const key = JSON.stringify(wanted);
    if (this.#loaded?.key === key) return;
    const vips = new Set(this.#vips);
    await this.#keepCounts();
    const rules = { ...wanted, table: this.#table.name, vips, knowsSockets: this.#knowsSockets };
    replaceInMemory(this.#options.file, this.#dead.text(), 0o600);
    // Tables of another version may have other sets.
    await this.#table.load(renderPassing(rules)).catch(() => this.#table.load(renderPassing(rules, true)));
    const families = (['ip', 'ip6'] as const).filter((family) =>
      next.some((each) => each.includes(':') === (family === 'ip6')),
    );
    this.#loaded = { key, next: ring.next, families, vips };
    this.#recovered();
    const { hosts = [] } = this.#options.group() ?? {};
    const heir = adoption.heir.length === 0 ? 'this host' : adoption.heir.join(', ');
    this.#options.log.info('Open connections of other hosts are passed on', {
      next: ring.next || 'none',
      device,
      ...(adoption.last > 0 && { dead: hosts[adoption.last - 1]?.name ?? '', heir }),
    });
  }

  async #changeVips(): Promise<void> {
    const loaded = this.#loaded;
    if (loaded === undefined) return;
    const vips = new Set(this.#vips);
    const has = (address: string): boolean => loaded.families.includes(address.includes(':') ? 'ip6' : 'ip');
    const added = [...vips].filter((each) => !loaded.vips.has(each) && has(each));
    const removed = [...loaded.vips].filter((each) => !vips.has(each) && has(each));
    const text = renderChange(this.#table.name, added, removed);
    if (text === '') return;
    try {
      await this.#table.load(text);
    } catch (error) {
      // The next round loads all.
      this.#loaded = undefined;
      throw error;
    }
    this.#loaded = { ...loaded, vips };
  }

  async #remove(): Promise<void> {
    if (this.#loaded === undefined && !existsSync(this.#options.file)) return;
    await this.#keepCounts();
    await this.#table.load(renderRemoval(this.#table.name));
    await rm(this.#options.file, { force: true });
    if (this.#loaded !== undefined)
      this.#options.log.info('No other host lives: open connections of others are not passed on');
    this.#loaded = undefined;
    this.#recovered();
  }

  /** A new table begins at 0. */
  async #keepCounts(): Promise<void> {
    if (this.#loaded === undefined) return;
    this.#before = sum(this.#before, (await this.#table.counts(this.#loaded.families)) ?? this.#now);
    this.#now = NO_PASSED;
  }

  async #readLink(): Promise<void> {
    const { settings, group, peers } = this.#options;
    const now = group();
    if (now === undefined || now.self.back.length === 0) return;
    this.#link = await readBackLink(settings.netns, now, peers());
  }

  #lookLater(): void {
    this.#cancelAlone?.();
    this.#cancelAlone = this.#clock.after(SETTLE_MS, () => {
      if (!this.#isSettled && this.#aloneSince === undefined) this.#settle();
      void this.renew();
    });
  }

  #settle(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#options.onSettled();
  }

  #failed(error: unknown): void {
    const message = messageOf(error);
    if (message !== this.#fault)
      this.#options.log.error('Cannot pass on open connections', { error: message });
    this.#fault = message;
    this.#settle();
  }

  #recovered(): void {
    if (this.#fault === '') return;
    this.#fault = '';
    this.#options.log.info('Open connections can be passed on again');
  }
}

function sum(one: PassingCounts, other: PassingCounts): PassingCounts {
  return {
    passed: one.passed + other.passed,
    adopted: one.adopted + other.adopted,
    strays: one.strays + other.strays,
    limited: one.limited + other.limited,
  };
}

function textOf(names: ReadonlySet<string>): string {
  return [...names].sort().join();
}

function counter(name: string, help: string, value: number): MetricFamily {
  return { name, type: 'counter', help, parts: [{ labels: '', rows: [{ labels: '' }], value: () => value }] };
}
