// The keepalived dataplane, as the agent sees it: which addresses are VIPs, how this host stands, what VRRP does.
// It brings keepalived to what is wanted, one step at a time, and keeps an eye on it. keepalived goes on by itself when
// the agent does not.

import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError, messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { MetricFamily } from '../metric-family.ts';
import type { Family, LoadBalancer } from '../model.ts';
import { awaitText, differenceOf, replaceConfig } from './apply.ts';
import { Question } from './ask.ts';
import { type InstanceDump, parseNotification } from './dump.ts';
import { NotifyFifo } from './fifo.ts';
import { hostAddresses } from './host-addresses.ts';
import { instanceStatus } from './instance-status.ts';
import { removeLeftovers } from './leftovers.ts';
import { type KeepalivedPaths, keepalivedPaths } from './paths.ts';
import { heldIn, type KeepalivedPlan, planKeepalived } from './plan.ts';
import { preflight } from './preflight.ts';
import {
  ageOf,
  endKeepalived,
  type KeepalivedProgram,
  keepalivedPid,
  keepalivedProgram,
  signalKeepalived,
  startKeepalived,
  stopKeepalived,
  trimLog,
} from './process.ts';
import { Pulse } from './pulse.ts';
import { addressesIn, renderKeepalived } from './render.ts';
import { RivalWatch } from './rival-watch.ts';
import { StandingFile } from './standing-file.ts';
import { Steps } from './steps.ts';
import { type Refused, usableVips } from './usable.ts';
import { VipBook } from './vip-book.ts';
import {
  instanceName,
  loweredBy,
  type StandingReason,
  type VrrpSettings,
  type VrrpState,
  type VrrpStateName,
  type VrrpStatus,
} from './vrrp.ts';
import { VrrpStates } from './vrrp-states.ts';

export interface KeepalivedSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly keepalived: string;
  /** `external`: something else starts keepalived and starts it again. */
  readonly keepalivedSupervisor: 'agent' | 'external';
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly vrrp: VrrpSettings;
  /** Milliseconds. */
  readonly auditInterval: number;
}

/** What the dataplane counts; counters only go up. */
export interface KeepalivedMetrics {
  vrrpTransition(instance: string, state: string): void;
  keepalivedReloaded(result: 'done' | 'failed'): void;
  repaired(what: 'keepalived' | 'stale-vips' | 'file'): void;
}

export interface KeepalivedOptions {
  readonly settings: KeepalivedSettings;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
  /** Told of every transition of an instance, of the first one that is seen, too. */
  readonly onState?: (state: VrrpState) => void;
}

export interface VipAddress {
  readonly address: string;
  readonly family: Family;
}

/** Milliseconds between two reloads, so that many changes at once need few. */
const SPACING = 100;
/** Milliseconds within which it is noticed that keepalived is gone. */
const WATCH = 500;
/** Milliseconds; doubled at each failure, up to the second. */
const BACKOFF = [100, 5_000] as const;
/** Milliseconds after a transition until keepalived is asked what came of it. */
const SETTLED = 250;
/** Milliseconds in which a keepalived may not be ready for signals. */
const YOUTH = 1_000;
const LOG_SIZE = 4 * 1024 * 1024;

