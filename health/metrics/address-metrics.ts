// Metrics of address pools, of the claims on their addresses, and of the program that is told of addresses.

import type { Counter, MetricRegistry } from './metric-registry.ts';

export interface AddressState {
  readonly pools: readonly PoolState[];
  /** Claims that neither the cluster nor the file has taken yet. */
  readonly unkept: number;
  /** What the program that is told of addresses has yet to carry out. */
  readonly provisioning: number;
}

interface PoolState extends Readonly<Record<AddressUse, number>> {
  readonly name: string;
  readonly family: 'v4' | 'v6';
}

type AddressUse = (typeof USES)[number];
const USES = ['free', 'used', 'held', 'conflicting'] as const;

export class AddressMetrics {
  readonly #claimWrites: Counter;
  readonly #calls: Counter;

  constructor(registry: MetricRegistry, state: () => AddressState) {
    registry.gauge(
      'headgate_address_pool_addresses',
      'Addresses of an address pool, by what has become of them',
      ['pool', 'family', 'state'],
      () =>
        state().pools.flatMap(({ name: pool, family, ...counts }) =>
          USES.map((use) => [{ pool, family, state: use }, counts[use]] as const),
        ),
    );
    const unkept = 'Claims on addresses that are yet to be kept';
    registry.number('headgate_unkept_claims', unkept, () => state().unkept);
    const pending = 'What the program that is told of addresses has yet to carry out';
    registry.number('headgate_provisioner_pending', pending, () => state().provisioning);
    this.#claimWrites = registry.counter(
      'headgate_claim_writes_total',
      'Writes of AddressClaims in the cluster',
      ['result'],
      ['done', 'conflict', 'failed'].map((result) => ({ result })),
    );
    this.#calls = registry.counter(
      'headgate_provisioner_calls_total',
      'Calls of the program that is told of addresses',
      ['action', 'result'],
    );
  }

  claimWritten(result: 'done' | 'conflict' | 'failed'): void {
    this.#claimWrites.inc({ result });
  }

  provisioned(action: 'assign' | 'release', result: 'done' | 'failed'): void {
    this.#calls.inc({ action, result });
  }
}
