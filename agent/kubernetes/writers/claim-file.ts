// Keeps AddressClaims in a file, on hosts without a cluster that could: a List of the manifests that the cluster would
// hold, so that `kubectl apply` takes it. Changes that come while it is written are written together after it, and what
// somebody else makes of the file does not last. Owns one file and two timers.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { isMapping } from '../../base/validate.ts';
import { copyAtomically, syncFolder, writeAtomically } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { AddressClaim } from '../address-claim.ts';
import { claimManifest } from '../address-objects.ts';
import { parseObject } from '../parse-object.ts';
import type { ClaimStore, ClaimStoreOptions } from './claim-store.ts';

export interface ClaimFileOptions extends ClaimStoreOptions {
  readonly path: string;
  /** All that the file is to hold. */
  readonly claims: () => Iterable<AddressClaim>;
  readonly onFailure: (error: HeadgateError) => void;
  /** The file was written again because of what someone else had made of it. */
  readonly onTampered?: () => void;
  /** Milliseconds to the next attempt after a failure. */
  readonly retry?: number;
  /** Milliseconds between two looks whether the file is as it was left. */
  readonly look?: number;
}

export class ClaimFile implements ClaimStore {
  readonly #options: ClaimFileOptions;
  readonly #waiting = new Set<string>();
  #fault = '';
  #timer: NodeJS.Timeout | undefined;
  /** Since this agent has written the file for the first time. */
  #looking: NodeJS.Timeout | undefined;
  #written: FileIdentity | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  #isClosed = false;

  constructor(options: ClaimFileOptions) {
    this.#options = options;
  }

  /** Why the last write failed, '' where it did not. */
  get fault(): string {
    return this.#fault;
  }

  write(names: Iterable<string>): void {
    for (const name of names) this.#waiting.add(name);
    if (this.#waiting.size === 0 || this.#isWriting || this.#timer !== undefined || this.#isClosed) return;
    this.#writing = this.#writeAll();
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#looking);
    await this.#writing;
    if (this.#waiting.size > 0) await this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    const { path, claims, wanted, onKept, onFailure, retry = 5_000 } = this.#options;
    const names = [...this.#waiting];
    this.#waiting.clear();
    try {
      // The file may hold later values of some, which are written once more.
      const kept = names.map((name) => [name, wanted(name)] as const);
      const folder = dirname(path);
      const isNew = !existsSync(folder);
      await makeFolder(folder, 0o700);
      const written = await writeAtomically(path, linesOf([...claims()]));
      if (isNew) await syncFolder(dirname(folder));
      this.#written = written;
      this.#watch();
      this.#fault = '';
      for (const [name, claim] of kept) onKept(name, claim);
    } catch (cause) {
      const error = new HeadgateError('FILE_WRITE', `Cannot keep claims on addresses in "${path}"`, {
        cause,
      });
      this.#fault = error.message;
      onFailure(error);
      for (const name of names) this.#waiting.add(name);
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.write([]);
      }, retry).unref();
    }
    this.#isWriting = false;
    this.write([]);
  }

  #watch(): void {
    if (this.#isClosed) return;
    this.#looking ??= setInterval(() => this.#lookAgain(), this.#options.look ?? 5_000).unref();
  }

  /** What is gone from the disk would be gone with the next agent, which would give other addresses. */
  #lookAgain(): void {
    const { path, onTampered } = this.#options;
    if (this.#isWriting || this.#timer !== undefined || isSameFile(identityOf(path), this.#written)) return;
    this.#writing = this.#writeAll().then(() => {
      if (this.#fault === '') onTampered?.();
    });
  }
}

/** What the file holds; nothing where there is none. A claim, or a line, that is damaged costs only itself. */
export async function readClaimFile(
  path: string,
): Promise<{ readonly claims: readonly AddressClaim[]; readonly problems: readonly Problem[] }> {
  const problem = (message: string): Problem => ({ object: path, reason: 'InvalidFile', message });
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { claims: [], problems: code === 'ENOENT' ? [] : [problem(`Cannot read the file: ${message}`)] };
  }
  const { items, fault } = itemsOf(text);
  const parsed = items.map((item) => parseObject(item, path));
  const objects = parsed.flatMap((each) => each.objects);
  return {
    claims: objects.flatMap((object) => (object.kind === 'AddressClaim' ? [object.claim] : [])),
    problems: [
      ...(fault === '' ? [] : [problem(`${path}: ${fault}`)]),
      ...parsed.flatMap((each) => each.problems),
    ],
  };
}

/** Sets aside what could not be read whole, before another file takes its place. Errors: FILE_WRITE. */
export async function keepDamaged(path: string): Promise<string> {
  const copy = `${path}.damaged`;
  await copyAtomically(path, copy);
  return copy;
}

/** Of a file that is no JSON as a whole those lines count that are some: linesOf() gives each claim one. */
function itemsOf(text: string): { readonly items: readonly unknown[]; readonly fault: string } {
  try {
    const list: unknown = JSON.parse(text);
    const items: unknown = isMapping(list) ? list.items : undefined;
    if (Array.isArray(items)) return { items, fault: '' };
    return { items: [], fault: 'It is no list of claims' };
  } catch (error) {
    const items = text.split('\n').flatMap(itemOf);
    const readable = items.length === 1 ? '1 line' : `${items.length} lines`;
    return { items, fault: `It is not JSON: ${(error as Error).message}; ${readable} of it can be read` };
  }
}

function itemOf(line: string): unknown[] {
  try {
    const item: unknown = JSON.parse(line.replace(/,$/, ''));
    return isMapping(item) ? [item] : [];
  } catch {
    return [];
  }
}

function* linesOf(claims: readonly AddressClaim[]): Generator<string, void, void> {
  yield '{"apiVersion":"v1","kind":"List","items":[';
  let separator = '\n';
  for (let from = 0; from < claims.length; from += AT_ONCE) {
    const lines = claims.slice(from, from + AT_ONCE).map((claim) => JSON.stringify(claimManifest(claim)));
    yield separator + lines.join(',\n');
    separator = ',\n';
  }
  yield '\n]}\n';
}

/** Claims handed to the disk at once. */
const AT_ONCE = 200;
