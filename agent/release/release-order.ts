// Carries out `headgate release --all` and `--namespace`: writes the mark, waits until nothing is served or announced any more,
// calls the provisioner once for each address, and removes what agents have left in the cluster. Says what is left, and why.
// Why: docs/design/decisions/0098-released-by-a-mark.md

import { type Clock, passed } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { serial } from '../base/serial.ts';
import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { OwnerKey } from '../model/load-balancer.ts';
import { objectOf, ownerOf } from '../model/names.ts';
import {
  MAX_NAMESPACES,
  type OwedRelease,
  type ReleaseMark,
  type ReleaseScope,
  withoutReleased,
  withReleased,
} from '../state/release-mark.ts';

export interface ReleaseOutcome {
  /** Nothing is left. */
  readonly ok: boolean;
  /** What this order has released; empty if there was nothing to do. */
  readonly released: readonly string[];
  /** What is left, with the reason. */
  readonly left: readonly string[];
  /** What is not known. */
  readonly notes: readonly string[];
}

/** What the order would release. */
export interface ReleasePreview {
  readonly loadBalancers: readonly string[];
  readonly addresses: readonly string[];
}

export interface ReleaseOrderOptions {
  readonly mark: ReleaseMark;
  readonly host: ReleasedHost;
  readonly claims: {
    /** Without reservations. */
    all(): Iterable<AddressClaim>;
    on(address: string): readonly AddressClaim[];
    publicOf(address: string): string;
  };
  /** One call of the provisioner; gives why it failed. undefined if the settings name none. */
  readonly provision: () =>
    | ((request: OwedRelease, others: readonly string[]) => Promise<string | undefined>)
    | undefined;
  /** undefined without a cluster. */
  readonly cluster: ReleasedCluster | undefined;
  /** The other hosts that serve the same VIPs, and what they report to have released; undefined if they are not heard. */
  readonly others: () => readonly { readonly name: string; readonly scope: ReleaseScope | undefined }[];
  readonly clock: Clock;
}

/** What this host serves. */
export interface ReleasedHost {
  /** The VIPs of each load balancer that is desired. */
  vips(): Iterable<readonly [OwnerKey, readonly string[]]>;
  /** Lets all parts follow the mark. */
  apply(): void;
  /** Not all objects of the start are read. */
  readonly isReading: boolean;
  /** Changes wait to be carried out. */
  readonly isBusy: boolean;
  /** Why these owners or addresses are still served or announced here; empty if they are not. Errors: COMMAND_FAILED. */
  stays(owners: readonly OwnerKey[], addresses: readonly string[]): Promise<readonly string[]>;
}

export interface ReleasedCluster {
  /** The agent that holds the Lease, '' if it is this one, or none. */
  readonly otherLeader: () => string;
  /** Removes what agents have left in objects, or with `isDryRun` only finds it. Errors: API_UNREACHABLE, API_REFUSED. */
  clean(
    scope: ReleaseScope,
    isDryRun: boolean,
  ): AsyncIterable<{ readonly object: string; readonly fault: string }>;
}

const SETTLE_MS = 20_000;
const POLL_MS = 100;
/** Calls of the provisioner at the same time. */
const CONCURRENCY = 4;

export class ReleaseOrder {
  readonly #options: ReleaseOrderOptions;
  readonly #turns = serial();

  constructor(options: ReleaseOrderOptions) {
    this.#options = options;
  }

