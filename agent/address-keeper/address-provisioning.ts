// Keeps the operator's program (provisioner.ts) told of who has which address: of every address that is in use when this
// host begins to lead, then of each that is given or released once the store of claims has it so.
// Owns the provisioner; what goes wrong is a Problem of the Service.

import type { Log } from '../host/log.ts';
import type { AddressClaim } from '../kubernetes/address-claim.ts';
import type { Problem } from '../model/load-balancer.ts';
import { Provisioner, type ProvisionRequest } from './provisioner.ts';

export interface ProvisioningOptions {
  readonly program: string;
  readonly log: Log;
  readonly metrics: ProvisioningMetrics;
  /** All claims on an address. */
  readonly claimsOn: (address: string) => readonly AddressClaim[];
  /** The problems of a Service have changed. */
  readonly onProblem: (service: string) => void;
}

export interface ProvisioningMetrics {
  provisioned(action: 'assign' | 'release', result: 'done' | 'failed'): void;
}

export class Provisioning {
  readonly #options: ProvisioningOptions;
  readonly #provisioner: Provisioner;
  /** Name of a claim → what has been asked for it, by this host or (not `isAssigned`) by who led before. */
  readonly #told = new Map<string, { readonly request: ProvisionRequest; readonly isAssigned: boolean }>();
  /** Service → address → what failed. */
  readonly #problems = new Map<string, Map<string, Problem>>();

  constructor(options: ProvisioningOptions) {
    const { program, log, metrics } = options;
    this.#options = options;
    this.#provisioner = new Provisioner({
      program,
      log,
      others: (request) => this.#others(request),
      onProblem: ({ address, service }, problem) => this.#note(address, service, problem),
      onCall: ({ action }, failure) => metrics.provisioned(action, failure === undefined ? 'done' : 'failed'),
    });
  }

  /** What the program has not carried out yet. */
  get pending(): number {
    return this.#provisioner.pending;
  }

  problemsOf(service: string): readonly Problem[] {
    return [...(this.#problems.get(service)?.values() ?? [])];
  }

  /** Those that have a problem. */
  services(): Iterable<string> {
    return this.#problems.keys();
  }

  /** Of all Services, also those that are gone. */
  problems(): readonly Problem[] {
    return this.#provisioner.problems();
  }

  /** The store has the claim so, or no longer (undefined). An address that is kept is released when that ends. */
  kept(name: string, claim: AddressClaim | undefined): void {
    if (claim?.reserved) return;
    const told = this.#told.get(name);
    if (told !== undefined && told.request.service !== claim?.service) {
      this.#told.delete(name);
      this.#provisioner.request({ ...told.request, action: 'release' });
    }
    if (claim === undefined) return;
    const { address, pool, service, ports } = claim;
    const request: ProvisionRequest = { action: 'assign', address, pool, service, ports };
    const before = this.#told.get(name);
    if (claim.heldUntil !== 0) {
      if (before === undefined) this.#told.set(name, { request, isAssigned: false });
      return;
    }
    if (before?.isAssigned && portsOf(before.request) === portsOf(request)) return;
    this.#told.set(name, { request, isAssigned: true });
    this.#provisioner.request(request);
  }

  /** Ends the program where it runs. Who leads next tells it everything again. */
  close(): void {
    this.#provisioner.close();
  }

  #others({ address, service }: ProvisionRequest): readonly string[] {
    const services = this.#options
      .claimsOn(address)
      .filter((claim) => !claim.reserved && claim.service !== service)
      .map((claim) => claim.service);
    return [...new Set(services)].sort();
  }

  #note(address: string, service: string, problem: Problem | undefined): void {
    const problems = this.#problems.get(service) ?? new Map<string, Problem>();
    if (problem === undefined) problems.delete(address);
    else problems.set(address, problem);
    if (problems.size === 0) this.#problems.delete(service);
    else this.#problems.set(service, problems);
    this.#options.onProblem(service);
  }
}

function portsOf({ ports }: Pick<ProvisionRequest, 'ports'>): string {
  return JSON.stringify(ports);
}
