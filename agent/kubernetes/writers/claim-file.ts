// Keeps AddressClaims in a file, on hosts without a cluster that could: a List of the manifests that the cluster would
// hold, so that `kubectl apply` takes it. Changes that come while it is written are written together after it, and what
// another process makes of the file does not last. Owns one file.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BackgroundWrite } from '../../base/background-write.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { isMapping } from '../../base/validate.ts';
import { copyAtomically, syncFolder, writeAtomically } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { type AddressClaim, claimManifest } from '../address-claim.ts';
import { parseObject } from '../parse-object.ts';
import type { ClaimStore, ClaimStoreOptions } from './claim-store.ts';

export interface ClaimFileOptions extends ClaimStoreOptions {
  readonly path: string;
  /** All that the file is to hold. */
  readonly claims: () => Iterable<AddressClaim>;
  /** Called once for a fault that lasts. */
  readonly onFault: (message: string) => void;
  /** The file was written again because of what another process had made of it. */
  readonly onTampered?: () => void;
  /** Milliseconds to the next attempt after a failure. */
  readonly retryMs?: number;
  /** Milliseconds between two looks whether the file is as it was left. */
  readonly lookMs?: number;
}

const RETRY_MS = 5_000;
const LOOK_MS = 5_000;

export class ClaimFile implements ClaimStore {
  readonly #options: ClaimFileOptions;
  readonly #writing: BackgroundWrite;
  readonly #looks: Rounds;
  /** Names of claims that are not in the file as they are to be. */
  readonly #waiting = new Set<string>();
  /** undefined until this agent has written the file. */
  #written: FileIdentity | undefined;
  #isTampered = false;

  constructor(options: ClaimFileOptions) {
    const { retryMs = RETRY_MS, lookMs = LOOK_MS, onFault } = options;
    this.#options = options;
    this.#writing = new BackgroundWrite({ write: () => this.#write(), delayMs: 0, retryMs, onFault });
    this.#looks = new Rounds({
      intervalMs: () => lookMs,
      work: () => this.#look(),
      onFailed: (error) => onFault(messageOf(error)),
    });
    this.#looks.start();
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#writing.fault;
  }

  write(names: Iterable<string>): void {
    for (const name of names) this.#waiting.add(name);
    if (this.#waiting.size > 0) this.#writing.soon();
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    this.#looks.close();
    await this.#writing.close();
  }

  async #write(): Promise<void> {
    const { path, claims, desired, onKept, onTampered } = this.#options;
    // The file may hold later values of some, which are written once more.
    const names = [...this.#waiting].map((name) => [name, desired(name)] as const);
    this.#waiting.clear();
    try {
      const folder = dirname(path);
      const isNew = !existsSync(folder);
      await makeFolder(folder, 0o700);
      this.#written = await writeAtomically(path, linesOf([...claims()]));
      if (isNew) await syncFolder(dirname(folder));
    } catch (cause) {
      for (const [name] of names) this.#waiting.add(name);
      throw new HeadgateError('FILE_WRITE', `Cannot keep claims on addresses in "${path}"`, { cause });
    }
    for (const [name, claim] of names) onKept(name, claim);
    if (this.#isTampered) onTampered?.();
    this.#isTampered = false;
  }

  /** What is gone from the disk would be gone with the next agent, which would give other addresses. */
  async #look(): Promise<void> {
    await this.#writing.idle();
    if (this.#written === undefined || isSameFile(identityOf(this.#options.path), this.#written)) return;
    this.#isTampered = true;
    this.#writing.soon();
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
