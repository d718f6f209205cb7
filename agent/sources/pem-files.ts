// Certificates in files that the settings name, for hosts without a cluster: each counts as a Secret. Reads a file again when
// it has changed, as a program that renews certificates does. Owns the round that looks.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { Rounds } from '../base/rounds.ts';
import { MAX_AUTHORITY_BYTES } from '../certificates/authority.ts';
import { type Secret, secretOfTexts } from '../kubernetes/certificate-objects.ts';

export interface PemFilesOptions {
  /** `default/shop-tls` to a file with certificate and key, or to a folder with both, as a Secret is mounted or certbot writes it. */
  readonly places: Readonly<Record<string, string>>;
  readonly onChange: (secrets: readonly Secret[]) => void;
  readonly clock?: Clock;
}

/** From a change of a file until it is read. */
const ROUND_MS = 2_000;
/** The names that a folder may have, by the field of a Secret. */
const NAMES = {
  'tls.crt': ['tls.crt', 'fullchain.pem'],
  'tls.key': ['tls.key', 'privkey.pem'],
  'ca.crt': ['ca.crt'],
  'ca.crl': ['ca.crl'],
} as const;

export class PemFiles {
  readonly #options: PemFilesOptions;
  readonly #rounds: Rounds;
  /** What stat() said of each place when it was read. */
  readonly #stamps = new Map<string, string>();

  constructor(options: PemFilesOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => ROUND_MS,
      work: () => this.look(),
      onFailed: () => undefined,
      clock: options.clock ?? systemClock,
    });
  }

  /** Reads all files. */
  start(): void {
    this.look();
    if (Object.keys(this.#options.places).length > 0) this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** Reads the files that have changed. */
  look(): void {
    const changed: Secret[] = [];
    for (const [key, place] of Object.entries(this.#options.places)) {
      const files = filesOf(place);
      const stamp = Object.values(files).map(stampOf).join(' ');
      if (stamp === this.#stamps.get(key)) continue;
      this.#stamps.set(key, stamp);
      changed.push(secretIn(key, files));
    }
    if (changed.length > 0) this.#options.onChange(changed);
  }
}

type Files = Readonly<Partial<Record<keyof typeof NAMES, string>>>;

function filesOf(place: string): Files {
  if (stampOf(place).endsWith(' file')) return { 'tls.crt': place, 'tls.key': place };
  const files: Partial<Record<keyof typeof NAMES, string>> = {};
  for (const [field, names] of Object.entries(NAMES)) {
    const found = names.map((name) => join(place, name)).find((path) => stampOf(path).endsWith(' file'));
    if (found !== undefined) files[field as keyof typeof NAMES] = found;
  }
  return files;
}

/** '' if there is nothing. */
function stampOf(path: string): string {
  try {
    const stat = statSync(path);
    return `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.isFile() ? 'file' : 'other'}`;
  } catch {
    return '';
  }
}

function secretIn(key: string, files: Files): Secret {
  const texts: Record<string, string> = {};
  try {
    for (const [field, path] of Object.entries(files)) {
      if (statSync(path).size <= MAX_AUTHORITY_BYTES) texts[field] = readFileSync(path, 'latin1');
    }
  } catch (error) {
    return secretOfTexts(key, { fault: messageOf(error) });
  }
  return secretOfTexts(key, { texts });
}
