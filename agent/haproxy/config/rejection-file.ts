// Keeps rejections over a restart of the agent: without the last good structure the next agent could not serve the load
// balancer, and without the rejection it would try the refused structure again.

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { writeAtomically } from '../../host/atomic-file.ts';
import { type Rejection, structureOfAll } from './quarantine.ts';

export class RejectionFile {
  readonly #path: string;
  /** Rejections of another version of HAProxy do not count. */
  #haproxyVersion = '';
  #text = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** By key of the load balancer; empty if there are none or if they are of another version of HAProxy. */
  async load(haproxyVersion: string): Promise<ReadonlyMap<string, Rejection>> {
    this.#haproxyVersion = haproxyVersion;
    const text = await readFile(this.#path, 'utf8').catch(() => '');
    try {
      const { haproxy, rejections } = JSON.parse(text) as {
        haproxy: string;
        rejections: [string, Rejection][];
      };
      if (haproxy !== haproxyVersion) return new Map();
      this.#text = text;
      return new Map(rejections.filter(([, rejection]) => isUsable(rejection)));
    } catch {
      return new Map();
    }
  }

  /** Writes the file if its content changes or if it was removed. Errors: FILE_WRITE. */
  async save(rejections: ReadonlyMap<string, Rejection>): Promise<void> {
    const text =
      rejections.size === 0
        ? ''
        : JSON.stringify({ haproxy: this.#haproxyVersion, rejections: [...rejections] });
    if (text === this.#text && (text === '' || existsSync(this.#path))) return;
    if (text === '') await rm(this.#path, { force: true });
    else await writeAtomically(this.#path, [text]);
    this.#text = text;
  }
}

/** Rejections of an older agent may have another form. */
function isUsable({ structure, problem, lastGood }: Rejection): boolean {
  return (
    typeof structure === 'string' &&
    typeof problem.message === 'string' &&
    (lastGood === undefined || structureOfAll(lastGood) !== '')
  );
}
