// Reads the pools of the settings: a list, each item like the `spec` of an AddressPool with a name. Pure.

import { subdomain } from '../base/name-forms.ts';
import { unknownKeys } from '../base/nearest.ts';
import { quote } from '../base/quote.ts';
import { faultsOf, isMapping, shownValue } from '../base/validate.ts';
import { type AddressPool, POOL_KEYS, poolOf, poolSpecSchema } from '../kubernetes/address-pool.ts';
import { poolBgpSchema } from '../kubernetes/pool-bgp.ts';

export type { AddressPool } from '../kubernetes/address-pool.ts';
export type { PoolBgp } from '../kubernetes/pool-bgp.ts';

/** `value`: of the YAML file; undefined and null for no pools. A pool with an error is left out; errors have its place. */
export function readPools(value: unknown): {
  readonly pools: readonly AddressPool[];
  readonly errors: readonly string[];
} {
  if (value === undefined || value === null) return { pools: [], errors: [] };
  if (!Array.isArray(value)) return { pools: [], errors: [`${shownValue(value)} is not a list of pools`] };
  const pools = new Map<string, AddressPool>();
  const errors: string[] = [];
  for (const [index, item] of value.entries()) {
    const { name, faults, pool } = readPool(item);
    const place = name === '' ? `pools[${index}]` : `pool ${quote(name)}`;
    errors.push(...faults.map((fault) => `${place}: ${fault}`));
    if (pool === undefined) continue;
    if (pools.has(name)) errors.push(`${place}: there are two of this name`);
    else pools.set(name, pool);
  }
  return { pools: [...pools.values()], errors };
}

function readPool(item: unknown): { name: string; faults: readonly string[]; pool?: AddressPool } {
  if (!isMapping(item)) return { name: '', faults: [`${shownValue(item)} is not a mapping`] };
  const { name, ...spec } = item;
  if (typeof name !== 'string' || !subdomain.check(name)) {
    const fault = name === undefined ? 'missing, every pool has one' : `${shownValue(name)} ${subdomain.not}`;
    return { name: '', faults: [`name: ${fault}`] };
  }
  const faults = [...unknownKeys(spec, POOL_KEYS)];
  const { serviceAllocation } = spec;
  if (isMapping(serviceAllocation))
    faults.push(...unknownKeys(serviceAllocation, ['namespaces', 'serviceSelector'], 'serviceAllocation.'));
  if (isMapping(spec.bgp)) {
    faults.push(...unknownKeys(spec.bgp, poolBgpSchema.keys, 'bgp.'));
    if (isMapping(spec.bgp.announceFrom))
      faults.push(...unknownKeys(spec.bgp.announceFrom, ['hosts', 'hostSelector'], 'bgp.announceFrom.'));
  }
  const checked = poolSpecSchema.judge(spec);
  if (checked.success && checked.data.allowed?.fault) faults.push(checked.data.allowed.fault);
  if (!checked.success) faults.push(faultsOf(checked.faults, spec));
  if (!checked.success || faults.length > 0) return { name, faults };
  return { name, faults, pool: poolOf(name, 'settings', checked.data) };
}
