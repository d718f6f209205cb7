// keepalived.conf on disk: replaced only by a text that keepalived accepts, and read again, because another process may
// write to it.

import { readFile, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../../base/errors.ts';
import { renameDurably, writeDurably } from '../../../host/atomic-file.ts';
import { makeFolder } from '../../../host/make-directory.ts';
import { isShortage } from '../../../host/shortage.ts';
import type { KeepalivedOptions } from '../options.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { checkConfig } from '../process/process.ts';
import { addressesIn, changeOf } from './config-text.ts';

export interface ConfigFileOptions extends Pick<KeepalivedOptions, 'settings' | 'metrics' | 'log'> {
  readonly paths: KeepalivedPaths;
}

export class ConfigFile {
  readonly #options: ConfigFileOptions;
  #text: string | undefined;
  /** Another process has written to the file since. */
  #isForeign = false;
  #held: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  /** The last text that keepalived refused. */
  #rejected = '';

  constructor(options: ConfigFileOptions) {
    this.#options = options;
  }

  /** The agent's text in the file, also after another process has written to the file; undefined: none. */
  get text(): string | undefined {
    return this.#text;
  }

  /** The addresses in the text, by instance. */
  get held(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#held;
  }

  /** The content of the file now. Errors: FILE_READ if the agent lacks descriptors or memory to read it. */
  async read(): Promise<string | undefined> {
    const { config } = this.#options.paths;
    return readFile(config, 'utf8').catch((cause) => {
      if (!isShortage(cause)) return undefined;
      throw new HeadgateError('FILE_READ', `Cannot read "${config}"`, { cause });
    });
  }

  /** Takes over the content that an earlier agent has written. */
  adopt(found: string | undefined): void {
    this.#text = found;
    this.#held = addressesIn(found ?? '');
  }

  /**
   * Marks the file for the next replace() if its content is not the agent's; true if that is new. The agent's text
   * stays, because keepalived has put its addresses on this host.
   */
  disown(found: string | undefined): boolean {
    const { paths, metrics, log } = this.#options;
    if (found === this.#text || this.#isForeign) return false;
    this.#isForeign = true;
    log.warn('Another process changed keepalived.conf: the agent writes it again', { path: paths.config });
    metrics.repaired('file');
    return true;
  }

  /**
   * `changed`; `same` if the text is there already; or the error if keepalived refuses the text or the disk fails
   * (KEEPALIVED_REJECTED, FILE_WRITE), and the file is then as it was. Errors: COMMAND_FAILED.
   */
  async replace(text: string): Promise<'changed' | 'same' | HeadgateError> {
    const { metrics, log } = this.#options;
    const change = changeOf(this.#isForeign ? undefined : this.#text, text);
    if (change.kind === 'none') return 'same';
    try {
      await this.#write(text);
    } catch (error) {
      if (!(error instanceof HeadgateError) || error.code === 'COMMAND_FAILED') throw error;
      if (error.code === 'KEEPALIVED_REJECTED') {
        if (this.#rejected !== text) metrics.keepalivedReloaded('failed');
        this.#rejected = text;
      }
      return error;
    }
    this.adopt(text);
    this.#isForeign = false;
    this.#rejected = '';
    const counts =
      change.kind === 'vips' ? { added: change.added.length, removed: change.removed.length } : {};
    log.info('Changed keepalived.conf', { for: change.kind, ...counts });
    return 'changed';
  }

  /** Errors: KEEPALIVED_REJECTED, FILE_WRITE, COMMAND_FAILED; the file is then as it was. */
  async #write(text: string): Promise<void> {
    const { settings, paths } = this.#options;
    const candidate = `${paths.config}.candidate`;
    try {
      await makeFolder(dirname(paths.config), 0o700);
      await writeDurably(candidate, [text]);
      const faults = await checkConfig(settings.keepalived, settings.netns, candidate);
      if (faults !== '') {
        const message = `keepalived refuses its configuration: ${faults.replaceAll(candidate, 'keepalived.conf')}`;
        throw new HeadgateError('KEEPALIVED_REJECTED', message, { retry: 'never' });
      }
      await renameDurably(candidate, paths.config);
    } catch (error) {
      await unlink(candidate).catch(() => undefined);
      if (error instanceof HeadgateError) throw error;
      throw new HeadgateError('FILE_WRITE', `Cannot write "${paths.config}"`, {
        retry: 'later',
        cause: error,
      });
    }
  }
}