  preview(scope: Omit<ReleaseScope, 'at'>): ReleasePreview {
    const isIn = isInScope(scope);
    const all = [...this.#options.host.vips()].filter(([owner]) => isIn(owner));
    return {
      loadBalancers: all.map(([owner]) => objectOf(owner)),
      addresses: [...new Set(all.flatMap(([, vips]) => vips))],
    };
  }

  /** Errors: FILE_WRITE; then nothing has changed. */
  release(more: Omit<ReleaseScope, 'at'>): Promise<ReleaseOutcome> {
    return this.#turns.run(() => this.#release(more));
  }

  /** Serves these namespaces again. Errors: FILE_WRITE. */
  undo(less: Omit<ReleaseScope, 'at'>): Promise<ReleaseOutcome> {
    return this.#turns.run(async () => {
      const { mark, host, clock } = this.#options;
      const before = mark.scope;
      const scope = withoutReleased(before, less, clock.wall());
      const isSame = scope.all === before.all && scope.namespaces.length === before.namespaces.length;
      if (isSame && !before.all) return { ok: true, released: [], left: [], notes: [] };
      if (before.all && !less.all)
        return {
          ok: false,
          released: [],
          left: ['Everything is released: only "--undo" without a namespace ends that'],
          notes: [],
        };
      const isIn = isInScope(scope);
      await mark.set(
        scope,
        mark.owed.filter(({ service }) => isIn(service)),
        [],
      );
      host.apply();
      return { ok: true, released: inWords(less), left: [], notes: [] };
    });
  }

  /** Another host reports a later order. Errors: FILE_WRITE. */
  adopt(scope: ReleaseScope): Promise<void> {
    return this.#turns.run(async () => {
      const { mark, host } = this.#options;
      if (scope.at <= mark.scope.at) return;
      const isIn = isInScope(scope);
      await mark.set(
        scope,
        mark.owed.filter(({ service }) => isIn(service)),
        mark.told,
      );
      host.apply();
    });
  }

  async #release(more: Omit<ReleaseScope, 'at'>): Promise<ReleaseOutcome> {
    const { mark, host, clock } = this.#options;
    const before = mark.scope;
    const isCovered =
      before.all || (!more.all && more.namespaces.every((each) => before.namespaces.includes(each)));
    const scope = isCovered ? before : withReleased(before, more, clock.wall());
    if (scope.namespaces.length > MAX_NAMESPACES)
      throw new Error(
        `More than ${MAX_NAMESPACES} namespaces would be released: end the release of one that is gone by --undo --namespace`,
      );
    await this.#until(async () => !host.isReading);
    const isIn = isInScope(scope);
    const owners = [...host.vips()].filter(([owner]) => isIn(owner));
    await mark.set(scope, this.#owed(isIn), this.#told());
    host.apply();
    const released = new Set(owners.map(([owner]) => objectOf(owner)));
    const left = [...(await this.#untilWithdrawn(isIn, owners))];
    left.push(...(await this.#provision(released)));
    const inCluster = await this.#clean(scope, isIn, released);
    left.push(...inCluster.left, ...(await this.#untilOthersFollow(scope)));
    return { ok: left.length === 0, released: [...released], left, notes: inCluster.notes };
  }

  async #untilWithdrawn(
    isIn: (owner: OwnerKey) => boolean,
    owners: readonly (readonly [OwnerKey, readonly string[]])[],
  ): Promise<readonly string[]> {
    const { host } = this.#options;
    const keys = owners.map(([owner]) => owner);
    let why: readonly string[] = [];
    const isDone = async (): Promise<boolean> => {
      const now = [...host.vips()];
      if (host.isBusy || now.some(([owner]) => isIn(owner))) {
        why = ['This host still withdraws what it served'];
        return false;
      }
      const others = new Set(now.flatMap(([, vips]) => vips));
      const own = new Set(owners.flatMap(([, vips]) => vips).filter((each) => !others.has(each)));
      why = await host.stays(keys, [...own]).catch((error: unknown) => [messageOf(error)]);
      return why.length === 0;
    };
    return (await this.#until(isDone)) ? [] : why;
  }

  /** What the provisioner has yet to release: what is left of former orders, and each claim that is not told yet. */
  #owed(isIn: (owner: OwnerKey) => boolean): readonly OwedRelease[] {
    const { mark, claims, provision } = this.#options;
    if (provision() === undefined) return mark.owed;
    const told = new Set(mark.told);
    const owed = new Map(mark.owed.map((each) => [`${each.address} ${each.service}`, each]));
    for (const claim of claims.all()) {
      if (!isIn(claim.service) || told.has(tokenOf(claim))) continue;
      const { address, pool, service, ports } = claim;
      const outside = claims.publicOf(address);
      const ofPublic = outside === address ? { public: undefined } : { public: outside };
      owed.set(`${address} ${service}`, { address, ...ofPublic, pool, service, ports: [...ports] });
    }
    return [...owed.values()];
  }

  /** Claims that are told, as far as this host still knows them. */
  #told(more: readonly string[] = []): readonly string[] {
    const { mark, claims } = this.#options;
    const known = new Set([...claims.all()].map(tokenOf));
    return [...new Set([...mark.told, ...more])].filter((each) => known.has(each));
  }

  /** Calls the program once for each address; gives those that it could not release. */
  async #provision(released: Set<string>): Promise<readonly string[]> {
    const { mark, claims, provision } = this.#options;
    const call = provision();
    const waiting = [...mark.owed];
    if (call === undefined)
      return waiting.map(
        ({ address, service }) =>
          `${address} of ${objectOf(service)}: no provisioner is set that could release it`,
      );
    const left: string[] = [];
    const work = async (): Promise<void> => {
      for (let request = waiting.shift(); request !== undefined; request = waiting.shift()) {
        const { address, service } = request;
        const tokens = claims
          .on(address)
          .filter((claim) => claim.service === service)
          .map(tokenOf);
        const others = claims
          .on(address)
          .filter((claim) => !claim.reserved && !mark.isReleased(ownerOf(claim.service).namespace))
          .map((claim) => claim.service);
        const failure = await call(request, [...new Set(others)].sort());
        if (failure !== undefined)
          left.push(`${address} of ${objectOf(service)}: the provisioner ${failure}`);
        else {
          await mark.settle(request, () => this.#told(tokens));
          released.add(`${address} at the provisioner`);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    return left.sort();
  }

  async #clean(
    scope: ReleaseScope,
    isIn: (owner: OwnerKey) => boolean,
    released: Set<string>,
  ): Promise<{ readonly left: readonly string[]; readonly notes: readonly string[] }> {
    const { cluster, claims } = this.#options;
    const left: string[] = [];
    try {
      for await (const { object, fault } of cluster?.clean(scope, false) ?? []) {
        if (fault === '') released.add(object);
        else left.push(`${object}: ${fault}`);
      }
    } catch (error) {
      const why = messageOf(error);
      return {
        left: [],
        notes: [`What the cluster has is not removed, because its API does not answer: ${why}`],
      };
    }
    const rest = (): readonly AddressClaim[] => [...claims.all()].filter(({ service }) => isIn(service));
    const had = rest();
    await this.#until(async () => rest().length === 0);
    const remaining = new Set(rest().map(({ name }) => name));
    for (const { name } of had) if (!remaining.has(name)) released.add(`AddressClaim ${name}`);
    const leader = cluster?.otherLeader() ?? '';
    const by =
      leader === '' ? 'it could not be removed' : `the agent of ${leader} keeps it: run this there, too`;
    left.push(...[...remaining].map((name) => `AddressClaim ${name}: ${by}`));
    if (leader !== '' && left.length === 0)
      for await (const { object } of cluster?.clean(scope, true) ?? [])
        left.push(`${object}: the agent of ${leader} has written it again: run this there, too`);
    return { left, notes: [] };
  }

  async #untilOthersFollow(scope: ReleaseScope): Promise<readonly string[]> {
    const { others } = this.#options;
    const behind = (): readonly string[] =>
      others().flatMap(({ name, scope: theirs }) =>
        theirs !== undefined && theirs.at >= scope.at ? [] : [name],
      );
    await this.#until(async () => behind().length === 0);
    return behind().map(
      (name) => `The host ${name} is not heard, or its agent is older: run this there, too`,
    );
  }

  /** False if the condition does not come true in time. */
  async #until(isTrue: () => Promise<boolean>): Promise<boolean> {
    const { clock } = this.#options;
    for (const until = clock.monotonic() + SETTLE_MS; ; await passed(clock, POLL_MS)) {
      if (await isTrue()) return true;
      if (clock.monotonic() >= until) return false;
    }
  }
}

function isInScope({ all, namespaces }: Omit<ReleaseScope, 'at'>): (owner: OwnerKey) => boolean {
  return (owner) => all || namespaces.includes(ownerOf(owner).namespace);
}

function inWords({ all, namespaces }: Omit<ReleaseScope, 'at'>): readonly string[] {
  return all ? ['everything'] : namespaces.map((each) => `namespace ${each}`);
}

/** Identifies a claim also after the owner has got the address again. */
function tokenOf({ name, service, since }: AddressClaim): string {
  return `${name} ${service} ${since}`;
}
