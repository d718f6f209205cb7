// Keeps BIRD running with the settings. Settings that BIRD refuses, or with which a session that was established does not come
// back, are undone, and the last good ones stay until the settings change again.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { sleep } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import type { Serial } from '../../base/serial.ts';
import { contentOf, replaceInMemory } from '../../host/atomic-file.ts';
import { KeptDaemon } from '../../host/daemon/kept-daemon.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { BirdSocket } from './bird-socket.ts';
import type { BirdText } from './bird-text.ts';
import type { BirdSettings } from './options.ts';
import type { BirdPaths } from './paths.ts';
import { birdDaemon, birdVersion, checkConfig } from './process.ts';
import { sessionsIn } from './session-facts.ts';

export interface BirdDaemonOptions {
  readonly settings: BirdSettings;
  readonly paths: BirdPaths;
  readonly text: BirdText;
  /** A connection that may change BIRD. */
  readonly socket: BirdSocket;
  /** A change of the routes of VIPs would confirm settings that are not proved yet. */
  readonly turns: Serial;
  readonly hooks: BirdDaemonHooks;
  readonly log: Log;
}

export interface BirdDaemonHooks {
  /** The process is another one. */
  readonly onServes: () => Promise<void>;
  readonly onFault: (reason: string) => void;
}

/** BIRD undoes new settings after this time unless they are confirmed. */
const UNDO_SECONDS = 20;
const SESSIONS_TIMEOUT_MS = 15_000;
const POLL_INTERVAL_MS = 100;

export class BirdDaemon {
  readonly #options: BirdDaemonOptions;
  readonly #kept: KeptDaemon;
  #version = '';
  /** Texts by what became of them. */
  #good: string | undefined;
  #current = '';
  #refused: { readonly text: string; readonly message: string } | undefined;

  constructor(options: BirdDaemonOptions) {
    const { settings, paths, turns, log } = options;
    this.#options = options;
    this.#kept = new KeptDaemon({
      program: birdDaemon(settings, paths),
      messages: paths.log,
      text: () => this.#text(),
      reload: () => turns.run(() => this.#reload()),
      hooks: { onServes: () => this.#serves() },
      onFault: () => this.#report(),
      log,
    });
  }

  get pid(): number {
    return this.#kept.pid;
  }

  get version(): string {
    return this.#version;
  }

  get fault(): string {
    return this.#refused?.message || this.#options.text.fault || this.#kept.fault;
  }

  /** Brings BIRD to the settings, now and from now on. Never rejects. */
  keep(): Promise<void> {
    return this.#kept.keep();
  }

  close(): Promise<void> {
    return this.#kept.close();
  }

  /** After close(): stops a BIRD that was started here. */
  stop(): Promise<void> {
    return this.#kept.stop();
  }

  async #text(): Promise<string> {
    const { settings, paths } = this.#options;
    if (this.#version === '') this.#version = await birdVersion(settings.bird);
    await makeFolder(paths.directory, 0o700);
    // BIRD refuses a file that includes one that is not there.
    for (const path of Object.values(paths.vips)) if (!existsSync(path)) replaceInMemory(path, '', 0o600);
    const text = await this.#options.text.render();
    if (text === this.#refused?.text && this.#good !== undefined) return this.#chosen(this.#good);
    if (this.#refused !== undefined && text !== this.#refused.text) {
      this.#refused = undefined;
      this.#report();
    }
    if (text !== this.#good && text !== (await contentOf(paths.config))) {
      const faults = await this.#faultsOf(text);
      if (faults !== '' && (await this.#options.text.isolate((each) => this.#faultsOf(each))))
        return this.#text();
      if (faults !== '')
        throw new HeadgateError('BIRD_REJECTED', `BIRD refuses its file: ${faults}`, { retry: 'later' });
    }
    await this.#endWithoutSocket(text);
    return this.#chosen(text);
  }

  /** A BIRD whose socket another process has removed takes no orders any more: another one follows, with the file. */
  async #endWithoutSocket(text: string): Promise<void> {
    const { paths, log } = this.#options;
    if (this.pid === 0 || existsSync(paths.socket)) return;
    log.warn('The socket of BIRD is gone: BIRD starts again', { socket: paths.socket });
    replaceInMemory(paths.config, text, 0o600);
    await this.#kept.end();
  }

  #serves(): Promise<void> {
    if (this.#good === undefined) {
      this.#good = this.#current;
      this.#options.text.proved();
    }
    return this.#options.hooks.onServes();
  }

  #chosen(text: string): string {
    this.#current = text;
    return text;
  }

  /** What BIRD says against the text; '' for nothing. */
  async #faultsOf(text: string): Promise<string> {
    const { settings, paths } = this.#options;
    replaceInMemory(paths.candidate, text, 0o600);
    try {
      return await checkConfig(settings.bird, paths.candidate);
    } finally {
      await rm(paths.candidate, { force: true });
    }
  }

  /** Errors: BIRD_REJECTED; BIRD_SOCKET. */
  async #reload(): Promise<void> {
    const { socket, text: texts } = this.#options;
    const text = this.#current;
    const names = texts.protocols;
    const before = (await this.#established()).filter((name) => names.has(name));
    await socket.ask(`configure timeout ${UNDO_SECONDS}`);
    const missing = await this.#untilEstablished(before);
    if (missing.length === 0) {
      await socket.ask('configure confirm');
      this.#good = text;
      texts.proved();
      return;
    }
    texts.refuse(missing);
    const message = `With the new settings of BGP these sessions do not come back: ${missing.join(', ')}: the former settings stay`;
    await socket.ask('configure undo').catch(() => undefined); // otherwise BIRD does it after the time
    if (text !== this.#good) this.#refused = { text, message };
    throw new HeadgateError('BIRD_REJECTED', message, { retry: 'later' });
  }

  async #established(): Promise<readonly string[]> {
    const { lines } = await this.#options.socket.ask('show protocols all');
    return [...sessionsIn(lines)].filter(([, { state }]) => state === 'Established').map(([name]) => name);
  }

  /** The names of sessions that are not established in time. */
  async #untilEstablished(names: readonly string[]): Promise<readonly string[]> {
    for (const until = performance.now() + SESSIONS_TIMEOUT_MS; ; await sleep(POLL_INTERVAL_MS)) {
      const now = new Set(await this.#established());
      const missing = names.filter((name) => !now.has(name));
      if (missing.length === 0 || performance.now() > until) return missing;
    }
  }

  #report(): void {
    this.#options.hooks.onFault(this.fault);
  }
}
