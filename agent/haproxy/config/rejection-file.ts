// Keeps what HAProxy has rejected over a restart of the agent, beside haproxy.cfg: without the last good structure of
// such a load balancer the next agent would have to leave it out, and without the rejection to try it again.

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { writeAtomically } from '../../host/atomic-file.ts';
import { type Rejection, structureOfAll } from './quarantine.ts';

export class RejectionFile {
  readonly #path: string;
  /** Another version may judge otherwise. */
  #haproxyVersion = '';
  #text = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** By load-balancer key; empty where there are none, or where another version of HAProxy has rejected them. */
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

  /** Writes only what differs from what it has read or written, or has been removed since. Errors: FILE_WRITE. */
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

/** An older agent may have written it. */
function isUsable({ structure, problem, lastGood }: Rejection): boolean {
  return (
    typeof structure === 'string' &&
    typeof problem.message === 'string' &&
    (lastGood === undefined || structureOfAll(lastGood) !== '')
  );
}
