// Builders of pools, requests and claims for tests, with defaults for all fields.

import { Addresses, type AddressRequest, type Assignment } from '../../../agent/addresses/addresses.ts';
import { readPools } from '../../../agent/addresses/read-pools.ts';
import type { AddressClaim } from '../../../agent/kubernetes/address-claim.ts';
import type { AddressPool } from '../../../agent/kubernetes/address-pool.ts';
import { ADDRESS_API_VERSION as apiVersion } from '../../../agent/kubernetes/object-names.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import type { Family } from '../../../agent/model/load-balancer.ts';

/** Pools as in the settings. Errors: an invalid pool. */
export function pool(name: string, blocks: readonly string[], more: object = {}): AddressPool {
  const { pools, errors } = readPools([{ name, blocks, ...more }]);
  if (pools[0] === undefined) throw new Error(errors.join('; '));
  return pools[0];
}

/** Any one IPv4 address for port 80. */
export function request(
  key: string,
  more: Partial<Omit<AddressRequest, 'given' | 'statusIPs'>> & {
    readonly given?: readonly string[];
    readonly statusIPs?: readonly string[];
  } = {},
): AddressRequest {
  const { given = [], statusIPs = [], ...rest } = more;
  return {
    key,
    namespace: key.slice(0, key.indexOf('/')),
    uid: `uid-of-${key.replaceAll('/', '.')}`,
    created: 1_000,
    labels: {},
    namespaceLabels: undefined,
    families: ['v4'],
    need: 'all',
    publicAddresses: [],
    pool: undefined,
    sharingKey: '',
    ports: [{ protocol: 'TCP', port: 80 }],
    own: [],
    problems: [],
    isLocal: false,
    ...rest,
    given: given.map(withFamily),
    statusIPs: statusIPs.map(withFamily),
  };
}

function withFamily(address: string): { address: string; family: Family } {
  return { address, family: address.includes(':') ? 'v6' : 'v4' };
}

/** A claim that a user or an earlier leader has written. */
export function claim(name: string, spec: object): AddressClaim {
  return readClaim({ apiVersion, kind: 'AddressClaim', metadata: { name }, spec });
}

/** Errors: the object is not a valid AddressClaim. */
export function readClaim(json: unknown): AddressClaim {
  const { objects, problems } = parseObject(json, '');
  if (objects[0]?.kind !== 'AddressClaim') throw new Error(problems[0]?.message);
  return objects[0].claim;
}

/** TCP ports by number. */
export function tcp(...ports: number[]): AddressRequest['ports'] {
  return ports.map((port) => ({ protocol: 'TCP', port }));
}

export function leading(pools: readonly AddressPool[], claims: readonly AddressClaim[] = []): Addresses {
  const addresses = new Addresses();
  addresses.update({ pools, claims: { upserted: claims }, leading: true }, 0);
  return addresses;
}

/** Adds or changes Services. */
export function ask(addresses: Addresses, now: number, ...requests: AddressRequest[]) {
  return addresses.update({ requests: requests.map((one) => [one.key, one] as const) }, now);
}

export function leave(addresses: Addresses, now: number, ...keys: string[]) {
  return addresses.update({ requests: keys.map((key) => [key, undefined] as const) }, now);
}

export function had(addresses: Addresses, key: string): readonly string[] {
  return textsOf(addresses.assignment(key));
}

export function textsOf(assignment: Assignment | undefined): readonly string[] {
  return (assignment?.addresses ?? []).map(({ address }) => address);
}

export function reasons(addresses: Addresses, key: string): readonly string[] {
  return (addresses.assignment(key)?.problems ?? []).map(({ reason }) => reason);
}

/** Addresses and ports that two Services have. */
export function doubles(claims: Iterable<AddressClaim>): readonly string[] {
  const takers = new Map<string, Set<string>>();
  const faults: string[] = [];
  const all = [...claims].filter(({ reserved }) => !reserved);
  for (const one of all) {
    const places =
      one.ports.length === 0 ? ['all'] : one.ports.map(({ protocol, port }) => `${protocol}/${port}`);
    for (const other of all) {
      if (other === one || other.address !== one.address) continue;
      const theirs = other.ports.map(({ protocol, port }) => `${protocol}/${port}`);
      const clash =
        one.ports.length === 0 || theirs.length === 0 || places.some((place) => theirs.includes(place));
      if (clash) faults.push(`${one.name} and ${other.name}`);
    }
    const taker = `${one.service} ${one.address}`;
    takers.set(taker, (takers.get(taker) ?? new Set()).add(one.name));
    if ((takers.get(taker)?.size ?? 0) > 1) faults.push(`${one.service} has ${one.address} twice`);
  }
  return faults;
}
