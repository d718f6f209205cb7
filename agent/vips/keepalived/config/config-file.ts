// keepalived.conf as it stands: read, replaced by what keepalived takes, and looked at again, because others may write
// to it, too.

import { readFile } from 'node:fs/promises';
import { HeadgateError } from '../../../base/errors.ts';
import type { Log } from '../../../host/log.ts';
import { isShortage } from '../../../host/shortage.ts';
import { replaceConfig } from '../apply.ts';
import type { KeepalivedMetrics } from '../metrics.ts';
import type { KeepalivedPaths } from '../paths.ts';
import { type KeepalivedPlan, planKeepalived } from '../plan.ts';
import { addressesIn } from './config-text.ts';

export interface ConfigFileOptions {
  readonly executable: string;
  readonly netns: string;
  readonly paths: KeepalivedPaths;
  readonly metrics: KeepalivedMetrics;
  readonly log: Log;
}

export class ConfigFile {
  readonly #options: ConfigFileOptions;
  #text: string | undefined;
  /** Somebody else has written to it since. */
  #isForeign = false;
  #read: { readonly text: string | undefined; readonly held: ReadonlyMap<string, ReadonlySet<string>> } = {
    text: undefined,
    held: new Map(),
  };
  /** A text that keepalived refused. */
  #rejected = '';

  constructor(options: ConfigFileOptions) {
    this.#options = options;
  }

  /** What stands in the file, or stood there before somebody else wrote to it; undefined: none of ours. */
  get text(): string | undefined {
    return this.#text;
  }

  /** The addresses in it by instance; scrapes ask for it often. */
  get held(): ReadonlyMap<string, ReadonlySet<string>> {
    if (this.#read.text !== this.#text)
      this.#read = { text: this.#text, held: addressesIn(this.#text ?? '') };
    return this.#read.held;
  }

  /** What is found in it now. Errors: FILE_READ where a shortage leaves it unknown. */
  async read(): Promise<string | undefined> {
    const { config } = this.#options.paths;
    return readFile(config, 'utf8').catch((cause) => {
      if (!isShortage(cause)) return undefined;
      throw new HeadgateError('FILE_READ', `Cannot read "${config}"`, { cause });
    });
  }

  /** What was found is what stands in it. */
  take(found: string | undefined): void {
    this.#text = found;
  }

  /**
   * What is found there is not ours any more, and is replaced at the next occasion; true where that is news. The text
   * stays: by it keepalived has put addresses on this host, which are not the host's own.
   */
  disown(found: string | undefined): boolean {
    const { paths, metrics, log } = this.#options;
    if (found === this.#text || this.#isForeign) return false;
    this.#isForeign = true;
    log.warn('keepalived.conf was changed by someone else: written again', { path: paths.config });
    metrics.repaired('file');
    return true;
  }

  /**
   * `changed`, or `same` where there is nothing to do, or the refusal where keepalived does not take the text or the
   * disk does not (KEEPALIVED_REJECTED, FILE_WRITE); the file is then as it was. Errors: COMMAND_FAILED.
   */
  async replace(text: string): Promise<'changed' | 'same' | HeadgateError> {
    const { executable, netns, paths, metrics, log } = this.#options;
    const plan = planKeepalived(this.#isForeign ? undefined : this.#text, text);
    if (plan.kind === 'none') return 'same';
    try {
      await replaceConfig(executable, netns, paths, text);
    } catch (error) {
      if (!(error instanceof HeadgateError) || error.code === 'COMMAND_FAILED') throw error;
      if (error.code === 'KEEPALIVED_REJECTED') {
        if (this.#rejected !== text) metrics.keepalivedReloaded('failed');
        this.#rejected = text;
      }
      return error;
    }
    this.#text = text;
    this.#isForeign = false;
    this.#rejected = '';
    log.info('keepalived.conf is changed', { for: plan.kind, ...changesOf(plan) });
    return 'changed';
  }
}

function changesOf(plan: KeepalivedPlan): { readonly added?: number; readonly removed?: number } {
  return plan.kind === 'vips' ? { added: plan.added.length, removed: plan.removed.length } : {};
}