export class KeepalivedDataplane {
  readonly #options: KeepalivedOptions;
  readonly #paths: KeepalivedPaths;
  readonly #book = new VipBook();
  readonly #states: VrrpStates;
  readonly #rivals: RivalWatch;
  readonly #fifo: NotifyFifo;
  readonly #standing: StandingFile;
  readonly #question: Question;
  #program: KeepalivedProgram = { version: '', dumpSignal: 0 };
  #wanted: ReadonlySet<string> = new Set();
  /** What stands in the file; undefined: none of ours. */
  #text: string | undefined;
  #read: { readonly text: string | undefined; readonly held: ReadonlyMap<string, ReadonlySet<string>> } = {
    text: undefined,
    held: new Map(),
  };
  /** A text that keepalived refused. */
  #rejected = '';
  #pid = 0;
  /** Whether the keepalived that runs is known to have what stands in the file. */
  #isVerified = false;
  #hasStarted = false;
  #refused: readonly Refused[] = [];
  /** undefined until somebody has said so: the file stays as it is. */
  #lowered: readonly StandingReason[] | undefined;
  #fault = 'keepalived has not been reached yet';
  readonly #steps: Steps;
  readonly #pulse: Pulse;
  #isReloading = false;
  /** What the last keepalived has left on the interfaces may still be there. */
  #isUnswept = true;
  #onSpoken: () => void = () => undefined;
  #timers: NodeJS.Timeout[] = [];
  #asking: NodeJS.Timeout | undefined;
  #isOpen = false;

  constructor(options: KeepalivedOptions) {
    const { settings, log, metrics, onState } = options;
    this.#options = options;
    this.#paths = keepalivedPaths(settings.stateDir, settings.runtimeDir);
    this.#states = new VrrpStates((state) => {
      log.info('VRRP has changed its state', { instance: state.instance, state: state.state });
      metrics.vrrpTransition(state.instance, state.state);
      onState?.(state);
    });
    this.#rivals = new RivalWatch(settings.vrrp.advertInterval, log);
    this.#fifo = new NotifyFifo(this.#paths.fifo, (line) => this.#hear(line));
    this.#question = new Question(this.#paths);
    this.#pulse = new Pulse(this.#paths, settings.vrrp.advertInterval);
    this.#steps = new Steps({
      step: () => this.#step(),
      onDone: () => {
        this.#fault = '';
      },
      onFailed: (error) => this.#failed(error),
      spacing: SPACING,
      backoff: BACKOFF,
    });
    // keepalived tells of a change of state, but not of one of priority.
    this.#standing = new StandingFile(this.#paths.standing, () => {
      if (this.#isOpen) this.#tellSoon();
    });
  }

  /**
   * Adopts the keepalived that runs, or starts one, with the VIPs that are wanted by now. Never rejects: what cannot be
   * done is a fault, and is tried again in the background.
   */
  async start(): Promise<void> {
    this.#isOpen = true;
    await this.#steps.settle();
    if (!this.#isOpen) return;
    this.#timers = [
      setInterval(() => void this.#watch(), WATCH).unref(),
      setInterval(() => void this.#audit(), this.#options.settings.auditInterval).unref(),
    ];
  }

  /** All VIPs; costs next to nothing where they are the same, and changes that come together are made together. */
  want(vips: Iterable<VipAddress>): void {
    const wanted = new Set<string>();
    for (const { address } of vips) wanted.add(address);
    this.#want(wanted);
  }

  /** The VIPs of load balancers that have changed; the cost is in proportion to these. */
  follow(keys: Iterable<string>, loadBalancers: ReadonlyMap<string, LoadBalancer>): void {
    let hasChanged = false;
    for (const key of keys) hasChanged = this.#book.update(key, loadBalancers.get(key)) || hasChanged;
    if (hasChanged) this.#want(new Set(this.#book.addresses()));
  }

  /** What lowers this host now; [] is well. The caller decides on hysteresis. */
  standing(reasons: readonly StandingReason[]): void {
    this.#lowered = [...reasons];
    this.#standing.want(loweredBy(reasons));
    // Before keepalived can be spoken to there may be no place for the file yet.
    if (this.#program.version !== '') this.#standing.write().catch((error) => this.#steps.fail(error));
  }

  /** What each instance says of this host, by name. */
  roles(): Readonly<Record<string, VrrpStateName>> {
    return Object.fromEntries(
      this.#options.settings.vrrp.instances.map(({ virtualRouterId }) => {
        const name = instanceName(virtualRouterId);
        return [name, this.#pid === 0 ? 'unknown' : this.#states.of(name).state];
      }),
    );
  }

  status(): VrrpStatus {
    const { vrrp } = this.#options.settings;
    const held = this.#held();
    const lowered = this.#lowered ?? [];
    const instances = vrrp.instances.map((each) => {
      const name = instanceName(each.virtualRouterId);
      return instanceStatus({
        settings: each,
        state: this.#states.of(name),
        isRunning: this.#pid !== 0,
        lowered: loweredBy(lowered),
        held: this.#isVerified ? (held.get(name)?.size ?? 0) : 0,
      });
    });
    return {
      version: this.#program.version,
      pid: this.#pid,
      instances,
      vips: instances.reduce((sum, { vips }) => sum + vips, 0),
      lowered,
      rivals: this.#rivals.instances,
      refused: this.#refused,
      fault: this.#fault || this.#rivals.fault,
    };
  }

  /** What stands in the file, by instance; scrapes ask for it often. */
  #held(): ReadonlyMap<string, ReadonlySet<string>> {
    if (this.#read.text !== this.#text)
      this.#read = { text: this.#text, held: addressesIn(this.#text ?? '') };
    return this.#read.held;
  }

  /** As keepalived last told; it is asked at each audit and after each transition. */
  families(): readonly MetricFamily[] {
    const rows = this.#options.settings.vrrp.instances.map(({ virtualRouterId }) => {
      const name = instanceName(virtualRouterId);
      return { labels: `vrrp_instance="${name}"`, adverts: this.#states.of(name).adverts };
    });
    return (['sent', 'received'] as const).map((which) => ({
      name: `headgate_vrrp_advertisements_${which}_total`,
      type: 'counter',
      help: `Advertisements ${which}`,
      parts: [{ labels: '', rows, value: (row) => (row as (typeof rows)[number]).adverts[which] }],
    }));
  }

  /** Lets go of keepalived, which goes on. */
  async close(): Promise<void> {
    this.#isOpen = false;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#asking);
    await this.#steps.close();
    this.#fifo.close();
  }

  /** Ends the keepalived that was started here: for demonstrations and tests. Call close() first. */
  async stopKeepalived(): Promise<void> {
    if (this.#hasStarted) await stopKeepalived(this.#paths);
  }

  #want(wanted: ReadonlySet<string>): void {
    if (isSame(wanted, this.#wanted)) return;
    this.#wanted = wanted;
    if (this.#isOpen) void this.#steps.settle();
  }

  #failed(error: unknown): void {
    const fault = messageOf(error);
    if (fault !== this.#fault) this.#options.log.error('keepalived is not as it should be', { error: fault });
    this.#fault = fault;
  }

  /** Brings keepalived to what is wanted: file, reload or start; true where anything was changed. */
  async #step(): Promise<boolean> {
    const { settings } = this.#options;
    if (this.#program.version === '') await this.#prepare();
    await this.#standing.write();
    await this.#notice();
    const text = renderKeepalived(settings.vrrp, this.#paths, await this.#usable());
    const plan = planKeepalived(this.#text, text);
    // What is refused is no reason to be without keepalived: it goes on with, or starts from, what it took before.
    const refusal = await this.#replace(text, plan);
    if (this.#text === undefined) throw refusal;
    const isStarted = this.#pid === 0;
    const isReloaded = !isStarted && !this.#isVerified;
    if (isStarted) await this.#start();
    else if (isReloaded) await this.#reload(this.#text);
    if (refusal !== undefined) throw refusal;
    return isStarted || isReloaded;
  }

  /** Everything that is needed before keepalived can be spoken to. Errors: KEEPALIVED_MISSING, KEEPALIVED_VERSION. */
  async #prepare(): Promise<void> {
    const { keepalived } = this.#options.settings;
    await mkdir(dirname(this.#paths.config), { recursive: true, mode: 0o700 });
    await mkdir(this.#paths.directory, { recursive: true, mode: 0o711 });
    this.#text = await readFile(this.#paths.config, 'utf8').catch(() => undefined);
    await this.#fifo.open();
    await this.#standing.make();
    this.#program = await keepalivedProgram(keepalived);
    void this.#warn();
  }

  /** What is wrong with the host is said once; it does not keep keepalived from running. */
  async #warn(): Promise<void> {
    const { settings, log } = this.#options;
    const findings = await preflight(settings, this.#paths).catch(() => []);
    for (const { what, detail } of findings.filter(({ ok }) => !ok))
      log.warn('This host is not ready for VRRP', { what, detail });
  }

  /** Finds out whether keepalived is still the one that it was. */
  async #notice(): Promise<void> {
    const { log, metrics } = this.#options;
    const [before, now] = [this.#pid, (await keepalivedPid(this.#paths)) ?? 0];
    if (now !== before) {
      this.#pid = now;
      this.#isVerified = false;
      if (before !== 0) {
        this.#isUnswept = true;
        log.error('keepalived has ended', { pid: before });
        metrics.repaired('keepalived');
        this.#states.lost(new Date());
      }
      if (now !== 0) await this.#meet(now);
    }
    if (now === 0 && this.#isUnswept) await this.#sweep(heldIn(this.#text ?? ''));
    this.#isUnswept = false;
  }

  /** Gets to know a keepalived that someone else has started. */
  async #meet(pid: number): Promise<void> {
    if ((await ageOf(pid)) < YOUTH) await this.#hasSpoken();
    const difference = await this.#tell();
    this.#options.log.info('Adopted the keepalived that runs', { pid, difference });
  }

  /** The refusal, where keepalived does not take the text; the file is then as it was. */
  async #replace(text: string, plan: KeepalivedPlan): Promise<HeadgateError | undefined> {
    const { settings, metrics, log } = this.#options;
    if (plan.kind === 'none') return undefined;
    try {
      await replaceConfig(settings.keepalived, settings.netns, this.#paths, text);
    } catch (error) {
      if (!(error instanceof HeadgateError) || error.code !== 'KEEPALIVED_REJECTED') throw error;
      if (this.#rejected !== text) metrics.keepalivedReloaded('failed');
      this.#rejected = text;
      return error;
    }
    this.#text = text;
    this.#rejected = '';
    this.#isVerified = false;
    log.info('keepalived.conf is changed', { for: plan.kind, ...changesOf(plan) });
    return undefined;
  }

  async #start(): Promise<void> {
    const { settings, log } = this.#options;
    if (settings.keepalivedSupervisor === 'external')
      throw new HeadgateError('KEEPALIVED_START', 'keepalived does not run', { retry: 'later' });
    const spoken = this.#hasSpoken();
    // Where nobody has said yet how this host stands it is lowered, as after a boot, whatever was said before.
    await this.#standing.lower();
    const child = await startKeepalived(settings.keepalived, settings.netns, this.#paths);
    child.once('exit', () => void this.#watch());
    this.#hasStarted = true;
    this.#pid = (await keepalivedPid(this.#paths)) ?? 0;
    log.info('Started keepalived', { pid: this.#pid, version: this.#program.version });
    await spoken;
    this.#states.told(await awaitText(this.#text ?? '', settings.vrrp, this.#ask));
    this.#isVerified = true;
  }

  async #reload(text: string): Promise<void> {
    const { settings, metrics } = this.#options;
    // Until 2.4 the FIFO may tell a wrong state at a reload; what keepalived says afterwards counts.
    this.#isReloading = true;
    try {
      signalKeepalived(this.#pid, 'SIGHUP');
      this.#states.told(await awaitText(text, settings.vrrp, this.#ask));
      this.#isVerified = true;
      metrics.keepalivedReloaded('done');
    } catch (error) {
      metrics.keepalivedReloaded('failed');
      throw error;
    } finally {
      this.#isReloading = false;
    }
  }

  /**
   * Resolves once keepalived has notified a state, by which it shows that it is ready for signals: one that comes
   * earlier would end it. It gets a second, in case that there is nothing to tell.
   */
  #hasSpoken(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onSpoken = resolve;
    void delay(YOUTH, undefined, { ref: false }).then(resolve);
    return promise;
  }

  readonly #ask = (): Promise<readonly InstanceDump[] | undefined> =>
    this.#question.ask(this.#program.dumpSignal);

  /** Has keepalived tell its state, and compares what it has with the file; what differs, in words. */
  async #tell(): Promise<string> {
    const dump = await this.#ask();
    if (dump !== undefined) this.#states.told(dump);
    const difference =
      dump === undefined
        ? 'it does not answer'
        : differenceOf(dump, this.#text ?? '', this.#options.settings.vrrp);
    this.#isVerified = difference === '';
    return difference;
  }

  async #usable(): Promise<readonly string[]> {
    const { log, settings } = this.#options;
    const ours = new Set(heldIn(this.#text ?? ''));
    if (this.#pid !== 0 && !this.#isVerified)
      for (const { addresses } of (await this.#ask()) ?? []) for (const each of addresses) ours.add(each);
    const host = await hostAddresses(settings.netns);
    const { usable, refused } = usableVips(this.#wanted, settings.vrrp, host, ours);
    for (const { address, reason } of refused)
      if (!this.#refused.some((each) => each.address === address))
        log.warn('A VIP is not given to keepalived', { address, reason });
    this.#refused = refused;
    return usable;
  }

  async #sweep(held: ReadonlySet<string>): Promise<void> {
    const { settings, metrics, log } = this.#options;
    const count = await removeLeftovers(settings.netns, held, this.#paths);
    if (count === 0) return;
    metrics.repaired('stale-vips');
    log.warn('Took away addresses that a keepalived that is gone had left', { count });
  }

  async #watch(): Promise<void> {
    if (!this.#isOpen || this.#steps.isUnderWay) return;
    this.#rivals.look();
    if (((await keepalivedPid(this.#paths)) ?? 0) !== this.#pid) void this.#steps.settle();
    else if (await this.#pulse.isStill(performance.now())) await this.#endHung();
  }

  /**
   * One that hangs is no host's master any more, but the kernel goes on answering for its addresses, as the one that has
   * taken them over does. It cannot be told anything, so it is ended like one that was killed.
   */
  async #endHung(): Promise<void> {
    const hung = this.#pid;
    const isAlive = (await this.#ask()) !== undefined;
    this.#pulse.reset();
    if (isAlive || !this.#isOpen || this.#pid !== hung) return;
    this.#options.log.error('keepalived hangs: it is ended', { pid: hung });
    await endKeepalived(this.#paths);
    void this.#steps.settle();
  }

  /** Compares what keepalived, its file and its FIFO are with what they should be. */
  async #audit(): Promise<void> {
    const { metrics, log } = this.#options;
    if (!this.#isOpen || this.#steps.isUnderWay) return;
    await trimLog(this.#paths.log, LOG_SIZE);
    if (!(await this.#fifo.isIntact())) await this.#fifo.open().catch((error) => this.#steps.fail(error));
    const text = await readFile(this.#paths.config, 'utf8').catch(() => undefined);
    if (this.#steps.isUnderWay) return;
    if (text !== this.#text) {
      log.warn('keepalived.conf was changed by someone else: written again', { path: this.#paths.config });
      metrics.repaired('file');
      this.#text = text;
      void this.#steps.settle();
    } else if (this.#pid !== 0) {
      const difference = await this.#tell();
      if (difference === '') return;
      log.warn('keepalived is not as it should be', { error: difference });
      metrics.repaired('keepalived');
      void this.#steps.settle();
    }
  }

  #hear(line: string): void {
    const heard = parseNotification(line);
    this.#onSpoken();
    if (heard?.kind === 'rival') this.#rivals.heard(heard.instance);
    else if (heard?.kind === 'state' && !this.#isReloading) {
      this.#states.notified(heard, new Date());
      this.#tellSoon();
    }
  }

  #tellSoon(): void {
    clearTimeout(this.#asking);
    this.#asking = setTimeout(() => {
      // A step under way asks by itself, and keepalived may not be ready for another question.
      if (!this.#steps.isUnderWay) void this.#tell();
      else this.#tellSoon();
    }, SETTLED).unref();
  }
}

function changesOf(plan: KeepalivedPlan): { readonly added?: number; readonly removed?: number } {
  return plan.kind === 'vips' ? { added: plan.added.length, removed: plan.removed.length } : {};
}

function isSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((each) => b.has(each));
}
