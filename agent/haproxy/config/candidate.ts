// Prepares the file for the next reload or start: leaves out rejected load balancers and addresses that cannot be bound,
// and lets HAProxy check the sections that are new. Sections are independent, so that an accepted section needs no second
// check, nor one that differs from it only in names, addresses and ports.

import { writeFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { isolate } from '../../base/isolate.ts';
import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import { probeBind } from './bind-probe.ts';
import { checkConfig } from './check.ts';
import { type ConfigText, configText, inFileOrder } from './config-text.ts';
import { FormerDispatchers } from './former-dispatchers.ts';
import { hasSection, isForHaproxy, isRoutePool, shapeOf } from './listener-config.ts';
import { type Quarantine, structureOfAll } from './quarantine.ts';
import { globalValues, type RenderContext } from './render-context.ts';

export interface Candidate extends ConfigText {
  /** The load balancers in the file, by key. */
  readonly loadBalancers: ReadonlyMap<string, LoadBalancer>;
}

export interface CandidateOptions {
  readonly executable: string;
  /** The file that HAProxy checks; overwritten. */
  readonly scratchFile: string;
  readonly quarantine: Quarantine;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  /** Writes the files that haproxy.cfg names, before HAProxy reads it. Errors: FILE_WRITE. */
  readonly writeFiles: (loadBalancers: Iterable<LoadBalancer>) => Promise<void>;
  readonly binding: Binding;
  /** A part of this load balancer was left out of the file: its problems have changed. */
  readonly onRefused: (key: string) => void;
}

/** How the agent finds out which addresses HAProxy can bind. */
export interface Binding {
  /** `address port` of the active worker's listeners; undefined if unknown. */
  readonly bound: () => ReadonlySet<string> | undefined;
  /** True if HAProxy may bind low ports and the agent may not. */
  readonly ignoreAccess: boolean;
  /** False if HAProxy has another network namespace than the agent, so that only HAProxy can try an address. */
  readonly canProbe?: boolean;
}

/** Accepted shapes that are kept; most Services have the same annotations. */
const MAX_SHAPES = 256;
const NO_CULPRITS: ReadonlyMap<string, string> = new Map();

export class CandidateMaker {
  readonly #options: CandidateOptions;
  /** Key to the structure that HAProxy has accepted, with the global section in `#checkedGlobal`. */
  readonly #checked = new Map<string, string>();
  #checkedGlobal = '';
  /** Shapes of listeners that HAProxy has accepted, with the same global section; the oldest first. */
  readonly #shapes = new Set<string>();
  /** The global section that HAProxy refused last; '' after HAProxy has accepted one. */
  #refusedGlobal = '';
  readonly #formerDispatchers: FormerDispatchers;

  constructor(options: CandidateOptions, clock: Clock = systemClock) {
    this.#options = options;
    this.#formerDispatchers = new FormerDispatchers(clock);
  }

  /** The desired load balancers as far as they can be in the file now. */
  effective(desired: ReadonlyMap<string, LoadBalancer>): ReadonlyMap<string, LoadBalancer> {
    const effective = new Map<string, LoadBalancer>();
    for (const [key, loadBalancer] of desired) {
      const fit = this.#options.quarantine.effective(loadBalancer);
      if (fit !== undefined) effective.set(key, fit);
    }
    return effective;
  }

  /** True if HAProxy has accepted every section of these, or sections of pools that differ in names only. */
  isChecked(loadBalancers: ReadonlyMap<string, LoadBalancer>): boolean {
    return this.#unchecked(loadBalancers).every(
      (each) => each.listeners.every(isRoutePool) && this.#isFamiliar(each),
    );
  }

  /** True if HAProxy has refused the global section of a file with these, so that no load balancer is at fault. */
  isGlobalRefused(loadBalancers: ReadonlyMap<string, LoadBalancer>): boolean {
    return (
      this.#refusedGlobal !== '' && globalValues(this.#options.context(loadBalancers)) === this.#refusedGlobal
    );
  }

  /** HAProxy does not start with the global section of a file with these. */
  globalRefused(loadBalancers: ReadonlyMap<string, LoadBalancer>): void {
    this.#refusedGlobal = globalValues(this.#options.context(loadBalancers));
  }

  /** HAProxy serves, or accepts all but some addresses. */
  globalAccepted(): void {
    this.#refusedGlobal = '';
  }

  /** A worker serves these, so that they need no check. */
  accept(loadBalancers: ReadonlyMap<string, LoadBalancer>): void {
    this.globalAccepted();
    this.#checkedGlobal = globalValues(this.#options.context(loadBalancers));
    this.#forget();
    for (const loadBalancer of loadBalancers.values()) this.#remember(loadBalancer);
  }

  /** HAProxy has refused a file that it should accept: from now on only the sections that its worker serves count. */
  refused(served: ReadonlyMap<string, LoadBalancer>): void {
    this.accept(served);
    this.#shapes.clear();
  }

  /**
   * Prepares the present desired state; later changes are left to the next candidate. `lastGood`: the load balancers that
   * the worker booted with.
   * Errors: HAPROXY_REJECTED if the global section is at fault; FILE_WRITE.
   */
  async prepare(
    desired: ReadonlyMap<string, LoadBalancer>,
    lastGood: ReadonlyMap<string, LoadBalancer>,
  ): Promise<Candidate> {
    const now = new Map(desired);
    const formerlyDispatched = this.#formerDispatchers.after(lastGood);
    const slice = new Slice();
    await this.probe(now, this.#options.binding.bound());
    await slice.breathe();
    for (;;) {
      const loadBalancers = this.effective(now);
      await this.#options.writeFiles(loadBalancers.values());
      // HAProxy checks the new sections while the agent renders the whole file.
      const [isAccepted, candidate] = await Promise.all([
        this.#isAccepted(loadBalancers, now, lastGood),
        this.#candidate(loadBalancers, formerlyDispatched),
      ]);
      if (isAccepted) return candidate;
    }
  }

  /**
   * Lets HAProxy check the present desired state, without trying addresses, which a starting HAProxy may hold. True if a
   * load balancer was quarantined. Errors: as prepare().
   */
  async rejectInvalid(desired: ReadonlyMap<string, LoadBalancer>): Promise<boolean> {
    const now = new Map(desired);
    for (let any = false; ; any = true) {
      const effective = this.effective(now);
      await this.#options.writeFiles(effective.values());
      if (await this.#isAccepted(effective, now, new Map())) return any;
    }
  }

  /** Without a check, for a start: a failed start costs no traffic. */
  async prepareUnchecked(desired: ReadonlyMap<string, LoadBalancer>): Promise<Candidate> {
    const loadBalancers = this.effective(desired);
    await this.#options.writeFiles(loadBalancers.values());
    return this.#candidate(loadBalancers);
  }

  /**
   * Blocks the addresses of unchecked load balancers that cannot be bound. `bound`: the listeners of the worker, which are
   * not tried; if they are unknown, no address is tried, and the reload fails on one that cannot be bound.
   */
  async probe(
    desired: ReadonlyMap<string, LoadBalancer>,
    bound: ReadonlySet<string> | undefined,
  ): Promise<void> {
    const { quarantine, binding, onRefused } = this.#options;
    const { ignoreAccess, canProbe = true } = binding;
    if (bound === undefined || !canProbe) return;
    for (const { key, listeners } of this.#unchecked(this.effective(desired))) {
      let isRefused = false;
      for (const listener of listeners.filter(isForHaproxy)) {
        for (const address of listener.addresses) {
          if (bound.has(`${address} ${listener.port}`)) continue;
          const reason = await probeBind(address, listener.port, ignoreAccess);
          if (reason === undefined) continue;
          quarantine.block(address, listener.port, reason);
          isRefused = true;
        }
      }
      // Once: each time plans all of its ports, of which there may be thousands.
      if (isRefused) onRefused(key);
    }
  }

  async #candidate(
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
    formerlyDispatched?: ReadonlySet<string>,
  ): Promise<Candidate> {
    const context = {
      ...this.#options.context(loadBalancers),
      ...(formerlyDispatched && { formerlyDispatched }),
    };
    const text = await configText(inFileOrder(loadBalancers), context);
    return { loadBalancers, ...text };
  }

  /** True if HAProxy accepts all of `effective`; load balancers that it refuses are quarantined. */
  async #isAccepted(
    effective: ReadonlyMap<string, LoadBalancer>,
    desired: ReadonlyMap<string, LoadBalancer>,
    lastGood: ReadonlyMap<string, LoadBalancer>,
  ): Promise<boolean> {
    const global = globalValues(this.#options.context(effective));
    const isOther = global !== this.#checkedGlobal;
    if (isOther) this.#forget();
    const unchecked = this.#unchecked(effective);
    const isNew = isOther || !unchecked.every((loadBalancer) => this.#isFamiliar(loadBalancer));
    const culprits = isNew ? await this.#culprits(unchecked, effective) : NO_CULPRITS;
    for (const [key, message] of culprits) {
      const loadBalancer = desired.get(key);
      if (loadBalancer === undefined) continue;
      this.#options.quarantine.reject(loadBalancer, lastGood.get(key), message);
      this.#options.onRefused(key);
    }
    if (culprits.size > 0) return false;
    this.#checkedGlobal = global;
    for (const key of this.#checked.keys()) if (!effective.has(key)) this.#checked.delete(key);
    for (const loadBalancer of unchecked) this.#remember(loadBalancer);
    return true;
  }

  /** HAProxy accepts this load balancer. */
  #remember(loadBalancer: LoadBalancer): void {
    this.#checked.set(loadBalancer.key, structureOfAll(loadBalancer));
    for (const shape of shapesOf(loadBalancer)) this.#shapes.add(shape);
    for (const oldest of this.#shapes) {
      if (this.#shapes.size <= MAX_SHAPES) return;
      this.#shapes.delete(oldest);
    }
  }

  #forget(): void {
    this.#checked.clear();
    this.#shapes.clear();
  }

  /** True if it differs from accepted load balancers only in names, addresses and ports. */
  #isFamiliar(loadBalancer: LoadBalancer): boolean {
    return shapesOf(loadBalancer).every((shape) => this.#shapes.has(shape));
  }

  /** The load balancers among `suspects` that HAProxy refuses: key to HAProxy's message. */
  async #culprits(
    suspects: readonly LoadBalancer[],
    all: ReadonlyMap<string, LoadBalancer>,
  ): Promise<ReadonlyMap<string, string>> {
    const result = await this.#check(suspects, all);
    if (result.ok) return new Map();
    const message = `HAProxy rejects its configuration: ${result.alerts[0] ?? 'no reason given'}`;
    const named = new Set([...result.listeners].map(ownerOfListener));
    let culprits = suspects.filter(({ key }) => named.has(key));
    if (culprits.length === 0) {
      if (!(await this.#check([], all)).ok) {
        this.globalRefused(all);
        throw new HeadgateError('HAPROXY_REJECTED', message, { retry: 'later' });
      }
      culprits = [...(await isolate(suspects, async (some) => (await this.#check(some, all)).ok))];
    }
    return new Map(culprits.map(({ key }) => [key, message]));
  }

  async #check(
    some: readonly LoadBalancer[],
    all: ReadonlyMap<string, LoadBalancer>,
  ): ReturnType<typeof checkConfig> {
    const { executable, scratchFile, context } = this.#options;
    const { chunks } = await configText(some, context(all));
    const text = chunks.join('');
    // Not flushed to the disk, because the file is needed only now.
    await writeFile(scratchFile, text, { mode: 0o600 }).catch((cause: unknown) => {
      throw new HeadgateError('FILE_WRITE', `Cannot write "${scratchFile}"`, { retry: 'later', cause });
    });
    return checkConfig(executable, scratchFile, text);
  }

  #unchecked(loadBalancers: ReadonlyMap<string, LoadBalancer>): readonly LoadBalancer[] {
    const unchecked: LoadBalancer[] = [];
    for (const loadBalancer of loadBalancers.values()) {
      const structure = structureOfAll(loadBalancer);
      // A load balancer without a listener for HAProxy needs no check.
      if (structure !== '' && this.#checked.get(loadBalancer.key) !== structure) unchecked.push(loadBalancer);
    }
    return unchecked;
  }
}

function shapesOf({ listeners }: LoadBalancer): readonly string[] {
  return listeners.filter(hasSection).map(shapeOf);
}
