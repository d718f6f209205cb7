// Prepares the file for the next reload or start: leaves out what cannot be bound or is rejected, has HAProxy check
// what it has not checked before, and gives the text. Sections stand for themselves, so a section that HAProxy has
// accepted once need not be shown to it again, nor one that differs from such a one in nothing but its own name and
// places: the check costs what is new, not what exists.

import { writeFile } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import { probeBind } from './bind-probe.ts';
import { checkConfig } from './check.ts';
import { type ConfigText, configText, inFileOrder } from './config-text.ts';
import { isolate } from './isolate.ts';
import { isForHaproxy, shapeOf } from './listener-config.ts';
import { type Quarantine, structureOfAll } from './quarantine.ts';
import type { RenderContext } from './render-context.ts';

export interface Candidate extends ConfigText {
  /** What stands in the file, by key. */
  readonly loadBalancers: ReadonlyMap<string, LoadBalancer>;
}

export interface CandidateOptions {
  readonly executable: string;
  /** A file to show to HAProxy; overwritten. */
  readonly scratchFile: string;
  readonly quarantine: Quarantine;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  /** `address port` of what the worker that serves listens on; undefined where that is not known. */
  readonly bound: () => ReadonlySet<string> | undefined;
  /** True where HAProxy has rights to bind low ports that the agent lacks. */
  readonly ignoreAccess: boolean;
  /** False where HAProxy has another network than the agent: only its own word tells then. */
  readonly canProbe?: boolean;
  /** Something of this load balancer was taken out of service: its problems have changed. */
  readonly onRefused: (key: string) => void;
}

/** Most shapes that are kept: what is said in annotations is mostly the same. */
const SHAPES = 256;
const NOBODY: ReadonlyMap<string, string> = new Map();

export class CandidateMaker {
  readonly #options: CandidateOptions;
  /** Key to the structure that HAProxy has accepted, under the global part in `#checkedGlobal`. */
  readonly #checked = new Map<string, string>();
  #checkedGlobal = '';
  /** Shapes of listeners that HAProxy has accepted, under the same global part; the oldest first. */
  readonly #shapes = new Set<string>();
  /** Found in `#checked` before, so that what has not changed is not compared again. */
  #known = new WeakSet<LoadBalancer>();
  /** The global part that HAProxy has refused last, until it serves again. */
  #refusedGlobal = '';

  constructor(options: CandidateOptions) {
    this.#options = options;
  }

  /** What of the wanted load balancers is fit for the file now. */
  effective(wanted: ReadonlyMap<string, LoadBalancer>): ReadonlyMap<string, LoadBalancer> {
    const effective = new Map<string, LoadBalancer>();
    for (const [key, loadBalancer] of wanted) {
      const fit = this.#options.quarantine.effective(loadBalancer);
      if (fit !== undefined) effective.set(key, fit);
    }
    return effective;
  }

  /** True where every section of these has been accepted by HAProxy. */
  isChecked(loadBalancers: ReadonlyMap<string, LoadBalancer>): boolean {
    return this.#unchecked(loadBalancers).length === 0;
  }

  /** True where HAProxy has refused the global part that a file with these would have: no section is at fault then. */
  isGlobalRefused(loadBalancers: ReadonlyMap<string, LoadBalancer>): boolean {
    return (
      this.#refusedGlobal !== '' && globalOf(this.#options.context(loadBalancers)) === this.#refusedGlobal
    );
  }

  /** HAProxy serves, or does not start, with the global part of a file that has these. */
  tried(loadBalancers: ReadonlyMap<string, LoadBalancer>, serves: boolean): void {
    this.#refusedGlobal = serves ? '' : globalOf(this.#options.context(loadBalancers));
  }

  /** Takes a worker's word: it serves these, so they need no check. */
  accept(loadBalancers: ReadonlyMap<string, LoadBalancer>): void {
    this.#refusedGlobal = '';
    this.#checkedGlobal = globalOf(this.#options.context(loadBalancers));
    this.#forget();
    for (const loadBalancer of loadBalancers.values()) this.#take(loadBalancer);
  }

