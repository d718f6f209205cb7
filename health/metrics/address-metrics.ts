// Metrics of address pools, of the claims on their addresses, and of the provisioner program.

import type { MetricRegistry } from './metric-registry.ts';

export interface AddressState {
  readonly pools: readonly PoolState[];
  /** Claims that are not saved yet, neither in the cluster nor in the file. */
  readonly unkept: number;
  /** Addresses that the provisioner program has yet to assign or release. */
  readonly provisioning: number;
}

/** Counts are decimal numbers, which a sample rounds above 2 to the power of 53. */
interface PoolState extends Readonly<Record<(typeof USES)[number], string>> {
  readonly name: string;
  readonly family: 'v4' | 'v6';
}

const USES = ['free', 'used', 'held', 'conflicting'] as const;
const WRITE_RESULTS = ['done', 'conflict', 'failed'] as const;

export type AddressMetrics = ReturnType<typeof addressMetrics>;

export function addressMetrics(registry: MetricRegistry, state: () => AddressState) {
  registry.gauge(
    'headgate_address_pool_addresses',
    'Addresses of an address pool, by state',
    ['pool', 'family', 'state'],
    () =>
      state().pools.flatMap(({ name: pool, family, ...counts }) =>
        USES.map((use) => [{ pool, family, state: use }, Number(counts[use])] as const),
      ),
  );
  registry.number('headgate_unkept_claims', 'Address claims not saved yet', () => state().unkept);
  registry.number(
    'headgate_provisioner_pending',
    'Addresses that the provisioner has yet to assign or release',
    () => state().provisioning,
  );
  return {
    claimWritten: registry.counter<[result: (typeof WRITE_RESULTS)[number]]>(
      'headgate_claim_writes_total',
      'Writes of AddressClaims to the cluster',
      ['result'],
      WRITE_RESULTS.map((result) => [result]),
    ),
    provisioned: registry.counter<[action: 'assign' | 'release', result: 'done' | 'failed']>(
      'headgate_provisioner_calls_total',
      'Calls of the provisioner',
      ['action', 'result'],
    ),
  };
}
