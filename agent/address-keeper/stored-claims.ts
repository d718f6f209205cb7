// Stores the claims of this host: in the cluster if it has the kind, otherwise in a file, which the cluster overrules.
// A claim that the store lacks counts here until another one contradicts it, so that no fault of the store takes an
// address away from traffic. Owns the stores.
// Why: docs/design/decisions/0071-claim-then-status.md

import type { AddressClaim, Addresses, ClaimChange } from '../addresses/addresses.ts';
import { systemClock } from '../base/clock.ts';
import type { DiskFile } from '../base/disk-file.ts';
import { messageOf } from '../base/errors.ts';
import { sameValue } from '../base/same-value.ts';
import type { Log } from '../host/log.ts';
import { portText } from '../kubernetes/address-claim.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { ClaimFile, keepDamaged, readClaimFile } from '../kubernetes/writers/claim-file.ts';
import { ClaimWriter, type ClaimWriterMetrics } from '../kubernetes/writers/claim-writer.ts';
import type { Problem } from '../model/load-balancer.ts';

/** The store of claims; unknown before the API server has answered. */
export type ClaimHome = 'cluster' | 'file' | 'unknown';

/** For the log. */
const HOME_TEXT: Readonly<Record<ClaimHome, string>> = {
  cluster: 'The agent stores AddressClaims in the cluster',
  file: 'The agent stores AddressClaims in a file of this host',
  unknown: 'The agent does not know yet whether the cluster stores AddressClaims',
};

export interface StoredClaimsOptions {
  readonly addresses: Addresses;
  readonly cluster: Cluster;
  readonly path: string;
  /** undefined without a cluster. */
  readonly api: KubernetesApi | undefined;
  readonly hooks: StoredClaimsHooks;
  readonly log: Log;
  readonly metrics: ClaimWriterMetrics;
}

export interface StoredClaimsHooks {
  readonly isLeader: () => boolean;
  /** See ClaimWriter. */
  readonly mayClaim: (service: string, uid: string) => Promise<boolean>;
  readonly onOverruled: (claim: AddressClaim) => void;
  /** The store has the claim, or no longer (undefined). */
  readonly onKept: (name: string, claim: AddressClaim | undefined) => void;
}

export class StoredClaims {
  readonly #options: StoredClaimsOptions;
  readonly #file: ClaimFile;
  readonly #writer: ClaimWriter | undefined;
  /** Names of claims that the store does not have yet. */
  readonly #unkept = new Set<string>();
  #home: ClaimHome = 'unknown';
  #leads = false;
  /** Names of claims in the file. */
  #inFile = new Set<string>();

