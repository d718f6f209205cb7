// Keeps AddressClaims in a file if no cluster can: a List of manifests, so that `kubectl apply` takes it. Changes during a
// write are written together after it; a file that another process has changed is written again. Owns one file.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BackgroundWrite } from '../../base/background-write.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { parseJson } from '../../base/parse-json.ts';
import { Rounds } from '../../base/rounds.ts';
import { isMapping } from '../../base/validate.ts';
import { copyAtomically, syncFolder, writeAtomically } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';
import { makeFolder } from '../../host/make-directory.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { type AddressClaim, claimManifest } from '../address-claim.ts';
import { parseObject } from '../parse-object.ts';
import type { ClaimStoreOptions } from './claim-writer.ts';

export interface ClaimFileOptions extends ClaimStoreOptions {
  readonly path: string;
  /** All claims of the file. */
  readonly claims: () => Iterable<AddressClaim>;
  /** Called once for a fault that lasts. */
  readonly onFault: (message: string) => void;
  /** The file was written again because another process had changed it. */
  readonly onTampered?: () => void;
  /** From a failure to the next attempt. */
  readonly retryMs?: number;
  /** Between two checks of the file. */
  readonly checkMs?: number;
}

const RETRY_MS = 5_000;
const CHECK_MS = 5_000;

export class ClaimFile {
  readonly #options: ClaimFileOptions;
  readonly #writing: BackgroundWrite;
  readonly #checks: Rounds;
  /** Names of claims that are not in the file as desired. */
  readonly #waiting = new Set<string>();
  /** undefined until this agent has written the file. */
  #written: FileIdentity | undefined;
  #isTampered = false;

  constructor(options: ClaimFileOptions) {
    const { retryMs = RETRY_MS, checkMs = CHECK_MS, onFault } = options;
    this.#options = options;
    this.#writing = new BackgroundWrite({ write: () => this.#write(), delayMs: 0, retryMs, onFault });
    this.#checks = new Rounds({
      intervalMs: () => checkMs,
      work: () => this.#check(),
      onFailed: (error) => onFault(messageOf(error)),
    });
    this.#checks.start();
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#writing.fault;
  }

  get file(): DiskFile {
    return this.#writing.file(this.#options.path);
  }

  /** As in ClaimWriter. */
  write(names: Iterable<string>): void {
    for (const name of names) this.#waiting.add(name);
    if (this.#waiting.size > 0) this.#writing.soon();
  }

  /** Writes the waiting claims. */
  async close(): Promise<void> {
    this.#checks.close();
    await this.#writing.close();
  }

  async #write(): Promise<void> {
    const { path, claims, desired, onKept, onTampered } = this.#options;
    // The file may get later values of some claims, which are then written once more.
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
      throw new HeadgateError('FILE_WRITE', `Cannot write AddressClaims to "${path}"`, { cause });
    }
    for (const [name, claim] of names) onKept(name, claim);
    if (this.#isTampered) onTampered?.();
    this.#isTampered = false;
  }

  /** The next agent reads the file: without a claim it would give the Service another address. */
  async #check(): Promise<void> {
    await this.#writing.idle();
    if (this.#written === undefined || isSameFile(identityOf(this.#options.path), this.#written)) return;
    this.#isTampered = true;
    this.#writing.soon();
  }
}

/** Nothing if there is no file. A damaged claim, or line, costs only itself. */
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

/** Copies a damaged file before it is replaced. Errors: FILE_WRITE. */
export async function keepDamaged(path: string): Promise<string> {
  const copy = `${path}.damaged`;
  await copyAtomically(path, copy);
  return copy;
}

/** If the file is not JSON, its lines that are count: each claim has one. */
function itemsOf(text: string): { readonly items: readonly unknown[]; readonly fault: string } {
  try {
    const list: unknown = JSON.parse(text);
    const items: unknown = isMapping(list) ? list.items : undefined;
    if (Array.isArray(items)) return { items, fault: '' };
    return { items: [], fault: 'It is not a list of AddressClaims' };
  } catch (error) {
    const items = text.split('\n').flatMap(itemOf);
    const readable = items.length === 1 ? '1 line' : `${items.length} lines`;
    return { items, fault: `It is not JSON: ${(error as Error).message}; ${readable} of it can be read` };
  }
}

function itemOf(line: string): unknown[] {
  const item = parseJson(line.replace(/,$/, ''));
  return isMapping(item) ? [item] : [];
}

function* linesOf(claims: readonly AddressClaim[]): Generator<string, void, void> {
  yield '{"apiVersion":"v1","kind":"List","items":[';
  let separator = '\n';
  for (const claim of claims) {
    yield separator + JSON.stringify(claimManifest(claim));
    separator = ',\n';
  }
  yield '\n]}\n';
}
