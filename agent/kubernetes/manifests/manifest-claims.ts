// Which file's object counts where several files hold the same one: the first in path order, and one that is in its
// file right now before one that has just gone from it. Owns an index of the contested, the uncontested and the missing;
// no more.

import type { Problem } from '../../model/load-balancer.ts';
import type { KubernetesObject } from '../objects.ts';

/** A file, as far as claims go. Both maps are keyed by identity (`Service default/web`). */
export interface Claimant {
  readonly path: string;
  readonly objects: ReadonlyMap<string, KubernetesObject>;
  /** Objects that are not in the file any more but still count. */
  readonly missing: ReadonlyMap<string, unknown>;
}

export class ManifestClaims {
  /** Identity → the files that hold it, the one that counts first; never empty. */
  readonly #claimants = new Map<string, readonly Claimant[]>();
  /** Identities that two or more files hold right now. */
  readonly #contested = new Set<string>();
  /** Identities that count, but that no file holds right now. */
  readonly #missing = new Set<string>();
  /** Kind → how many identities count, and how many of them are missing. */
  readonly #kinds = new Map<string, { all: number; missing: number }>();

  /** To be called whenever one of the two maps of `file` has changed; true where the problems may differ now. */
  update(identity: string, file: Claimant): boolean {
    const before = this.#claimants.get(identity) ?? [];
    const others = before.filter((other) => other !== file);
    const all = file.objects.has(identity) ? [...others, file] : others;
    all.sort((a, b) => order(identity, a, b));
    if (all.length === 0) this.#claimants.delete(identity);
    else this.#claimants.set(identity, all);
    const holders = all.filter(({ missing }) => !missing.has(identity)).length;
    if (holders > 1) this.#contested.add(identity);
    else this.#contested.delete(identity);
    this.#count(identity, before.length > 0, all.length > 0, all.length > 0 && holders === 0);
    return Math.max(before.length, all.length) > 1;
  }

  /** Whether more than half of some kind is missing that has `many` objects or more. */
  isMostMissing(many: number): boolean {
    return [...this.#kinds.values()].some(({ all, missing }) => all >= many && missing * 2 > all);
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

  /** The object that counts. */
  winner(identity: string): KubernetesObject | undefined {
    return this.#claimants.get(identity)?.[0]?.objects.get(identity);
  }

  problems(): readonly Problem[] {
    return [...this.#contested].flatMap((identity) => {
      const [first, ...others] = this.#claimants.get(identity) ?? [];
      return others
        .filter(({ missing }) => !missing.has(identity))
        .map(({ path }): Problem => {
          const message = `${path}: ${identity} is in ${first?.path} too, which comes first and counts`;
          return { object: identity, reason: 'DuplicateObject', message };
        });
    });
  }
}

function order(identity: string, a: Claimant, b: Claimant): number {
  const aMissing = a.missing.has(identity);
  if (aMissing !== b.missing.has(identity)) return aMissing ? 1 : -1;
  return a.path < b.path ? -1 : 1;
}
