// Keeps a conntrackd that copies the flows of the kernel path to the peer: its files, its rules, its process. Without the
// setting it removes what an earlier agent has left. Traffic never waits for it.
// Why: docs/design/decisions/0041-connection-sync.md

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Reconciler } from '../../base/reconciler.ts';
import { Rounds } from '../../base/rounds.ts';
import type { ConnectionSyncStatus } from '../../dataplane/status.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { runsWith } from '../../host/daemon/find.ts';
import { DaemonLog } from '../../host/daemon-output.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { inNamespace } from '../../host/namespace.ts';
import { type CommandResult, runCommand } from '../../host/run-command.ts';
import { type ConntrackdPaths, conntrackdPaths } from './paths.ts';
import {
  awaitConntrackd,
  conntrackdVersion,
  findConntrackd,
  packetsReceived,
  sendAll,
  startConntrackd,
  stopConntrackd,
} from './process.ts';
import { conntrackdText, syncRulesText } from './render.ts';
import type { SyncLink } from './sync-link.ts';

export interface ConnectionSyncSettings {
  readonly stateDir: string;
  readonly runtimeDir: string;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** The programs. */
  readonly nft: string;
  readonly conntrackd: string;
  /** `external`: another program, such as systemd, starts and restarts conntrackd. */
  readonly conntrackdSupervisor: 'agent' | 'external';
}

export interface ConnectionSyncOptions {
  readonly settings: ConnectionSyncSettings;
  /** Now; undefined if connections are not synchronised. */
  readonly link: () => SyncLink | undefined;
  readonly log: Log;
}

/** The two conntrackds send something each second. */
const CHECK_INTERVAL_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_LOG_BYTES = 4 * 1024 * 1024;

export class ConnectionSync {
  readonly #options: ConnectionSyncOptions;
  readonly #paths: ConntrackdPaths;
  readonly #reconciler: Reconciler;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  readonly #daemonLog: DaemonLog;
  #version = '';
  #pid = 0;
  /** At the last check. */
  #received: number | undefined;
  #isPeerHeard = false;
  #hasStarted = false;
  /** The rules that nft has loaded for this agent. */
  #rules = '';

