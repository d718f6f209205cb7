// keepalived of an amphora, with the text that Octavia's controller has pushed, unchanged. An uploaded text is used from the
// next start or reload on. The daemon outlives the agent and is started again if it ends.

import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { type Serial, serial } from '../../base/serial.ts';
import { contentOf, writeAtomically } from '../../host/atomic-file.ts';
import { KeptDaemon } from '../../host/daemon/kept-daemon.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { AmphoraVrrp } from '../parts.ts';
import { type Checked, CheckScript } from './check-script.ts';
import { type KeepalivedOptions, keepalivedProgram, reloadKeepalived } from './keepalived-process.ts';
import { type VrrpPaths, vrrpPaths } from './paths.ts';

export interface VrrpOptions extends KeepalivedOptions {
  /** `base_path` of the controller: its text names files below it. */
  readonly base: string;
  readonly runtimeDir: string;
  readonly log: Log;
}

export class Vrrp implements AmphoraVrrp {
  readonly #paths: VrrpPaths;
  readonly #daemon: KeptDaemon;
  readonly #script: CheckScript;
  readonly #turns: Serial = serial();
  /** What keepalived is to run with; undefined: it is not to run. */
  #text: string | undefined;

  constructor(options: VrrpOptions) {
    const { base, runtimeDir, log } = options;
    this.#paths = vrrpPaths(base, runtimeDir);
    this.#script = new CheckScript(this.#paths);
    this.#daemon = new KeptDaemon({
      program: keepalivedProgram(options, this.#paths),
      messages: this.#paths.log,
      text: () => this.#prepared(),
      reload: reloadKeepalived,
      onFault: (reason) => {
        if (reason !== '') log.error('keepalived does not run as it should', { error: reason });
      },
      log,
    });
  }

  /** Errors: OCTAVIA_INVALID, FILE_WRITE. */
  upload(text: string): Promise<void> {
    return this.#turns.run(async () => {
      if (!/^vrrp_instance\s/m.test(text) || text.includes('\0'))
        throw new HeadgateError('OCTAVIA_INVALID', 'The text has no vrrp_instance', { retry: 'never' });
      await this.#prepareFolders();
      await writeAtomically(this.#paths.uploaded, [text], { mode: 0o644 });
    });
  }

  /** A keepalived that runs is reloaded if the text is another one. Errors: OCTAVIA_INVALID, KEEPALIVED_START, FILE_READ. */
  start(): Promise<void> {
    return this.#turns.run(async () => {
      this.#text = await this.#uploaded();
      if (this.#text === undefined)
        throw new HeadgateError('OCTAVIA_INVALID', 'keepalived has no configuration yet', { retry: 'never' });
      await this.#keep();
    });
  }

  /** As start(), because the reference starts what is down. */
  reload(): Promise<void> {
    return this.start();
  }

  /** Errors: KEEPALIVED_START. */
  stop(): Promise<void> {
    return this.#turns.run(async () => {
      this.#text = undefined;
      await this.#keep();
    });
  }

  /** Errors: KEEPALIVED_START, FILE_WRITE. */
  restore(): Promise<void> {
    return this.#turns.run(async () => {
      await this.#prepareFolders();
      this.#text = await contentOf(this.#paths.config);
      await this.#keep();
    });
  }

  async isWell(): Promise<boolean> {
    if (this.#text === undefined) return true;
    return this.#daemon.pid !== 0 && isAlive(this.#daemon.pid);
  }

  /** What the check script checks from now on, also after the end of the agent. Errors: FILE_WRITE. */
  check(checked: Checked): Promise<void> {
    return this.#script.check(checked);
  }

  /** keepalived continues. */
  async close(): Promise<void> {
    await this.#daemon.close();
  }

  async #keep(): Promise<void> {
    await this.#daemon.keep();
    if (this.#daemon.fault !== '') throw new HeadgateError('KEEPALIVED_START', this.#daemon.fault);
  }

  async #prepared(): Promise<string | undefined> {
    if (this.#text !== undefined) await this.#prepareFolders();
    return this.#text;
  }

  /** keepalived runs the script as another user if there is one for it. */
  async #prepareFolders(): Promise<void> {
    await makeFolder(dirname(this.#paths.script), 0o755);
    await makeFolder(this.#paths.directory, 0o711);
    await this.#script.keep();
  }

  async #uploaded(): Promise<string | undefined> {
    return readFile(this.#paths.uploaded, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw new HeadgateError('FILE_READ', `Cannot read "${this.#paths.uploaded}"`, { cause: error });
    });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
