// The amphora's settings in force: read at the start, and replaced by `PUT config`. Invalid ones change nothing.

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { type AmphoraSettings, readAmphoraSettings } from './amphora-settings.ts';

export class CurrentAmphoraSettings {
  readonly #path: string;
  #now: AmphoraSettings;

  /** Errors: FILE_READ, SETTINGS_INVALID. */
  constructor(path: string) {
    this.#path = path;
    this.#now = readAmphoraSettings(textOf(path), path);
  }

  get now(): AmphoraSettings {
    return this.#now;
  }

  /**
   * Checks, stores and uses a new text. Address, port, paths and the amphora's id stay until the next start. Errors:
   * SETTINGS_INVALID, FILE_WRITE; the old settings then stay.
   */
  async replace(text: string): Promise<void> {
    const next = readAmphoraSettings(text, this.#path);
    await writeAtomically(this.#path, [text]);
    this.#use(next);
  }

  /** As replace(), with the file as it is. Errors: FILE_READ, SETTINGS_INVALID. */
  reread(): void {
    this.#use(readAmphoraSettings(textOf(this.#path), this.#path));
  }

  #use(next: AmphoraSettings): void {
    const { amphoraId, paths, haproxy, rest, logFacilities } = this.#now;
    this.#now = { ...next, amphoraId, paths, haproxy, rest, logFacilities };
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new HeadgateError('FILE_READ', `Cannot read "${path}"`, { retry: 'later', cause });
  }
}
