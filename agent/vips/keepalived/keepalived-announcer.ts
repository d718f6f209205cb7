// The announcer for VRRP with keepalived: puts its parts together, takes the VIPs and the standing of this host, and
// reports the state of VRRP.

import type { MetricFamily } from '../../base/metric-family.ts';
import type { OwnFile } from '../../host/own-files.ts';
import type { LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { Announcer, StandingReason, Withheld } from '../announcer.ts';
import { VipBook } from '../vip-book.ts';
import {
  instanceName,
  loweredBy,
  prioritiesOf,
  type VrrpState,
  type VrrpStateName,
  type VrrpStatus,
} from '../vrrp.ts';
import { Applier } from './applier.ts';
import type { PeerAuth } from './auth/auth-steps.ts';
import { Authentication } from './auth/authentication.ts';
import { Daemon } from './daemon.ts';
import { ConfigFile } from './files/config-file.ts';
import { StandingFile } from './files/standing-file.ts';
import { HostReadiness } from './host/host-readiness.ts';
import { OwnAddress } from './host/own-address.ts';
import { preflight } from './host/preflight.ts';
import { KeepalivedMonitor } from './keepalived-monitor.ts';
import { Notices } from './notices.ts';
import type { KeepalivedOptions, KeepalivedSettings } from './options.ts';
import { type KeepalivedPaths, keepalivedPaths } from './paths.ts';
import { NotifyFifo } from './process/fifo.ts';
import { Rivals } from './states/rivals.ts';
import { VrrpCounters } from './states/vrrp-counters.ts';
import { VrrpStates } from './states/vrrp-states.ts';
import { vrrpFamilies, vrrpStatus } from './states/vrrp-status.ts';
import { VipChoice } from './vip-choice.ts';

/** By the state of the VIP's instance. */
const WITHHELD: Readonly<Record<VrrpStateName, Withheld>> = {
  master: '',
  backup: 'standby',
  fault: 'fault',
  unknown: 'unknown',
};

export class KeepalivedAnnouncer implements Announcer<VrrpStatus> {
  readonly ownFiles: readonly OwnFile[];
  readonly #book: VipBook;
  readonly #counters: VrrpCounters;
  readonly #states: VrrpStates;
  readonly #rivals: Rivals;
  readonly #fifo: NotifyFifo;
  readonly #standing: StandingFile;
  readonly #file: ConfigFile;
  readonly #daemon: Daemon;
  readonly #choice: VipChoice;
  readonly #readiness: HostReadiness;
  readonly #ownAddress: OwnAddress;
  readonly #applier: Applier;
  readonly auth: Authentication;
  #keyPath: string;
  readonly #notices: Notices;
  readonly #monitor: KeepalivedMonitor;
  readonly #onState: ((state: VrrpState) => void)[] = [];
  #auditInterval: number;
  /** What lowers this host; undefined before the first standing(). */
  #lowered: readonly StandingReason[] | undefined;

  constructor({ settings, log, metrics, onRefused, isOwn }: KeepalivedOptions) {
    this.#book = new VipBook(isOwn);
    const paths = keepalivedPaths(settings.stateDir, settings.runtimeDir);
    const advertInterval = (): number => this.#applier.vrrp.advertInterval;
    this.#auditInterval = settings.auditInterval;
    this.#keyPath = settings.vrrpKey ?? '';
    this.#counters = new VrrpCounters(paths.counters);
    this.#states = new VrrpStates(
      (state) => {
        const level = state.state === 'fault' ? 'warn' : 'info';
        log[level]('VRRP has changed its state', { instance: state.instance, state: state.state });
        for (const callback of this.#onState) callback(state);
        // The link may have come up without the address.
        void this.#ownAddress.check();
      },
      this.#counters.read(),
      () => void this.#counters.write(this.#states.counts()),
    );
    this.#rivals = new Rivals(advertInterval, log);
    this.#fifo = new NotifyFifo(paths.fifo, (line) => this.#notices.receive(line));
    // keepalived notifies changes of state, but not of priority.
    this.#standing = new StandingFile(paths.standing, () => {
      if (this.#applier.isOpen) this.#notices.readSoon();
    });
    this.#file = new ConfigFile({ settings, paths, metrics, log });
    this.#daemon = new Daemon({
      settings,
      paths,
      states: this.#states,
      onExit: () => void this.#monitor.check(),
      metrics,
      log,
    });
    this.#choice = new VipChoice({
      netns: settings.netns,
      file: this.#file,
      daemon: this.#daemon,
      onRefused: (addresses) => onRefused?.(this.#book.usersOf(addresses)),
    });
    this.#readiness = new HostReadiness(
      () => preflight({ ...settings, vrrpKey: this.#keyPath, vrrp: this.#applier.vrrp }, paths),
      log,
    );
    this.#ownAddress = new OwnAddress({
      netns: settings.netns,
      address: () => this.#applier.vrrp.address,
      onChange: (isHere) => {
        this.#standing.takeOut(!isHere);
        this.#writeStanding();
        // A keepalived that was started without the address stays in state fault until a reload.
        if (isHere) this.#daemon.needsReload();
        if (isHere && this.#applier.isOpen) void this.#applier.reconciler.reconcile();
      },
      log,
    });
    this.auth = new Authentication({
      path: () => this.#keyPath,
      canUse: () => this.#daemon.canAuthenticate,
      version: () => this.#daemon.version,
      log,
    });
    this.#applier = new Applier({
      auth: this.auth,
      settings,
      paths,
      fifo: this.#fifo,
      standing: this.#standing,
      file: this.#file,
      daemon: this.#daemon,
      choice: this.#choice,
      facts: { states: this.#states, readiness: this.#readiness },
      log,
    });
    const { reconciler } = this.#applier;
    this.#notices = new Notices({
      daemon: this.#daemon,
      states: this.#states,
      rivals: this.#rivals,
      reconciler,
      read: () => void this.#daemon.compare(this.#file.text ?? ''),
    });
    this.#monitor = new KeepalivedMonitor({
      paths,
      watched: {
        daemon: this.#daemon,
        file: this.#file,
        states: this.#states,
        readiness: this.#readiness,
      },
      reconciler,
      intervals: { advert: advertInterval, audit: () => this.#auditInterval },
      onCheck: () => this.#rivals.check(),
      hasRefused: () => this.#choice.refused.length > 0,
      metrics,
      log,
    });
    this.ownFiles = this.#sharedFiles(paths);
  }

  /**
   * Adopts the keepalived that runs, or starts one, with the current VIPs. Never rejects: an error is a fault, and is
   * retried in the background.
   */
  async start(): Promise<void> {
    await this.#ownAddress.start();
    await this.#applier.start();
    if (this.#applier.isOpen) this.#monitor.start();
  }

  /** New settings. Settings of VRRP that keepalived refuses are a fault and change nothing. */
  configure({
    vrrp,
    vrrpKey = '',
    auditInterval,
  }: Pick<KeepalivedSettings, 'vrrp' | 'vrrpKey' | 'auditInterval'>): void {
    this.#keyPath = vrrpKey;
    void this.#applier.renewKey();
    if (auditInterval !== this.#auditInterval) {
      this.#auditInterval = auditInterval;
      this.#monitor.retime();
    }
    this.#applier.configure(vrrp);
  }

  follow(keys: Iterable<string>, loadBalancers: ReadonlyMap<string, Pick<LoadBalancer, 'vips'>>): void {
    let hasChanged = false;
    for (const key of keys) hasChanged = this.#book.update(key, loadBalancers.get(key)) || hasChanged;
    if (hasChanged) this.#applier.setVips(new Set(this.#book.addresses()));
  }

  /** The caller decides on hysteresis. */
  standing(reasons: readonly StandingReason[]): void {
    this.#lowered = [...reasons];
    this.#standing.set(loweredBy(reasons));
    this.#writeStanding();
  }

  /** What the peer reports of the authentication of its advertisements; undefined if it is not heard. */
  hearAuth(peer: PeerAuth | undefined): void {
    if (this.auth.hear(peer) && this.#applier.isOpen) void this.#applier.reconciler.reconcile();
  }

  /** Reads the key of advertisements again. */
  renewKey(): Promise<void> {
    return this.#applier.renewKey();
  }

  /** `callback` gets each transition of an instance. */
  onState(callback: (state: VrrpState) => void): void {
    this.#onState.push(callback);
  }

  /** The state of each instance on this host, by the instance's name. */
  roles(): Readonly<Record<string, VrrpStateName>> {
    return Object.fromEntries(
      this.#applier.vrrp.instances.map(({ virtualRouterId }) => {
        const name = instanceName(virtualRouterId);
        const { state } = this.#states.of(name);
        // A backup that receives nothing does not take over either.
        const isDeaf = state === 'backup' && this.#monitor.hasStopped(name);
        return [name, this.#daemon.pid === 0 ? 'unknown' : isDeaf ? 'fault' : state];
      }),
    );
  }

  /** The priorities that these reasons leave, by the instance's name; of the settings that keepalived has accepted. */
  priorities(reasons: readonly StandingReason[]): Readonly<Record<string, number>> {
    return prioritiesOf(this.#applier.vrrp.instances, reasons);
  }

  withheld(address: string): Withheld {
    if (this.#daemon.pid === 0) return 'stopped';
    for (const [name, addresses] of this.#file.held)
      if (addresses.has(address)) return WITHHELD[this.#states.of(name).state];
    return this.#choice.refusalOf(address) === undefined ? 'unwanted' : 'refused';
  }

  problemsOf({ key, vips }: Pick<LoadBalancer, 'key' | 'vips'>): readonly Problem[] {
    const object = objectOf(key);
    return vips.flatMap(({ address }): readonly Problem[] => {
      const refusal = this.#choice.refusalOf(address);
      if (refusal === undefined) return [];
      const { reason, isUnavailable } = refusal;
      return [
        isUnavailable
          ? { object, reason: 'AddressUnavailable', message: `Cannot announce ${address}: ${reason}` }
          : {
              object,
              reason: 'AddressNotMovable',
              message: `${address} does not go with the active host: ${reason}`,
            },
      ];
    });
  }

  status(): VrrpStatus {
    return vrrpStatus({
      vrrp: this.#applier.vrrp,
      states: this.#states,
      daemon: this.#daemon,
      held: this.#file.held,
      lowered: this.#lowered ?? [],
      auth: this.auth.status(),
      rivals: this.#rivals.instances,
      refused: this.#choice.refused,
      fault: this.#fault,
      unready: this.#readiness.faults.map(({ what, detail }) => ({ what, detail })),
    });
  }

  /** The VIPs of an instance, without its anchors. */
  vipsOf(instance: string): readonly string[] {
    const anchors = new Set(this.#applier.vrrp.instances.flatMap((each) => each.anchors));
    return [...(this.#file.held.get(instance) ?? [])].filter((address) => !anchors.has(address));
  }

  families(): readonly MetricFamily[] {
    return vrrpFamilies(this.#applier.vrrp, this.#states);
  }

  async close(): Promise<void> {
    this.#ownAddress.close();
    this.#monitor.close();
    this.#notices.close();
    await this.#applier.close();
    this.#fifo.close();
    await this.#counters.write(this.#states.counts());
  }

  stop(): Promise<void> {
    return this.#daemon.stop();
  }

  #sharedFiles(paths: KeepalivedPaths): readonly OwnFile[] {
    const { reconciler } = this.#applier;
    // Not before the first step has made them, and not while a step uses them.
    const canRestore = (): boolean =>
      this.#applier.isOpen && this.#daemon.version !== '' && !reconciler.isUnderWay;
    return [
      {
        path: paths.fifo,
        kind: 'file',
        isIntact: async () => !canRestore() || (await this.#fifo.isIntact()),
        restore: async () => {
          if (!(await this.#fifo.open())) return;
          this.#daemon.needsReload();
          void reconciler.reconcile();
        },
      },
      {
        path: paths.standing,
        kind: 'file',
        isIntact: async () => !canRestore() || (await this.#standing.isIntact()),
        restore: () => this.#standing.restore(),
      },
    ];
  }

  get #fault(): string {
    const parts = [this.#ownAddress, this.#applier, this.#daemon, this.#monitor, this.#rivals];
    return parts.map(({ fault }) => fault).find(Boolean) ?? '';
  }

  #writeStanding(): void {
    // The first step makes the file's folder.
    if (this.#daemon.version !== '')
      this.#standing.write().catch((error) => this.#applier.reconciler.fail(error));
  }
}
