// AddressPools and AddressClaims: from what the API sends to flat values, and back to what it takes.
// Pure: never throws, a fault is a Problem and costs only its own object.

import type { Problem } from '../model.ts';
import { faultsOf, isMapping, shownValue, type z } from '../validate.ts';
import {
  ADDRESS_API_VERSION,
  type AddressClaim,
  type AddressPool,
  claimOf,
  claimSchema,
  poolOf,
  poolSchema,
} from './address-schemas.ts';
import { subdomain } from './object-names.ts';

/** Exactly one of `object` and `problem`. */
export type ParsedAddressObject<T> =
  | { readonly object: T; readonly resourceVersion: string; readonly problem?: undefined }
  | { readonly object?: undefined; readonly problem: Problem };

/** Items of a typed list come without kind and apiVersion: both may be missing, but not be others. */
export function parseAddressPool(json: unknown): ParsedAddressObject<AddressPool> {
  return parse('AddressPool', json, poolSchema, ({ metadata, spec }) =>
    poolOf(metadata.name, 'api', metadata.uid ?? '', spec),
  );
}

/** A claim that is no reservation has to name its Service. */
export function parseAddressClaim(json: unknown): ParsedAddressObject<AddressClaim> {
  const parsed = parse('AddressClaim', json, claimSchema, claimOf);
  if (parsed.object === undefined || parsed.object.reserved || parsed.object.service !== '') return parsed;
  const name = `AddressClaim ${parsed.object.name}`;
  return refusal(name, 'spec.service: missing, only a claim with "reserved: true" may do without');
}

/** The whole object, to create it or to replace the one of that version; without a version, whichever is there. */
export function claimManifest(claim: AddressClaim, resourceVersion = ''): Readonly<Record<string, unknown>> {
  const { name, address, family, pool, service, serviceUID, sharingKey, ports, reserved, namespace } = claim;
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressClaim',
    metadata: { name, ...(resourceVersion === '' ? {} : { resourceVersion }) },
    spec: {
      address,
      family: family === 'v4' ? 'IPv4' : 'IPv6',
      ...filled({ pool, service, serviceUID, sharingKey, namespace }),
      ...(ports.length === 0 ? {} : { ports: ports.map(({ protocol, port }) => ({ protocol, port })) }),
      ...(claim.since === 0 ? {} : { since: new Date(claim.since).toISOString() }),
      ...(claim.heldUntil === 0 ? {} : { heldUntil: new Date(claim.heldUntil).toISOString() }),
      ...(reserved ? { reserved } : {}),
    },
  };
}

/** Addresses of one family: how many the pool has, and what has become of them. */
export interface AddressCount {
  readonly total: bigint;
  readonly free: bigint;
  readonly used: bigint;
  readonly held: bigint;
  readonly conflicting: bigint;
}

/**
 * The `status` of an AddressPool, as all of what a server-side apply of the status owns. Numbers are texts, since an
 * IPv6 pool has more addresses than an int64 can count. `problem`: what overlaps, '' for nothing.
 */
export function poolStatusManifest(
  pool: AddressPool,
  counts: { readonly v4: AddressCount; readonly v6: AddressCount },
  problem: string,
): Readonly<Record<string, unknown>> {
  const state = problem !== '' ? 'Conflicting' : pool.draining ? 'Draining' : 'Active';
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name: pool.name },
    status: {
      state,
      ...(problem === '' ? {} : { message: problem }),
      ipv4: texts(counts.v4),
      ipv6: texts(counts.v6),
    },
  };
}

function texts({ total, free, used, held, conflicting }: AddressCount): Readonly<Record<string, string>> {
  return {
    total: String(total),
    free: String(free),
    used: String(used),
    held: String(held),
    conflicting: String(conflicting),
  };
}

function filled(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== ''));
}

function parse<S extends z.ZodType, T>(
  kind: string,
  json: unknown,
  schema: S,
  make: (checked: z.output<S>) => T,
): ParsedAddressObject<T> {
  if (!isMapping(json)) return refusal(kind, `${shownValue(json)} is not a Kubernetes object`);
  const { name, resourceVersion } = isMapping(json.metadata) ? json.metadata : {};
  const object = typeof name === 'string' && subdomain.check(name) ? `${kind} ${name}` : kind;
  for (const [field, wanted] of [
    ['kind', kind],
    ['apiVersion', ADDRESS_API_VERSION],
  ] as const) {
    const is = json[field];
    if (is !== undefined && is !== wanted) {
      return refusal(object, `${field}: ${shownValue(is)} is not "${wanted}"`);
    }
  }
  const checked = schema.safeParse(json);
  if (!checked.success) return refusal(object, faultsOf(checked.error, json));
  return {
    object: make(checked.data),
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
  };
}

function refusal(object: string, fault: string): { readonly problem: Problem } {
  return { problem: { object, reason: 'InvalidObject', message: `${object}: ${fault}` } };
}
