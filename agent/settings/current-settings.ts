// The settings in force: read at the start, and again when an operator says so. Those that cannot be used change nothing.

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

  /** `check` throws SETTINGS_INVALID for settings that are at odds with each other. Errors: SETTINGS_INVALID. */
  constructor(argv: readonly string[], check: (settings: Settings) => unknown) {
    this.#argv = argv;
    this.#check = check;
    this.#now = this.#read();
    this.#translating = translateSettings(this.#now);
  }

  get now(): Settings {
    return this.#now;
  }

  /** What translation knows of them. */
  get translating(): TranslateSettings {
    return this.#translating;
  }

  /** Says in the log what differs, and what of that needs a restart; false where they cannot be used. */
  reread(log: Log): boolean {
    try {
      const next = this.#read();
      const changed = diffSettings(this.#now, next);
      const kept = changed
        .filter(({ needsRestart }) => needsRestart)
        .map(({ name }) => [name, this.#now[name]]);
      const taken = { ...next, ...Object.fromEntries(kept) };
      this.#check(taken);
      if (changed.length === 0) log.info('Settings: nothing has changed');
      for (const { name, from, to, needsRestart } of changed) {
        const message = needsRestart
          ? 'Settings: a change that needs a restart'
          : 'Settings: a change is taken';
        log.info(message, { setting: name, from, to });
      }
      this.#now = taken;
      this.#translating = translateSettings(taken);
      return true;
    } catch (error) {
      log.error('Settings: kept as they were', { error: messageOf(error) });
      return false;
    }
  }

  #read(): Settings {
    const readFile = (path: string): string => readFileSync(path, 'utf8');
    return readSettings({ argv: this.#argv, env: process.env, readFile });
  }
}
