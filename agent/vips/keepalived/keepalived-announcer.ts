// The keepalived dataplane, as the agent sees it: which addresses are VIPs, how this host stands, what VRRP does.
// It brings keepalived to what is wanted, one step at a time. keepalived goes on by itself when the agent does not.

import { type HeadgateError, messageOf } from '../../base/errors.ts';
import type { MetricFamily } from '../../base/metric-family.ts';
import { Reconciler } from '../../base/reconciler.ts';
import type { OwnFile } from '../../host/own-files.ts';
import type { Family, LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { StandingReason } from '../announcer.ts';
import { VipBook } from '../vip-book.ts';
import {
  instanceName,
  loweredBy,
  prioritiesOf,
  type VrrpAnnouncer,
  type VrrpSettings,
  type VrrpState,
  type VrrpStateName,
  type VrrpStatus,
} from '../vrrp.ts';
import { ConfigFile } from './config/config-file.ts';
import type { KeepalivedOptions, KeepalivedSettings } from './options.ts';
import { type KeepalivedPaths, keepalivedPaths } from './paths.ts';
import { preflight } from './preflight.ts';
import { Daemon } from './process/daemon.ts';
import { NotifyFifo } from './process/fifo.ts';
import { KeepalivedMonitor } from './process/keepalived-monitor.ts';
import { Notices } from './process/notices.ts';
import { renderKeepalived } from './render.ts';
import { makeRuntimeFiles, runtimeFiles } from './runtime-files.ts';
import { StandingFile } from './standing-file.ts';
import { RivalWatch } from './states/rival-watch.ts';
import { VrrpCounters } from './states/vrrp-counters.ts';
import { VrrpStates } from './states/vrrp-states.ts';
import { vrrpFamilies, vrrpStatus } from './states/vrrp-status.ts';
import { VipChoice } from './vip-choice.ts';

export interface VipAddress {
  readonly address: string;
  readonly family: Family;
}

/** Milliseconds between two reloads, so that many changes at once need few. */
const RELOAD_SPACING_MS = 100;
/** Milliseconds; doubled at each failure, up to the second. */
const RETRY = { firstMs: 100, mostMs: 5_000 } as const;

export class KeepalivedAnnouncer implements VrrpAnnouncer {
  /** Files that another process may remove. */
  readonly ownFiles: readonly OwnFile[];
  readonly #options: KeepalivedOptions;
  readonly #paths: KeepalivedPaths;
  readonly #book = new VipBook();
  readonly #counters: VrrpCounters;
  readonly #states: VrrpStates;
  readonly #rivals: RivalWatch;
  readonly #fifo: NotifyFifo;
  readonly #standing: StandingFile;
  readonly #file: ConfigFile;
  readonly #daemon: Daemon;
  readonly #choice: VipChoice;
  readonly #reconciler: Reconciler;
  readonly #notices: Notices;
  readonly #monitor: KeepalivedMonitor;
  /** The settings that keepalived was given last; others are asked for where they have changed since. */
  #vrrp: VrrpSettings;
  #asked: VrrpSettings;
  #auditInterval: number;
  #wanted: ReadonlySet<string> = new Set();
  /** undefined until somebody has said so: the file stays as it is. */
  #lowered: readonly StandingReason[] | undefined;
  #fault = 'keepalived has not been reached yet';
  readonly #onState: ((state: VrrpState) => void)[] = [];
  #isOpen = false;

  constructor(options: KeepalivedOptions) {
    const { settings, log, metrics, onRefused } = options;
    const { keepalived: executable, keepalivedSupervisor: supervisor, netns, vrrp } = settings;
    const paths = keepalivedPaths(settings.stateDir, settings.runtimeDir);
    const advertInterval = (): number => this.#vrrp.advertInterval;
    this.#options = options;
    this.#paths = paths;
    this.#vrrp = vrrp;
    this.#asked = vrrp;
    this.#auditInterval = settings.auditInterval;
    this.#counters = new VrrpCounters(paths.counters);
    this.#states = new VrrpStates(
      (state) => {
        log.info('VRRP has changed its state', { instance: state.instance, state: state.state });
        for (const callback of this.#onState) callback(state);
      },
      this.#counters.read(),
      () => void this.#counters.write(this.#states.counts()),
    );
    this.#rivals = new RivalWatch(advertInterval, log);
    this.#fifo = new NotifyFifo(paths.fifo, (line) => this.#notices.hear(line));
    this.#file = new ConfigFile({ executable, netns, paths, metrics, log });
    this.#daemon = new Daemon({
      executable,
      supervisor,
      netns,
      paths,
      states: this.#states,
      onExit: () => void this.#monitor.look(),
      metrics,
      log,
    });
    this.#choice = new VipChoice({
      netns,
      file: this.#file,
      daemon: this.#daemon,
      log,
      onRefused: (addresses) => onRefused?.(this.#book.usersOf(addresses)),
    });
    this.#reconciler = new Reconciler({
      step: () => this.#step(),
      onDone: () => {
        this.#fault = '';
      },
      onFailed: (error) => this.#failed(error),
      spacingMs: RELOAD_SPACING_MS,
      backoff: RETRY,
    });
    this.#notices = new Notices({
      daemon: this.#daemon,
      states: this.#states,
      rivals: this.#rivals,
      reconciler: this.#reconciler,
      ask: () => void this.#daemon.tell(this.#file.text ?? ''),
    });
    // keepalived tells of a change of state, but not of one of priority.
    this.#standing = new StandingFile(paths.standing, () => {
      if (this.#isOpen) this.#notices.askSoon();
    });
    this.ownFiles = runtimeFiles({
      paths,
      fifo: this.#fifo,
      standing: this.#standing,
      onNewFifo: () => {
        this.#daemon.doubt();
        void this.#reconciler.reconcile();
      },
      canRestore: () => this.#isOpen && this.#daemon.version !== '' && !this.#reconciler.isUnderWay,
    });
    this.#monitor = new KeepalivedMonitor({
      paths,
      daemon: this.#daemon,
      file: this.#file,
      reconciler: this.#reconciler,
      advertInterval,
      auditInterval: () => this.#auditInterval,
      onLook: () => this.#rivals.look(),
      lacksVips: () => this.#choice.refused.length > 0,
      metrics,
      log,
    });
  }

  /**
   * Adopts the keepalived that runs, or starts one, with the VIPs that are wanted by now. Never rejects: what cannot be
   * done is a fault, and is tried again in the background.
   */
  async start(): Promise<void> {
    this.#isOpen = true;
    await this.#reconciler.reconcile();
    if (this.#isOpen) this.#monitor.start();
  }

  /** Other settings: keepalived has them as soon as it takes them; those that it refuses are a fault, and change nothing. */
  configure({ vrrp, auditInterval }: Pick<KeepalivedSettings, 'vrrp' | 'auditInterval'>): void {
    if (auditInterval !== this.#auditInterval) {
      this.#auditInterval = auditInterval;
      this.#monitor.retime();
    }
    if (JSON.stringify(vrrp) === JSON.stringify(this.#asked)) return;
    this.#asked = vrrp;
    if (this.#isOpen) void this.#reconciler.reconcile();
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
    if (this.#daemon.version !== '') this.#standing.write().catch((error) => this.#reconciler.fail(error));
  }

  /** `callback` gets each transition of an instance. */
  onState(callback: (state: VrrpState) => void): void {
    this.#onState.push(callback);
  }

  /** What each instance says of this host, by name. */
  roles(): Readonly<Record<string, VrrpStateName>> {
    return Object.fromEntries(
      this.#vrrp.instances.map(({ virtualRouterId }) => {
        const name = instanceName(virtualRouterId);
        return [name, this.#daemon.pid === 0 ? 'unknown' : this.#states.of(name).state];
      }),
    );
  }

  /** With what lowers this host, by the settings that keepalived has taken. */
  priorities(reasons: readonly StandingReason[]): Readonly<Record<string, number>> {
    return prioritiesOf(this.#vrrp.instances, reasons);
  }

  /** Whether this host is master of the instance that an address goes with. */
  holds(address: string): boolean {
    if (this.#daemon.pid === 0) return false;
    for (const [name, addresses] of this.#file.held)
      if (addresses.has(address)) return this.#states.of(name).state === 'master';
    return false;
  }

  /** VIPs of it that keepalived is not given. */
  problemsOf({ key, vips }: Pick<LoadBalancer, 'key' | 'vips'>): readonly Problem[] {
    return vips.flatMap(({ address }): readonly Problem[] => {
      const why = this.#choice.reasonOf(address);
      if (why === undefined) return [];
      const message = `${address} does not go with the active host: ${why}`;
      return [{ object: objectOf(key), reason: 'AddressNotMovable', message }];
    });
  }

  status(): VrrpStatus {
    return vrrpStatus({
      vrrp: this.#vrrp,
      states: this.#states,
      daemon: this.#daemon,
      held: this.#file.held,
      lowered: this.#lowered ?? [],
      rivals: this.#rivals.instances,
      refused: this.#choice.refused,
      fault: this.#fault || this.#daemon.fault || this.#rivals.fault,
    });
  }

  /** The VIPs that go with an instance, without its anchors. */
  vipsOf(instance: string): readonly string[] {
    const anchors = new Set(this.#vrrp.instances.flatMap((each) => each.anchors));
    return [...(this.#file.held.get(instance) ?? [])].filter((address) => !anchors.has(address));
  }

  families(): readonly MetricFamily[] {
    return vrrpFamilies(this.#vrrp, this.#states);
  }

  /** Lets go of keepalived, which goes on. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#monitor.close();
    this.#notices.close();
    await this.#reconciler.close();
    this.#fifo.close();
    await this.#counters.write(this.#states.counts());
  }

  /** Ends the keepalived that was started here: for demonstrations and tests. Call close() first. */
  stopKeepalived(): Promise<void> {
    return this.#daemon.stop();
  }

  #want(wanted: ReadonlySet<string>): void {
    if (isSame(wanted, this.#wanted)) return;
    this.#wanted = wanted;
    if (this.#isOpen) void this.#reconciler.reconcile();
  }

  #failed(error: unknown): void {
    const fault = messageOf(error);
    if (fault !== this.#fault) this.#options.log.error('keepalived is not as it should be', { error: fault });
    this.#fault = fault;
  }

  /** Brings keepalived to what is wanted: file, reload or start; true where anything was changed. */
  async #step(): Promise<boolean> {
    const daemon = this.#daemon;
    const areFilesNew = daemon.version === '' && (await this.#prepare());
    await this.#standing.write();
    await daemon.notice(this.#file.text);
    if (areFilesNew) daemon.doubt();
    // It is going to read the file, as it stands there.
    if (!daemon.isVerified) this.#file.disown(await this.#file.read());
    // What is refused is no reason to be without keepalived: it goes on with, or starts from, what it took before.
    const refusal = await this.#write(this.#asked);
    if (refusal !== undefined && this.#asked !== this.#vrrp) await this.#write(this.#vrrp);
    const { text } = this.#file;
    if (text === undefined) throw refusal;
    const isStarted = daemon.pid === 0;
    const isReloaded = !isStarted && !daemon.isVerified;
    if (isStarted) await this.#start(text);
    else if (isReloaded) await daemon.reload(text);
    if (refusal !== undefined) throw refusal;
    return isStarted || isReloaded;
  }

  /** Everything that is needed before keepalived can be spoken to; as makeRuntimeFiles(). Errors: KEEPALIVED_MISSING, KEEPALIVED_VERSION. */
  async #prepare(): Promise<boolean> {
    const areNew = await makeRuntimeFiles({ paths: this.#paths, fifo: this.#fifo, standing: this.#standing });
    this.#file.take(await this.#file.read());
    await this.#daemon.find();
    void this.#warn();
    return areNew;
  }

  /** What is wrong with the host is said once; it does not keep keepalived from running. */
  async #warn(): Promise<void> {
    const { settings, log } = this.#options;
    const findings = await preflight({ ...settings, vrrp: this.#vrrp }, this.#paths).catch(() => []);
    for (const { what, detail } of findings.filter(({ ok }) => !ok))
      log.warn('This host is not ready for VRRP', { what, detail });
  }

  /** The refusal, where keepalived does not take the file that follows from these settings, or the disk does not. */
  async #write(vrrp: VrrpSettings): Promise<HeadgateError | undefined> {
    const text = renderKeepalived(vrrp, this.#paths, await this.#choice.choose(this.#wanted, vrrp));
    const outcome = await this.#file.replace(text);
    if (typeof outcome !== 'string') return outcome;
    if (outcome === 'changed') this.#daemon.doubt();
    if (vrrp !== this.#vrrp) {
      this.#vrrp = vrrp;
      this.#states.keep(vrrp.instances.map(({ virtualRouterId }) => instanceName(virtualRouterId)));
      void this.#warn();
    }
    return undefined;
  }

  async #start(text: string): Promise<void> {
    // Where nobody has said yet how this host stands it is lowered, as after a boot, whatever was said before.
    if (this.#options.settings.keepalivedSupervisor === 'agent') await this.#standing.lower();
    await this.#daemon.start(text);
  }
}

function isSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((each) => b.has(each));
}
