// Which VIP each pod's connections leave from, over all Services: of several that have a pod the oldest counts, then the first by
// name, so that all hosts choose alike. A change costs only the pods of its Service. Owns its indexes; touches nothing else.

import type { EgressMapping as Mapping } from '../../dataplane/egress-facts.ts';
import type { Egress, LoadBalancer, OwnerKey } from '../../model/load-balancer.ts';

export interface BookChange {
  /** Pods that leave from another VIP than before. */
  readonly pods: ReadonlySet<string>;
  /** Other Services that won or lost a pod. */
  readonly affected: ReadonlySet<OwnerKey>;
}

interface Claim extends Mapping {
  readonly created: number;
}

const NO_CLAIMS: ReadonlyMap<string, Claim> = new Map();

export class EgressBook {
  readonly #owners = new Map<OwnerKey, Egress>();
  /** By address; of each Service. */
  readonly #claimsOf = new Map<OwnerKey, ReadonlyMap<string, Claim>>();
  /** By address; the first of a list counts. */
  readonly #claims = new Map<string, readonly Claim[]>();

  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  has(key: OwnerKey): boolean {
    return this.#owners.has(key);
  }

  /** The Services that ask for it. */
  owners(): readonly OwnerKey[] {
    return [...this.#owners.keys()];
  }

  update(key: OwnerKey, loadBalancer: Pick<LoadBalancer, 'egress'> | undefined): BookChange {
    const egress = loadBalancer?.egress;
    const before = this.#claimsOf.get(key) ?? NO_CLAIMS;
    const after = egress === undefined ? NO_CLAIMS : claimsOf(key, egress);
    const pods = new Set<string>();
    const affected = new Set<OwnerKey>();
    for (const [pod, claim] of before)
      if (!isSame(claim, after.get(pod))) this.#replace(pod, key, after.get(pod), pods, affected);
    for (const [pod, claim] of after) if (!before.has(pod)) this.#replace(pod, key, claim, pods, affected);
    if (egress === undefined) {
      this.#owners.delete(key);
      this.#claimsOf.delete(key);
    } else {
      this.#owners.set(key, egress);
      this.#claimsOf.set(key, after);
    }
    affected.delete(key);
    return { pods, affected };
  }

  /** How many pods leave from a VIP. */
  get size(): number {
    return this.#claims.size;
  }

  /** All pods that leave from a VIP. */
  *mappings(): Generator<Mapping, void, void> {
    for (const [first] of this.#claims.values()) if (first !== undefined) yield first;
  }

  /** How the pod's connections leave; undefined: from no VIP. */
  mappingOf(pod: string): Mapping | undefined {
    return this.#claims.get(pod)?.[0];
  }

  /** The VIPs of all Services, also of those without pods; each once. */
  vips(): ReadonlySet<string> {
    return new Set([...this.#owners.values()].flatMap(({ addresses }) => Object.values(addresses)));
  }

  /** The Services that leave from VIPs, each with the number of its pods at each. */
  *pods(): Generator<{ readonly owner: OwnerKey; readonly vip: string; readonly pods: number }, void, void> {
    for (const [owner, { addresses }] of this.#owners) {
      const own = [...(this.#claimsOf.get(owner)?.values() ?? [])].filter((each) => this.#isFirst(each));
      for (const vip of Object.values(addresses))
        yield { owner, vip, pods: own.filter((each) => each.vip === vip).length };
    }
  }

  /** The pods of this Service that leave as another, older one's. */
  lostBy(key: OwnerKey): readonly Mapping[] {
    const lost = [...(this.#claimsOf.get(key)?.values() ?? [])].filter((each) => !this.#isFirst(each));
    return lost.flatMap(({ pod }) => this.mappingOf(pod) ?? []);
  }

  #isFirst(claim: Claim): boolean {
    return this.#claims.get(claim.pod)?.[0] === claim;
  }

  #replace(
    pod: string,
    key: OwnerKey,
    claim: Claim | undefined,
    pods: Set<string>,
    affected: Set<OwnerKey>,
  ): void {
    const before = this.#claims.get(pod) ?? [];
    const others = before.filter(({ owner }) => owner !== key);
    const after = claim === undefined ? others : [...others, claim].sort(byAge);
    if (after.length === 0) this.#claims.delete(pod);
    else this.#claims.set(pod, after);
    const [was, is] = [before[0], after[0]];
    if (was?.owner !== is?.owner) for (const { owner } of after) affected.add(owner);
    if (was?.vip !== is?.vip) pods.add(pod);
  }
}

function claimsOf(owner: OwnerKey, { created, addresses, pods }: Egress): ReadonlyMap<string, Claim> {
  const claims = new Map<string, Claim>();
  for (const { address: pod, family, target } of pods) {
    const vip = addresses[family];
    if (vip !== undefined) claims.set(pod, { pod, vip, owner, target, created });
  }
  return claims;
}

function isSame(claim: Claim, other: Claim | undefined): boolean {
  return claim.vip === other?.vip && claim.created === other.created && claim.target === other.target;
}

function byAge(a: Claim, b: Claim): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.owner < b.owner ? -1 : 1;
}
