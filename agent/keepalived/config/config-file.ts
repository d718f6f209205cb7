// keepalived.conf as it stands: read, replaced by what keepalived takes, and looked at again, because others may write to
// it, too.

import { readFile } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
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
  #read: { readonly text: string | undefined; readonly held: ReadonlyMap<string, ReadonlySet<string>> } = {
    text: undefined,
    held: new Map(),
  };
  /** A text that keepalived refused. */
  #rejected = '';

  constructor(options: ConfigFileOptions) {
    this.#options = options;
  }

  /** What stands in the file; undefined: none of ours. */
  get text(): string | undefined {
    return this.#text;
  }

  /** The addresses in it by instance; scrapes ask for it often. */
  get held(): ReadonlyMap<string, ReadonlySet<string>> {
    if (this.#read.text !== this.#text)
      this.#read = { text: this.#text, held: addressesIn(this.#text ?? '') };
    return this.#read.held;
  }

  /** What is found in it now. */
  read(): Promise<string | undefined> {
    return readFile(this.#options.paths.config, 'utf8').catch(() => undefined);
  }

  /** What was found is what stands in it. */
  take(found: string | undefined): void {
    this.#text = found;
  }

  /**
   * `changed`, or `same` where there is nothing to do, or the refusal where keepalived does not take the text; the file
   * is then as it was. Errors: FILE_WRITE, COMMAND_FAILED.
   */
  async replace(text: string): Promise<'changed' | 'same' | HeadgateError> {
    const { executable, netns, paths, metrics, log } = this.#options;
    const plan = planKeepalived(this.#text, text);
    if (plan.kind === 'none') return 'same';
    try {
      await replaceConfig(executable, netns, paths, text);
    } catch (error) {
      if (!(error instanceof HeadgateError) || error.code !== 'KEEPALIVED_REJECTED') throw error;
      if (this.#rejected !== text) metrics.keepalivedReloaded('failed');
      this.#rejected = text;
      return error;
    }
    this.#text = text;
    this.#rejected = '';
    log.info('keepalived.conf is changed', { for: plan.kind, ...changesOf(plan) });
    return 'changed';
  }
}

function changesOf(plan: KeepalivedPlan): { readonly added?: number; readonly removed?: number } {
  return plan.kind === 'vips' ? { added: plan.added.length, removed: plan.removed.length } : {};
}
