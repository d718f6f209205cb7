// Which file's object counts if several files have the same one: the one that counts already, otherwise the first in path
// order; and an object that is in its file before one that is missing from it. Owns an index of these objects.

import type { Problem } from '../../model/load-balancer.ts';
import type { KubernetesObject } from '../objects.ts';
import type { KnownFile } from './known-file.ts';

/** The part of a KnownFile that decides. */
export type FileObjects = Pick<KnownFile, 'path' | 'objects' | 'missing'>;

export class FilePrecedence {
  /** Identity → the files of which it counts, the first one first; never empty. */
  readonly #files = new Map<string, readonly FileObjects[]>();
  /** Identities that two or more files have now. */
  readonly #contested = new Set<string>();
  /** Identities that count, but that no file has now. */
  readonly #missing = new Set<string>();
  /** Kind → how many identities count, and how many of these are missing. */
  readonly #kinds = new Map<string, { all: number; missing: number }>();

  /**
   * To be called after each change of one of the two maps of `file`; true if the problems may have changed. `isReported`: the
   * agent serves the object of the first file, which keeps its place.
   */
  update(identity: string, file: FileObjects, isReported = false): boolean {
    const before = this.#files.get(identity) ?? [];
    const others = before.filter((other) => other !== file);
    const all = file.objects.has(identity) ? [...others, file] : others;
    all.sort((a, b) => order(identity, a, b, isReported ? before[0] : undefined));
    if (all.length === 0) this.#files.delete(identity);
    else this.#files.set(identity, all);
    const holders = all.filter(({ missing }) => !missing.has(identity)).length;
    if (holders > 1) this.#contested.add(identity);
    else this.#contested.delete(identity);
    this.#count(identity, before.length > 0, all.length > 0, all.length > 0 && holders === 0);
    return Math.max(before.length, all.length) > 1;
  }

  /** True if more than half of the objects of a kind are missing that has at least `many` objects. */
  isMostMissing(many: number): boolean {
    return [...this.#kinds.values()].some(({ all, missing }) => all >= many && missing * 2 > all);
  }

  /** The object that counts. */
  first(identity: string): KubernetesObject | undefined {
    return this.#files.get(identity)?.[0]?.objects.get(identity);
  }

  /** The files that have the object, the one that counts first. */
  paths(identity: string): readonly string[] {
    return (this.#files.get(identity) ?? []).map(({ path }) => path);
  }

  problems(): readonly Problem[] {
    return [...this.#contested].flatMap((identity) => {
      const [first, ...others] = this.#files.get(identity) ?? [];
      return others
        .filter(({ missing }) => !missing.has(identity))
        .map(({ path }): Problem => {
          const message = `${path}: ${identity} is also in ${first?.path}, which has precedence`;
          return { object: identity, reason: 'DuplicateObject', message };
        });
    });
  }

  #count(identity: string, did: boolean, does: boolean, isMissing: boolean): void {
    const [kind = ''] = identity.split(' ', 1);
    const counts = this.#kinds.get(kind) ?? { all: 0, missing: 0 };
    counts.all += Number(does) - Number(did);
    counts.missing += Number(isMissing) - Number(this.#missing.has(identity));
    this.#kinds.set(kind, counts);
    if (isMissing) this.#missing.add(identity);
    else this.#missing.delete(identity);
  }
}

function order(identity: string, a: FileObjects, b: FileObjects, holder: FileObjects | undefined): number {
  const aMissing = a.missing.has(identity);
  if (aMissing !== b.missing.has(identity)) return aMissing ? 1 : -1;
  if (a === holder || b === holder) return a === holder ? -1 : 1;
  return a.path < b.path ? -1 : 1;
}
