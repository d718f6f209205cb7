// Reports to the operator's program (provisioner.ts) which Service has which address: all claims when this host becomes the
// leader, then each address that is given or released, as soon as the store of claims has the change.

import { sameValue } from '../base/same-value.ts';
import type { Log } from '../host/log.ts';
import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { Problem } from '../model/load-balancer.ts';
import { Provisioner, type ProvisionRequest } from './provisioner.ts';

export interface ProvisioningOptions {
  readonly log: Log;
  readonly metrics: ProvisioningMetrics;
  /** All claims on an address. */
  readonly claimsOn: (address: string) => readonly AddressClaim[];
  /** The address that clients use, '' while it is not known; `isAnswered`: the program's answer names it. */
  readonly publicOf: (claim: AddressClaim) => { readonly address: string; readonly isAnswered: boolean };
  /** The program has ended well, and its answer is needed. Gives why it cannot be used. */
  readonly onAnswer: (request: ProvisionRequest, answer: string | undefined) => string | undefined;
  /** The order to release this owner calls the program itself. */
  readonly isReleased?: ((owner: string) => boolean) | undefined;
  /** The problems of a Service have changed. */
  readonly onProblem: (service: string) => void;
}

export interface ProvisioningMetrics {
  provisioned(action: 'assign' | 'release', result: 'done' | 'failed'): void;
}

export class Provisioning {
  readonly #options: ProvisioningOptions;
  /** undefined if this host is not the leader, or the settings name no program. */
  #provisioner: Provisioner | undefined;
  /** Name of a claim → the last request for it, of this leader or (not `isAssigned`) of the one before. */
  readonly #requested = new Map<
    string,
    { readonly request: ProvisionRequest; readonly isAssigned: boolean }
  >();

  constructor(options: ProvisioningOptions) {
    this.#options = options;
  }

  /** Starts again, with all claims that the store has; with program '' only ends. */
  restart(program: string, claims: Iterable<AddressClaim>): void {
    const { log, metrics, onProblem, onAnswer } = this.#options;
    this.close();
    if (program === '') return;
    this.#provisioner = new Provisioner({
      program,
      log,
      others: (request) => this.#others(request),
      onProblem: ({ service }) => onProblem(service),
      onAnswer,
      onCall: ({ action }, failure) => metrics.provisioned(action, failure === undefined ? 'done' : 'failed'),
    });
    for (const claim of claims) this.stored(claim.name, claim);
  }

  /** How many requests the program has not carried out yet. */
  get pending(): number {
    return this.#provisioner?.pending ?? 0;
  }

  problemsOf(service: string): readonly Problem[] {
    return this.#provisioner?.problemsOf(service) ?? [];
  }

  /** Key: a Service with problems, also one that is gone. */
  problems(): ReadonlyMap<string, readonly Problem[]> {
    return this.#provisioner?.problems() ?? new Map();
  }

  /** The store has the claim, or no longer (undefined). An address that is kept is released when that ends. */
  stored(name: string, claim: AddressClaim | undefined): void {
    if (this.#provisioner === undefined || claim?.reserved) return;
    const before = this.#requested.get(name);
    const isReleased = (owner = ''): boolean => owner !== '' && this.#options.isReleased?.(owner) === true;
    if (isReleased(before?.request.service)) this.#requested.delete(name);
    if (isReleased(claim?.service ?? before?.request.service)) return;
    const isOther = before !== undefined && before.request.service !== claim?.service;
    if (isOther) {
      this.#requested.delete(name);
      this.#provisioner.request({ ...before.request, action: 'release' });
    }
    if (claim === undefined) return;
    const { address, pool, service, ports, heldUntil } = claim;
    const { address: outside, isAnswered } = this.#options.publicOf(claim);
    const ofPublic = outside === address || outside === '' ? {} : { public: outside };
    const asked: ProvisionRequest = { action: 'assign', address, pool, service, ports, isAnswered };
    const request: ProvisionRequest = { ...asked, ...ofPublic };
    const same = isOther ? undefined : before;
    if (heldUntil !== 0) {
      if (same === undefined) this.#requested.set(name, { request, isAssigned: false });
      return;
    }
    // The program's own answer is no news to it.
    const { public: known, ...former } = same?.request ?? asked;
    const isSame = sameValue(former, asked) && (isAnswered || known === request.public);
    this.#requested.set(name, { request, isAssigned: true });
    if (same?.isAssigned && isSame) return;
    this.#provisioner.request(request);
  }

  /** Ends a call of the program that is under way. */
  close(): void {
    this.#provisioner?.close();
    this.#provisioner = undefined;
    this.#requested.clear();
  }

  #others({ address, service }: ProvisionRequest): readonly string[] {
    const services = this.#options
      .claimsOn(address)
      .filter((claim) => !claim.reserved && claim.service !== service)
      .map((claim) => claim.service);
    return [...new Set(services)].sort();
  }
}