  constructor(options: StoredClaimsOptions) {
    this.#options = options;
    const { addresses, api, cluster, path, log, metrics, hooks } = options;
    const desired = (name: string) => addresses.claim(name);
    const onKept = (name: string, claim: AddressClaim | undefined) => this.#kept(name, claim);
    // For a claim of the cluster the file does not count.
    const onWritten = (name: string, claim: AddressClaim | undefined) => {
      if (this.#isOfFile(name)) onKept(name, claim);
    };
    const onFault = (error: string) => log.warn('The agent cannot write the claims file', { path, error });
    const onTampered = () => log.warn('Another process has changed the claims file: written again', { path });
    const claims = () => this.#ofFile();
    this.#file = new ClaimFile({ path, desired, onKept: onWritten, onFault, onTampered, claims });
    if (api === undefined) return;
    this.#writer = new ClaimWriter({
      ...{ api, log, metrics, desired, ...hooks, onKept },
      clock: systemClock,
      stored: (name) => cluster.claim(name),
    });
  }

  get home(): ClaimHome {
    return this.#home;
  }

  /** How many claims are not stored yet. */
  get unkept(): number {
    return this.#unkept.size;
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#file.fault || (this.#writer?.fault ?? '');
  }

  /** The file of those that no cluster keeps; undefined if there is none. */
  get file(): DiskFile | undefined {
    return this.#inFile.size > 0 ? this.#file.file : undefined;
  }

  has(name: string): boolean {
    return !this.#unkept.has(name);
  }

  /** The claims of the file, before anything else. */
  async read(): Promise<{ readonly claims: readonly AddressClaim[]; readonly problems: readonly Problem[] }> {
    const { path, log } = this.#options;
    const read = await readClaimFile(path);
    if (read.problems.length > 0)
      await keepDamaged(path).then(
        (copy) => log.warn('The claims file is damaged, and set aside', { path, copy }),
        (error: unknown) => log.warn('The claims file is damaged', { path, error: messageOf(error) }),
      );
    for (const { name } of read.claims) {
      this.#unkept.add(name);
      this.#inFile.add(name);
    }
    return read;
  }

  /** Another leader or home. True if all claims of the cluster have to be reviewed. */
  turn(home: ClaimHome, leads: boolean): boolean {
    if (home === this.#home && leads === this.#leads) return false;
    const { addresses, cluster, log } = this.#options;
    if (home !== this.#home) {
      log.info(HOME_TEXT[home]);
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

  /** These claims have changed on this host. */
  change(changes: readonly ClaimChange[]): void {
    const names = changes.map(({ claim }) => claim.name);
    // Before another change of it was stored, the name may still have its former claim.
    const created = changes.filter(({ kind, claim }) => kind === 'create' && !this.#unkept.has(claim.name));
    for (const name of names) this.#unkept.add(name);
    this.#writer?.created(created.map(({ claim }) => claim.name));
    this.#write(names);
  }

  /** The effect of claims that have changed in the cluster or in manifests. */
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
        // The leader will write it again, or give the Service another address.
        this.#unkept.add(name);
      } else removed.push(name);
    }
    if (!this.#leads) this.#follow(upserted, removed);
    return { upserted, removed };
  }

  /** Releases the claims that only this host has of a Service without a request, and gives their names. */
  forget(service: string): readonly string[] {
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

  /** Adds to `removed` the claims that contradict those of the store. */
  #follow(stored: readonly AddressClaim[], removed: string[]): void {
    for (const { name } of stored) this.#drop(name);
    for (const claim of stored) for (const name of this.#contradicted(claim)) removed.push(name);
    for (const name of removed) this.#drop(name);
  }

  /** Also from the file, so that the claim does not come back. */
  #drop(name: string): void {
    this.#unkept.delete(name);
    if (this.#home === 'cluster' && this.#inFile.has(name)) this.#file.write([name]);
  }

  /** The new claim of a Service that moves may arrive before the end of the old one. */
  #isReplaced(claim: AddressClaim): boolean {
    const { addresses, cluster } = this.#options;
    return addresses.claimsOf(claim.service).some(({ name }) => {
      const stored = cluster.claim(name)?.claim;
      return stored !== undefined && isInsteadOf(stored, claim);
    });
  }

  /** The claims without a store that contradict a stored one. */
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

  /** Only this host has the Services of its manifests, and their claims. */
  #isOfFile(name: string): boolean {
    return this.#home !== 'cluster' || this.#options.addresses.claim(name)?.serviceUID === '';
  }

  /** The content of the file: its own claims, and all others until the cluster has them. */
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
    const desired = this.#options.addresses.claim(name);
    const isDesired = sameValue(desired, claim);
    if (isDesired) this.#unkept.delete(name);
    this.#options.hooks.onKept(name, claim);
    if (isDesired && this.#home === 'cluster' && this.#inFile.has(name) && desired?.serviceUID !== '')
      this.#file.write([name]);
  }
}

function isInUse({ reserved, heldUntil }: AddressClaim): boolean {
  return !reserved && heldUntil === 0;
}

/** A Service has only one address of each family, besides those that are kept for it. */
function isInsteadOf(claim: AddressClaim, other: AddressClaim): boolean {
  return isInUse(claim) && claim.service === other.service && claim.family === other.family;
}

/** Both have the same port of one address. */
function overlaps(a: AddressClaim, b: AddressClaim): boolean {
  if (a.address !== b.address) return false;
  if (a.ports.length === 0 || b.ports.length === 0) return true;
  const ports = new Set(a.ports.map(portText));
  return b.ports.some((port) => ports.has(portText(port)));
}