  constructor(options: ConnectionSyncOptions) {
    const { settings, log } = options;
    this.#options = options;
    this.#paths = conntrackdPaths(settings.stateDir, settings.runtimeDir);
    this.#daemonLog = new DaemonLog(this.#paths.log, MAX_LOG_BYTES);
    this.#reconciler = new Reconciler({
      step: async () => {
        await this.#step();
        return false;
      },
      onDone: () => void this.#fault.clear(),
      onFailed: (error) => {
        const message = messageOf(error);
        if (this.#fault.set(message)) log.error('Cannot synchronise connections', { error: message });
      },
      spacingMs: 0,
      backoff: { firstMs: 200, mostMs: 30_000 },
    });
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => this.#reconciler.fail(error),
    });
  }

  /** Adopts the conntrackd that runs, or starts one. Never rejects: an error is a fault, and is retried in the background. */
  async start(): Promise<void> {
    await this.#reconciler.reconcile();
    if (this.#options.link() !== undefined) this.#rounds.start();
  }

  /** The link may have changed. */
  configure(): void {
    void this.#reconciler.reconcile();
  }

  /** undefined if connections are not synchronised. */
  status(): ConnectionSyncStatus | undefined {
    const link = this.#options.link();
    if (link === undefined) return undefined;
    const fault = this.#fault.text && `Connections are not synchronised: ${this.#fault.text}`;
    const [version, pid, isPeerHeard] = [this.#version, this.#pid, this.#isPeerHeard];
    return { version, pid, peer: link.peer, isPeerHeard, fault };
  }

  /** conntrackd and the rules stay. */
  async close(): Promise<void> {
    this.#rounds.close();
    await this.#reconciler.close();
    this.#daemonLog.close();
  }

  /** After close(): stops a conntrackd that was started here, for demonstrations and tests. */
  async stop(): Promise<void> {
    if (this.#hasStarted) await this.#remove();
  }

  /** Errors: any of the files, nft and conntrackd. */
  async #step(): Promise<void> {
    const link = this.#options.link();
    const { settings, log } = this.#options;
    const { config, rules, directory } = this.#paths;
    if (link === undefined) {
      if (existsSync(rules)) await this.#remove();
      return;
    }
    this.#version ||= await conntrackdVersion(settings.conntrackd);
    for (const folder of [dirname(config), directory]) await makeFolder(folder, 0o700);
    await this.#putRules(syncRulesText(link, this.#paths));
    await this.#putConfig(conntrackdText(link, this.#paths));
    const before = this.#pid;
    this.#pid = (await runsWith(before, config)) ? before : await findConntrackd(this.#paths);
    if (before !== 0 && this.#pid !== before) log.error('conntrackd has ended', { pid: before });
    if (this.#pid === 0) await this.#start();
    else if (this.#pid !== before) log.info('Adopted the conntrackd that runs', { pid: this.#pid });
    if (this.#pid !== before) await sendAll(settings.conntrackd, this.#paths);
  }

  /** Loads rules that are new or that another process has removed. Errors: NFT_FAILED, FILE_WRITE. */
  async #putRules(text: string): Promise<void> {
    const { rules, table } = this.#paths;
    if ((await contentOf(rules)) !== text) await writeAtomically(rules, [text]);
    const isThere = async () => (await this.#nft(['list', 'chain', 'inet', table, 'peer'])).exitCode === 0;
    if (text === this.#rules && (await isThere())) return;
    const { exitCode, stderr } = await this.#nft(['-f', rules]);
    if (exitCode !== 0) {
      const why = stderr.trim().slice(0, 500);
      throw new HeadgateError('NFT_FAILED', `nft refuses the rules of connection synchronisation: ${why}`);
    }
    this.#rules = text;
  }

  /**
   * Stops a conntrackd that has another file, because it cannot reload one. The file is absent until then, so that no
   * conntrackd ever runs with another text than that on disk. Errors: FILE_WRITE, CONNTRACKD_START.
   */
  async #putConfig(text: string): Promise<void> {
    const { config } = this.#paths;
    if ((await contentOf(config)) === text) return;
    await rm(config, { force: true });
    await this.#stopDaemon();
    await writeAtomically(config, [text]);
  }

  /** Errors: CONNTRACKD_MISSING, CONNTRACKD_START. */
  async #start(): Promise<void> {
    const { settings, log } = this.#options;
    if (settings.conntrackdSupervisor === 'external') {
      this.#pid = await awaitConntrackd(this.#paths);
      log.info('The supervisor has started conntrackd', { pid: this.#pid });
      return;
    }
    this.#hasStarted = true;
    const { child, pid } = await startConntrackd(settings.conntrackd, settings.netns, this.#paths);
    child.once('exit', () => void this.#reconciler.reconcile());
    this.#pid = pid;
    log.info('Started conntrackd', { pid, version: this.#version });
  }

  async #stopDaemon(): Promise<void> {
    const pid = await findConntrackd(this.#paths);
    if (pid !== 0) await stopConntrackd(pid, this.#paths);
    this.#pid = 0;
  }

  /** The conntrackd of an earlier agent, or of this one, and its rules. */
  async #remove(): Promise<void> {
    const { config, rules, table } = this.#paths;
    await rm(config, { force: true });
    await this.#stopDaemon();
    await this.#nft(['delete', 'table', 'inet', table]);
    this.#rules = '';
    // Last, because this file shows that there is something to remove.
    await rm(rules, { force: true });
    this.#options.log.info('Stopped conntrackd: connections are not synchronised');
  }

  async #check(): Promise<void> {
    const { link, settings, log } = this.#options;
    await this.#reconciler.reconcile();
    this.#daemonLog.trim(this.#pid);
    const received = await packetsReceived(settings.conntrackd, this.#paths);
    const isHeard = received !== undefined && this.#received !== undefined && received !== this.#received;
    this.#received = received;
    if (isHeard === this.#isPeerHeard) return;
    this.#isPeerHeard = isHeard;
    const peer = link()?.peer;
    if (isHeard) log.info('conntrackd of the peer sends its connections', { peer });
    else log.warn('conntrackd of the peer does not send its connections any more', { peer });
  }

  #nft(words: readonly string[]): Promise<CommandResult> {
    const { nft, netns } = this.#options.settings;
    return runCommand(...inNamespace(netns, nft, words), { timeout: COMMAND_TIMEOUT_MS });
  }
}

/** undefined if there is no such file. */
function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
