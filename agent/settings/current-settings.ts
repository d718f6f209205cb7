// The settings in force: read at the start, and again at SIGHUP. Invalid settings change nothing.

import { readFileSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../host/log.ts';
import { type TranslateSettings, translateSettings } from '../translate/translate-settings.ts';
import { diffSettings, readSettings, type Settings } from './settings.ts';

export class CurrentSettings {
  readonly #argv: readonly string[];
  readonly #check: (settings: Settings) => unknown;
  #now: Settings;
  #translating: TranslateSettings;
  #isReleased: TranslateSettings['isReleased'];

  /** `check` throws SETTINGS_INVALID for settings that contradict each other. Errors: SETTINGS_INVALID. */
  constructor(argv: readonly string[], check: (settings: Settings) => unknown) {
    this.#argv = argv;
    this.#check = check;
    this.#now = this.#read();
    check(this.#now);
    this.#translating = translateSettings(this.#now);
  }

  get now(): Settings {
    return this.#now;
  }

  /** The settings that translation reads. */
  get translating(): TranslateSettings {
    return this.#translating;
  }

  /** From now on translation leaves out what an operator has released. */
  leaveOut(isReleased: (namespace: string) => boolean): void {
    this.#isReleased = isReleased;
    this.#translating = { ...this.#translating, isReleased };
  }

  /** Logs the changes, and which of them need a restart. Returns false if the settings are invalid. */
  reread(log: Log): boolean {
    try {
      const next = this.#read();
      const changed = diffSettings(this.#now, next);
      const kept = changed
        .filter(({ needsRestart }) => needsRestart)
        .map(({ name }) => [name, this.#now[name]]);
      const inForce = { ...next, ...Object.fromEntries(kept) };
      this.#check(inForce);
      if (changed.length === 0) log.info('The settings have not changed');
      for (const { name, from, to, needsRestart } of changed) {
        const effect = needsRestart ? 'takes effect at the next restart' : 'is in effect';
        log.info(`A changed setting ${effect}`, { setting: name, from, to });
      }
      this.#now = inForce;
      this.#translating = { ...translateSettings(inForce), isReleased: this.#isReleased };
      return true;
    } catch (error) {
      log.error('Cannot use the new settings: the old ones stay in effect', { error: messageOf(error) });
      return false;
    }
  }

  #read(): Settings {
    const readFile = (path: string): string => readFileSync(path, 'utf8');
    return readSettings({ argv: this.#argv, env: process.env, readFile });
  }
}