  /**
   * HAProxy has refused a file that it was thought to take: from now on only what its worker serves counts as accepted,
   * and everything else is shown to it, however familiar.
   */
  refused(served: ReadonlyMap<string, LoadBalancer>): void {
    this.accept(served);
    this.#shapes.clear();
  }

  /**
   * Of what is wanted now, whatever comes while HAProxy checks it. `lastGood` is what the running worker booted from;
   * `onDraft` is told what the candidate will be unless the check finds fault with it.
   * Errors: HAPROXY_REJECTED where the global part is at fault; FILE_WRITE.
   */
  async prepare(
    wanted: ReadonlyMap<string, LoadBalancer>,
    lastGood: ReadonlyMap<string, LoadBalancer>,
    onDraft: (candidate: Candidate) => void = () => undefined,
  ): Promise<Candidate> {
    const now = new Map(wanted);
    const slice = new Slice();
    await this.probe(now, this.#options.bound());
    await slice.breathe();
    for (let draft: typeof onDraft | undefined = onDraft; ; draft = undefined) {
      const loadBalancers = this.effective(now);
      // HAProxy checks what is new while the text of all is made.
      const [isTaken, candidate] = await Promise.all([
        this.#isTaken(loadBalancers, now, lastGood),
        this.#candidate(loadBalancers, draft),
      ]);
      if (isTaken) return candidate;
    }
  }

  /**
   * Has HAProxy check what is wanted now, without trying any address: one that is about to be there has its own. True where
   * something was put in quarantine. Errors: as prepare().
   */
  async weed(wanted: ReadonlyMap<string, LoadBalancer>): Promise<boolean> {
    const now = new Map(wanted);
    for (let any = false; ; any = true)
      if (await this.#isTaken(this.effective(now), now, new Map())) return any;
  }

  /** For a start from nothing: HAProxy's own start is the best check, and a failed one costs no traffic. */
  unchecked(wanted: ReadonlyMap<string, LoadBalancer>): Promise<Candidate> {
    return this.#candidate(this.effective(wanted));
  }

  /**
   * Blocks the addresses of unchecked load balancers that cannot be bound. What a worker of ours listens on (`bound`)
   * is not tried; where that is not known nothing is, and HAProxy's own word at the reload tells.
   */
  async probe(
    wanted: ReadonlyMap<string, LoadBalancer>,
    bound: ReadonlySet<string> | undefined,
  ): Promise<void> {
    const { quarantine, ignoreAccess, canProbe = true, onRefused } = this.#options;
    if (bound === undefined || !canProbe) return;
    for (const { key, listeners } of this.#unchecked(this.effective(wanted))) {
      for (const listener of listeners.filter(isForHaproxy)) {
        for (const address of listener.addresses) {
          if (bound.has(`${address} ${listener.port}`)) continue;
          const reason = await probeBind(address, listener.port, ignoreAccess);
          if (reason === undefined) continue;
          quarantine.block(address, listener.port, reason);
          onRefused(key);
        }
      }
    }
  }

  async #candidate(
    loadBalancers: ReadonlyMap<string, LoadBalancer>,
    onDraft: (candidate: Candidate) => void = () => undefined,
  ): Promise<Candidate> {
    const text = await configText(inFileOrder(loadBalancers), this.#options.context(loadBalancers));
    const candidate = { loadBalancers, ...text };
    onDraft(candidate);
    return candidate;
  }

  /** Whether HAProxy takes all of `effective`; what it does not take is put in quarantine. */
  async #isTaken(
    effective: ReadonlyMap<string, LoadBalancer>,
    wanted: ReadonlyMap<string, LoadBalancer>,
    lastGood: ReadonlyMap<string, LoadBalancer>,
  ): Promise<boolean> {
    const global = globalOf(this.#options.context(effective));
    const isOther = global !== this.#checkedGlobal;
    if (isOther) this.#forget();
    const unchecked = this.#unchecked(effective);
    const isNew = isOther || !unchecked.every((loadBalancer) => this.#isFamiliar(loadBalancer));
    const culprits = isNew ? await this.#culprits(unchecked, effective) : NOBODY;
    for (const [key, message] of culprits) {
      const loadBalancer = wanted.get(key);
      if (loadBalancer === undefined) continue;
      this.#options.quarantine.reject(loadBalancer, lastGood.get(key), message);
      this.#options.onRefused(key);
    }
    if (culprits.size > 0) return false;
    this.#checkedGlobal = global;
    for (const key of this.#checked.keys()) if (!effective.has(key)) this.#checked.delete(key);
    for (const loadBalancer of unchecked) this.#take(loadBalancer);
    return true;
  }

  /** HAProxy takes it. */
  #take(loadBalancer: LoadBalancer): void {
    this.#checked.set(loadBalancer.key, structureOfAll(loadBalancer));
    for (const shape of shapesOf(loadBalancer)) this.#shapes.add(shape);
    for (const oldest of this.#shapes) {
      if (this.#shapes.size <= SHAPES) return;
      this.#shapes.delete(oldest);
    }
  }

  #forget(): void {
    this.#checked.clear();
    this.#shapes.clear();
    this.#known = new WeakSet();
  }

  /** Whether it differs from what HAProxy has accepted in nothing but names and places. */
  #isFamiliar(loadBalancer: LoadBalancer): boolean {
    return shapesOf(loadBalancer).every((shape) => this.#shapes.has(shape));
  }

  /** Key to HAProxy's words, of those among `suspects` that it does not take. */
  async #culprits(
    suspects: readonly LoadBalancer[],
    all: ReadonlyMap<string, LoadBalancer>,
  ): Promise<ReadonlyMap<string, string>> {
    const result = await this.#ask(suspects, all);
    if (result.ok) return new Map();
    const message = `HAProxy rejects its configuration: ${result.alerts[0] ?? 'no reason given'}`;
    const named = new Set([...result.listeners].map(ownerOfListener));
    let culprits = suspects.filter(({ key }) => named.has(key));
    if (culprits.length === 0) {
      if (!(await this.#ask([], all)).ok) {
        this.tried(all, false);
        throw new HeadgateError('HAPROXY_REJECTED', message, { retry: 'later' });
      }
      culprits = [...(await isolate(suspects, async (some) => (await this.#ask(some, all)).ok))];
    }
    return new Map(culprits.map(({ key }) => [key, message]));
  }

  async #ask(
    some: readonly LoadBalancer[],
    all: ReadonlyMap<string, LoadBalancer>,
  ): ReturnType<typeof checkConfig> {
    const { executable, scratchFile, context } = this.#options;
    const { chunks } = await configText(some, context(all));
    const text = chunks.join('');
    // Not flushed to the disk: HAProxy reads it now, and nobody later.
    await writeFile(scratchFile, text, { mode: 0o600 }).catch((cause: unknown) => {
      throw new HeadgateError('FILE_WRITE', `Cannot write "${scratchFile}"`, { retry: 'later', cause });
    });
    return checkConfig(executable, scratchFile, text);
  }

  #unchecked(loadBalancers: ReadonlyMap<string, LoadBalancer>): readonly LoadBalancer[] {
    const unchecked: LoadBalancer[] = [];
    for (const loadBalancer of loadBalancers.values()) {
      if (this.#known.has(loadBalancer)) continue;
      const structure = structureOfAll(loadBalancer);
      // Of one that HAProxy serves nothing of there is nothing to check, and no reload to come that would do it.
      const isChecked = structure === '' || this.#checked.get(loadBalancer.key) === structure;
      if (isChecked) this.#known.add(loadBalancer);
      else unchecked.push(loadBalancer);
    }
    return unchecked;
  }
}

function shapesOf({ listeners }: LoadBalancer): readonly string[] {
  return listeners.filter(isForHaproxy).map(shapeOf);
}

function globalOf(context: RenderContext): string {
  const { aclId: _, ...global } = context;
  return JSON.stringify(global);
}
