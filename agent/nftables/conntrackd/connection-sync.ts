// Keeps a conntrackd that copies the flows of the kernel path to the peer: its files, its rules, its process. Without the
// setting it removes what an earlier agent has left. Traffic never waits for it.
// Why: docs/design/decisions/0041-connection-sync.md

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import type { ConnectionSyncStatus } from '../../dataplane/status.ts';
import { contentOf, writeAtomically } from '../../host/atomic-file.ts';
import { KeptDaemon } from '../../host/daemon/kept-daemon.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { inNamespace } from '../../host/namespace.ts';
import { type CommandResult, runCommand } from '../../host/run-command.ts';
import { type ConntrackdPaths, conntrackdPaths } from './paths.ts';
import {
  type ConntrackdProgram,
  conntrackdProgram,
  conntrackdVersion,
  packetsReceived,
  sendAll,
} from './process.ts';
import { conntrackdText, syncRulesText } from './render.ts';
import type { SyncLink } from './sync-link.ts';

export interface ConnectionSyncSettings extends ConntrackdProgram {
  readonly stateDir: string;
  readonly runtimeDir: string;
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  readonly nft: string;
}

export interface ConnectionSyncOptions {
  readonly settings: ConnectionSyncSettings;
  /** Now; undefined if connections are not synchronised. */
  readonly link: () => SyncLink | undefined;
  readonly log: Log;
}

const COMMAND_TIMEOUT_MS = 5_000;

export class ConnectionSync {
  readonly #options: ConnectionSyncOptions;
  readonly #paths: ConntrackdPaths;
  readonly #daemon: KeptDaemon;
  #version = '';
  /** At the last check. */
  #received: number | undefined;
  #isPeerHeard = false;
  /** The rules that nft has loaded for this agent. */
  #rules = '';

  constructor(options: ConnectionSyncOptions) {
    const { settings, log } = options;
    this.#options = options;
    this.#paths = conntrackdPaths(settings.stateDir, settings.runtimeDir);
    this.#daemon = new KeptDaemon({
      program: conntrackdProgram(settings, this.#paths),
      messages: this.#paths.log,
      text: () => this.#text(),
      hooks: {
        onServes: () => sendAll(settings.conntrackd, this.#paths),
        onRemoved: () => this.#removeRules(),
        onChecked: () => this.#listen(),
      },
      onFault: (error) => {
        if (error !== '') log.error('Cannot synchronise connections', { error });
      },
      log,
    });
  }

  /** Adopts the conntrackd that runs, or starts one. Never rejects: an error is a fault, and is retried in the background. */
  start(): Promise<void> {
    return this.#daemon.keep();
  }

  /** The link may have changed. */
  configure(): void {
    void this.#daemon.keep();
  }

  /** undefined if connections are not synchronised. */
  status(): ConnectionSyncStatus | undefined {
    const link = this.#options.link();
    if (link === undefined) return undefined;
    const { pid, fault } = this.#daemon;
    return {
      version: this.#version,
      pid,
      peer: link.peer,
      isPeerHeard: this.#isPeerHeard,
      fault: fault && `Connections are not synchronised: ${fault}`,
    };
  }

  /** conntrackd and the rules stay. */
  close(): Promise<void> {
    return this.#daemon.close();
  }

  /** After close(): stops a conntrackd that was started here, for demonstrations and tests. */
  stop(): Promise<void> {
    return this.#daemon.stop();
  }

  /** Errors: any of the program, the files and nft. */
  async #text(): Promise<string | undefined> {
    const link = this.#options.link();
    if (link === undefined) return undefined;
    this.#version ||= await conntrackdVersion(this.#options.settings.conntrackd);
    const { config, directory } = this.#paths;
    for (const folder of [dirname(config), directory]) await makeFolder(folder, 0o700);
    await this.#putRules(syncRulesText(link, this.#paths));
    return conntrackdText(link, this.#paths);
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

  /** The rules of an earlier agent, or of this one. */
  async #removeRules(): Promise<void> {
    const { rules, table } = this.#paths;
    if (!existsSync(rules)) return;
    await this.#nft(['delete', 'table', 'inet', table]);
    this.#rules = '';
    // Last, because this file shows that there is something to remove.
    await rm(rules, { force: true });
    this.#options.log.info('Stopped conntrackd: connections are not synchronised');
  }

  /** Finds out if the peer's conntrackd, which sends something each second, was heard since the last time. */
  async #listen(): Promise<void> {
    const { link, settings, log } = this.#options;
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
