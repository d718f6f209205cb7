// The claims as this host has them, and what the store of claims has of them: the cluster, where it knows the kind, and
// otherwise a file. A claim that the store lacks counts here until the store says something else, so that nothing
// that happens to the store takes an address away from traffic. What the cluster says of a claim overrules a file.
// Owns the stores.

import type { AddressClaim, Addresses } from '../addresses/addresses.ts';
import { systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { sameValue } from '../base/same-value.ts';
import type { Log } from '../host/log.ts';
import { portText } from '../kubernetes/address-claim.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { ClaimFile, keepDamaged, readClaimFile } from '../kubernetes/writers/claim-file.ts';
import { ClaimWriter, type ClaimWriterMetrics } from '../kubernetes/writers/claim-writer.ts';
import type { Problem } from '../model/load-balancer.ts';

/** Where claims belong; unknown before the API server has answered. */
export type ClaimHome = 'cluster' | 'file' | 'unknown';

/** For the log. */
const KEPT: Readonly<Record<ClaimHome, string>> = {
  cluster: 'Claims on addresses of pools are kept in the cluster',
  file: 'Claims on addresses of pools are kept in a file of this host',
  unknown: 'It is not known whether claims on addresses of pools are kept in the cluster',
};

export interface KeptClaimsOptions {
  readonly addresses: Addresses;
  readonly cluster: Cluster;
  readonly path: string;
  /** undefined without a cluster. */
  readonly api: KubernetesApi | undefined;
  readonly isLeader: () => boolean;
  /** See ClaimWriter. */
  readonly requestFinalizer: (service: string, uid: string) => Promise<boolean>;
  readonly onOverruled: (claim: AddressClaim) => void;
  /** The store has the claim as it shall be, or has none (undefined). */
  readonly onKept: (name: string, claim: AddressClaim | undefined) => void;
  readonly log: Log;
  readonly metrics: ClaimWriterMetrics;
}

export class KeptClaims {
  readonly #options: KeptClaimsOptions;
  readonly #file: ClaimFile;
  readonly #writer: ClaimWriter | undefined;
  /** Names of claims that their store does not have as they are here. */
  readonly #unkept = new Set<string>();
  #home: ClaimHome = 'unknown';
  #leads = false;
  /** Names of claims that the file has. */
  #inFile = new Set<string>();

  constructor(options: KeptClaimsOptions) {
    this.#options = options;
    const { addresses, api, cluster, path, log, metrics, isLeader, requestFinalizer, onOverruled } = options;
    const desired = (name: string) => addresses.claim(name);
    const onKept = (name: string, claim: AddressClaim | undefined) => this.#kept(name, claim);
    // Of a claim that belongs into the cluster a file says nothing.
    const onWritten = (name: string, claim: AddressClaim | undefined) => {
      if (this.#isOfFile(name)) onKept(name, claim);
    };
    const onFault = (error: string) => log.warn('Claims on addresses are not kept', { error });
    const onTampered = () =>
      log.warn('What is kept of claims was changed by someone else: written again', { path });
    const claims = () => this.#ofFile();
    this.#file = new ClaimFile({ path, desired, onKept: onWritten, onFault, onTampered, claims });
    if (api === undefined) return;
    const stored = (name: string) => cluster.claim(name);
    const clock = systemClock;
    this.#writer = new ClaimWriter({
      api,
      clock,
      log,
      metrics,
      desired,
      stored,
      isLeader,
      requestFinalizer,
      onOverruled,
      onKept,
    });
  }

  get home(): ClaimHome {
    return this.#home;
  }

  /** How many the store has yet to take. */
  get unkept(): number {
    return this.#unkept.size;
  }

  /** Why the last write failed, '' where it did not. */
  get fault(): string {
    return this.#file.fault || (this.#writer?.fault ?? '');
  }

  has(name: string): boolean {
    return !this.#unkept.has(name);
  }

  /** What the file has, before anything else. */
  async read(): Promise<{ readonly claims: readonly AddressClaim[]; readonly problems: readonly Problem[] }> {
    const { path, log } = this.#options;
    const read = await readClaimFile(path);
    if (read.problems.length > 0)
      await keepDamaged(path).then(
        (copy) => log.warn('What is kept of claims is damaged, and set aside as it is', { path, copy }),
        (error: unknown) => log.warn('What is kept of claims is damaged', { path, error: messageOf(error) }),
      );
    for (const { name } of read.claims) {
      this.#unkept.add(name);
      this.#inFile.add(name);
    }
    return read;
  }

  /** True where everything that the cluster has of claims has to be looked at again. */
  turn(home: ClaimHome, leads: boolean): boolean {
    if (home === this.#home && leads === this.#leads) return false;
    const { addresses, cluster, log } = this.#options;
    if (home !== this.#home) {
      log.info(KEPT[home]);
      for (const claim of addresses.claims()) {
        const stored = home === 'cluster' ? cluster.claim(claim.name) : undefined;
        const isStored = stored !== undefined && stored.uid !== '' && sameValue(stored.claim, claim);
        if (!claim.reserved && !isStored) this.#unkept.add(claim.name);
      }
    }
    this.#home = home;
    this.#leads = leads;
    this.#writer?.lead(home === 'cluster' && leads);
    if (leads) this.#write([...this.#unkept]);
    return true;
  }

  /** What has changed here. */
  change(claims: readonly AddressClaim[]): void {
    const names = claims.map(({ name }) => name);
    for (const name of names) this.#unkept.add(name);
    this.#write(names);
  }

  /** What claims of the cluster (or of manifests) that have changed mean for this host. */
  observed(names: Iterable<string>): {
    readonly upserted: readonly AddressClaim[];
    readonly removed: string[];
  } {
    const { addresses, cluster } = this.#options;
    const upserted: AddressClaim[] = [];
    const removed: string[] = [];
    for (const name of names) {
      this.#writer?.observed(name);
      const stored = cluster.claim(name)?.claim;
      const known = addresses.claim(name);
      if (stored !== undefined) {
        upserted.push(stored);
      } else if (!this.#leads && known !== undefined && isInUse(known) && !this.#isReplaced(known)) {
        // Who leads will write it again, or give the Service another one.
        this.#unkept.add(name);
      } else removed.push(name);
    }
    if (!this.#leads) this.#follow(upserted, removed);
    return { upserted, removed };
  }

  /** Claims that only this host has, of a Service that asks for nothing any more: nobody else will let go of them. */
  forgotten(service: string): readonly string[] {
    if (this.#leads || this.#unkept.size === 0) return [];
    const names = this.#options.addresses
      .claimsOf(service)
      .map(({ name }) => name)
      .filter((name) => this.#unkept.has(name));
    for (const name of names) this.#drop(name);
    return names;
  }

  async close(): Promise<void> {
    await this.#writer?.close();
    await this.#file.close();
  }

  /** Adds to `removed` what cannot be beside the claims that the store has. */
  #follow(stored: readonly AddressClaim[], removed: string[]): void {
    for (const { name } of stored) this.#drop(name);
    for (const claim of stored) for (const name of this.#contradicted(claim)) removed.push(name);
    for (const name of removed) this.#drop(name);
  }

  /** It must not come back from the file. */
  #drop(name: string): void {
    this.#unkept.delete(name);
    if (this.#home === 'cluster' && this.#inFile.has(name)) this.#file.write([name]);
  }

  /** The new claim of a Service that moves may be seen before the end of the old one. */
  #isReplaced(claim: AddressClaim): boolean {
    const { addresses, cluster } = this.#options;
    return addresses.claimsOf(claim.service).some(({ name }) => {
      const stored = cluster.claim(name)?.claim;
      return stored !== undefined && isInsteadOf(stored, claim);
    });
  }

  /** Of those that the store does not have, those that cannot be beside one that it has. */
  *#contradicted(stored: AddressClaim): Generator<string> {
    if (this.#unkept.size === 0 || stored.reserved) return;
    const { addresses } = this.#options;
    for (const other of [...addresses.claimsOf(stored.service), ...addresses.claimsOn(stored.address)]) {
      if (other.name === stored.name || other.reserved || !this.#unkept.has(other.name)) continue;
      if (isInsteadOf(stored, other) || overlaps(stored, other)) yield other.name;
    }
  }

  #write(names: readonly string[]): void {
    if (this.#home !== 'cluster') {
      this.#file.write(names);
      return;
    }
    this.#file.write(names.filter((name) => this.#isOfFile(name) || this.#inFile.has(name)));
    this.#writer?.write(names.filter((name) => !this.#isOfFile(name)));
  }

  /** Services of manifests are this host's alone, and so are their claims. */
  #isOfFile(name: string): boolean {
    return this.#home !== 'cluster' || this.#options.addresses.claim(name)?.serviceUID === '';
  }

  /** Those, and all others until the cluster has them. */
  #ofFile(): readonly AddressClaim[] {
    const claims = [...this.#options.addresses.claims()].filter(({ reserved, serviceUID, name }) => {
      if (reserved) return false;
      return (
        this.#home !== 'cluster' || serviceUID === '' || (this.#inFile.has(name) && this.#unkept.has(name))
      );
    });
    this.#inFile = new Set(claims.map(({ name }) => name));
    return claims;
  }

  #kept(name: string, claim: AddressClaim | undefined): void {
    const shall = this.#options.addresses.claim(name);
    const isSo = shall === undefined || claim === undefined ? shall === claim : sameValue(shall, claim);
    if (isSo) this.#unkept.delete(name);
    this.#options.onKept(name, claim);
    if (isSo && this.#home === 'cluster' && this.#inFile.has(name) && shall?.serviceUID !== '')
      this.#file.write([name]);
  }
}

function isInUse({ reserved, heldUntil }: AddressClaim): boolean {
  return !reserved && heldUntil === 0;
}

/** A Service has one address of each family, and perhaps others that are kept for it. */
function isInsteadOf(claim: AddressClaim, other: AddressClaim): boolean {
  return isInUse(claim) && claim.service === other.service && claim.family === other.family;
}

/** Both have the same of one address. */
function overlaps(a: AddressClaim, b: AddressClaim): boolean {
  if (a.address !== b.address) return false;
  if (a.ports.length === 0 || b.ports.length === 0) return true;
  const ports = new Set(a.ports.map(portText));
  return b.ports.some((port) => ports.has(portText(port)));
}
