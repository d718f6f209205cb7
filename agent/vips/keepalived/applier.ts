// Brings keepalived to its desired state, one step at a time: files, then a reload or a start. Without the agent
// keepalived continues with its last state.

import { type HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Reconciler } from '../../base/reconciler.ts';
import { instanceName, type VrrpSettings } from '../vrrp.ts';
import type { AuthState } from './auth/auth-steps.ts';
import type { Authentication } from './auth/authentication.ts';
import type { Daemon } from './daemon.ts';
import type { ConfigFile } from './files/config-file.ts';
import { renderKeepalived } from './files/render.ts';
import type { StandingFile } from './files/standing-file.ts';
import type { HostReadiness } from './host/host-readiness.ts';
import type { KeepalivedOptions } from './options.ts';
import type { KeepalivedPaths } from './paths.ts';
import type { NotifyFifo } from './process/fifo.ts';
import type { VrrpStates } from './states/vrrp-states.ts';
import type { VipChoice } from './vip-choice.ts';

export interface ApplierOptions extends Pick<KeepalivedOptions, 'settings' | 'log'> {
  readonly paths: KeepalivedPaths;
  readonly fifo: NotifyFifo;
  readonly standing: StandingFile;
  readonly file: ConfigFile;
  readonly daemon: Daemon;
  readonly choice: VipChoice;
  readonly facts: { readonly states: VrrpStates; readonly readiness: HostReadiness };
  readonly auth: Authentication;
}

/** The rest after a step, so that many changes at once need few reloads. */
const RELOAD_SPACING_MS = 100;
const BACKOFF = { firstMs: 100, mostMs: 5_000 } as const;

export class Applier {
  readonly reconciler: Reconciler;
  readonly #options: ApplierOptions;
  readonly #fault = new Fault('keepalived has not been reached yet');
  #vips: ReadonlySet<string> = new Set();
  #desired: VrrpSettings;
  /** The last settings that keepalived accepted. */
  #accepted: VrrpSettings;
  #isOpen = false;
  /** In the text that was written last. */
  #auth: AuthState | undefined;

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#desired = options.settings.vrrp;
    this.#accepted = options.settings.vrrp;
    this.reconciler = new Reconciler({
      step: () => this.#step(),
      onDone: () => void this.#fault.clear(),
      onFailed: (error) => {
        const message = messageOf(error);
        if (this.#fault.set(message))
          options.log.error('Cannot bring keepalived to its desired state', { error: message });
      },
      spacingMs: RELOAD_SPACING_MS,
      backoff: BACKOFF,
    });
  }

  /** The settings that keepalived has: the last ones that it accepted. */
  get vrrp(): VrrpSettings {
    return this.#accepted;
  }

  /** Why keepalived does not have the desired state; '' if it has. */
  get fault(): string {
    return this.#fault.text;
  }

  /** From start() to close(). */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves after the first step. Never rejects: an error is a fault, and is retried in the background. */
  async start(): Promise<void> {
    this.#isOpen = true;
    await this.reconciler.reconcile();
  }

  /** Resolves when no step is under way; none follows. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.reconciler.close();
  }

  setVips(vips: ReadonlySet<string>): void {
    if (vips.size === this.#vips.size && [...vips].every((each) => this.#vips.has(each))) return;
    this.#vips = vips;
    if (this.#isOpen) void this.reconciler.reconcile();
  }

  /** Settings that keepalived refuses are a fault and change nothing. */
  configure(vrrp: VrrpSettings): void {
    if (JSON.stringify(vrrp) === JSON.stringify(this.#desired)) return;
    this.#desired = vrrp;
    if (this.#isOpen) void this.reconciler.reconcile();
  }

  /** The key of advertisements may be another one. */
  async renewKey(): Promise<void> {
    if (!this.#isOpen) return;
    await this.#options.auth.readKey();
    if (this.#options.auth.isDue) await this.reconciler.reconcile();
  }

  /** True if it changed anything. Errors: any of the files, of the program and of keepalived. */
  async #step(): Promise<boolean> {
    const { standing, daemon, file, auth } = this.#options;
    const isFifoNew = daemon.version === '' && (await this.#prepare());
    await standing.write();
    await daemon.refresh(file.text);
    // A running keepalived opens a new FIFO at a reload.
    if (isFifoNew) daemon.needsReload();
    // keepalived is about to read the file as it is on disk.
    if (!daemon.isVerified) file.disown(await file.read());
    // keepalived continues with, or starts from, what it accepted before a refusal.
    const refusal = await this.#write(this.#desired);
    if (refusal !== undefined && this.#desired !== this.#accepted) await this.#write(this.#accepted);
    const { text } = file;
    if (text === undefined) throw refusal;
    const isStarted = daemon.pid === 0;
    const isReloaded = !isStarted && !daemon.isVerified;
    if (isStarted) await this.#start(text);
    else if (isReloaded) await daemon.reload(text, auth.isDue);
    if (this.#auth !== undefined) auth.applied(this.#auth);
    if (refusal !== undefined) throw refusal;
    return isStarted || isReloaded;
  }

  /** Before the first step; true if the FIFO is new. Errors: FILE_WRITE, FILE_READ, KEEPALIVED_MISSING, KEEPALIVED_VERSION. */
  async #prepare(): Promise<boolean> {
    const { fifo, standing, file, daemon, facts, auth } = this.#options;
    const isFifoNew = await fifo.open();
    await standing.make();
    file.adopt(await file.read());
    auth.adopt(file.text);
    await auth.readKey();
    await daemon.findProgram();
    void facts.readiness.check();
    return isFifoNew;
  }

  /** The error if keepalived refuses the file for these settings, or if the disk fails. Errors: COMMAND_FAILED. */
  async #write(vrrp: VrrpSettings): Promise<HeadgateError | undefined> {
    const { paths, choice, file, daemon, facts, auth } = this.#options;
    const vips = await choice.choose(this.#vips, vrrp);
    const { next } = auth;
    const text = renderKeepalived(vrrp, paths, vips, next);
    const outcome = await file.replace(text);
    if (typeof outcome !== 'string') return outcome;
    this.#auth = next;
    if (outcome === 'changed') daemon.needsReload();
    if (vrrp !== this.#accepted) {
      this.#accepted = vrrp;
      facts.states.retain(vrrp.instances.map(({ virtualRouterId }) => instanceName(virtualRouterId)));
      void facts.readiness.check();
    }
    return undefined;
  }

  async #start(text: string): Promise<void> {
    const { settings, standing, daemon } = this.#options;
    // Without a standing the host starts lowered, as after a boot, whatever an earlier agent wrote.
    if (settings.keepalivedSupervisor === 'agent') await standing.lower();
    await daemon.start(text);
  }
}
