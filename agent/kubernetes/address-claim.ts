// The shape of an AddressClaim and the flat value that it becomes. One source for what comes from the API, for the file
// of claims and for the CRD. Pure.

import { parseAddress } from '../base/ip.ts';
import {
  boolean,
  listOf,
  object,
  oneOf,
  textReader,
  textRule,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import type { Family, Protocol } from '../model/load-balancer.ts';
import { ADDRESS_API_VERSION, label, labelValue, subdomain } from './object-names.ts';

/** The durable record of who has an address, or part of it: what a Service's status is derived from. */
export interface AddressClaim {
  readonly kind: 'AddressClaim';
  /** Of the object; made of the address where it is ours (claim-name.ts). */
  readonly name: string;
  /** Canonical. */
  readonly address: string;
  readonly family: Family;
  /** The pool that the address came from, '' in a reservation. */
  readonly pool: string;
  /** `namespace/name`; in a reservation whom it is for, '' where it names no Service. */
  readonly service: string;
  readonly serviceUID: string;
  /** '' where the whole address is claimed. */
  readonly sharingKey: string;
  /** Sorted; empty: the whole address. */
  readonly ports: readonly ClaimedPort[];
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** 0 while the Service has it; then when it becomes free, milliseconds since the epoch. */
  readonly heldUntil: number;
  /** Made by a user: keeps the address from everybody but `service`, or the Services of `namespace`. */
  readonly reserved: boolean;
  /** Of a reservation, '' where it names none. */
  readonly namespace: string;
}

/** An AddressClaim as it is kept, in the cluster or in a file. */
export interface StoredClaim {
  readonly kind: 'AddressClaim';
  /** The name alone: claims have no namespace. */
  readonly key: string;
  /** '' where it is not of the API. */
  readonly uid: string;
  readonly resourceVersion: string;
  readonly claim: AddressClaim;
}

export interface ClaimedPort {
  readonly protocol: Protocol;
  readonly port: number;
}

const SERVICE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** For the API server, which is to refuse what the agent could not read: of IPv6 it looks at the characters only. */
const BYTE = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const PATTERNS = {
  address: `^(${BYTE}([.]${BYTE}){3}|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$`,
  label: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$',
  subdomain: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$',
  labelValue: '^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$',
  service: '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$',
} as const;
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Milliseconds since the epoch. */
const time = (description: string) =>
  textReader((text) => {
    const milliseconds = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
    return Number.isNaN(milliseconds) ? undefined : milliseconds;
  }, 'is not a time as in "2026-01-31T12:00:00Z" (RFC 3339)')
    .meta({ type: 'string', format: 'date-time', description })
    .nullish();

/** The `spec` of an AddressClaim. */
export const claimSpecSchema = object({
  address: textReader(parseAddress, 'is not an IPv4 or IPv6 address').meta({
    type: 'string',
    maxLength: 45,
    pattern: PATTERNS.address,
    description: 'The address; it cannot be changed.',
    'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'the address cannot be changed' }],
  }),
  family: oneOf('IPv4', 'IPv6').meta({ description: 'That of the address.' }).nullish(),
  pool: textRule((text) => text === '' || subdomain.check(text), subdomain.not)
    .meta({
      maxLength: 253,
      pattern: PATTERNS.subdomain,
      description: 'The pool that the address came from.',
    })
    .nullish(),
  service: textRule((text) => text === '' || SERVICE.test(text), 'is not "NAMESPACE/NAME" of a Service')
    .meta({
      maxLength: 127,
      pattern: PATTERNS.service,
      description:
        'NAMESPACE/NAME of the Service that has the address; in a reservation, the one that it is for.',
    })
    .nullish(),
  serviceUID: textRule((text) => text.length <= 128, 'is not a UID')
    .meta({ maxLength: 128, description: 'Of the Service that had the address last.' })
    .nullish(),
  sharingKey: textRule(labelValue.check, labelValue.not)
    .meta({
      maxLength: 63,
      pattern: PATTERNS.labelValue,
      description: 'Services with the same key share the address, each with ports of its own.',
    })
    .nullish(),
  ports: listOf(
    object({
      protocol: oneOf('TCP', 'UDP', 'SCTP'),
      port: wholeNumber(1, 65535).meta({ type: 'integer', minimum: 1, maximum: 65535 }),
    }),
  )
    .meta({ description: 'What of the address is claimed. Empty: all of it.' })
    .nullish(),
  since: time('When the Service got the address.'),
  heldUntil: time('Set once the Service is gone: until then the address is kept for it.'),
  reserved: boolean()
    .meta({
      description:
        'True in what users make: keeps the address out of use, but for the Service or the namespace that it names.',
    })
    .nullish(),
  namespace: textRule((text) => text === '' || label.check(text), label.not)
    .meta({
      maxLength: 63,
      pattern: PATTERNS.label,
      description: 'Of a reservation: Services of this namespace may ask for the address.',
    })
    .nullish(),
})
  .refine(({ reserved, service }, refuse) => {
    if (reserved || service) return;
    refuse(['service'], 'missing, only a claim with "reserved: true" may do without');
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: "(has(self.reserved) && self.reserved) || (has(self.service) && self.service != '')",
        message: 'only a claim with "reserved: true" may do without a service',
      },
    ],
  });

export const claimSchema = object({
  metadata: object({
    name: textRule(subdomain.check, subdomain.not),
    uid: textRule((text) => text.length <= 128, 'is not a UID').nullish(),
    resourceVersion: textRule((text) => text.length <= 128, 'is not a version').nullish(),
  }),
  spec: claimSpecSchema,
});

export function storedClaimOf(checked: Valid<typeof claimSchema>): StoredClaim {
  const { name, uid, resourceVersion } = checked.metadata;
  return {
    kind: 'AddressClaim',
    key: name,
    uid: uid ?? '',
    resourceVersion: resourceVersion ?? '',
    claim: claimOf(checked),
  };
}

/** `since` is 0 where the object does not say: then it counts as the oldest. */
function claimOf({ metadata, spec }: Valid<typeof claimSchema>): AddressClaim {
  const { address, family } = spec.address;
  return {
    kind: 'AddressClaim',
    name: metadata.name,
    address,
    family,
    pool: spec.pool ?? '',
    service: spec.service ?? '',
    serviceUID: spec.serviceUID ?? '',
    sharingKey: spec.sharingKey ?? '',
    ports: sortedPorts(spec.ports ?? []),
    since: spec.since ?? 0,
    heldUntil: spec.heldUntil ?? 0,
    reserved: spec.reserved ?? false,
    namespace: spec.namespace ?? '',
  };
}

/** No two alike, by protocol and number. */
export function sortedPorts(ports: readonly ClaimedPort[]): readonly ClaimedPort[] {
  const unique = new Map(
    ports.map(({ protocol, port }) => [portText({ protocol, port }), { protocol, port }]),
  );
  return [...unique.values()].sort((a, b) =>
    a.protocol === b.protocol ? a.port - b.port : a.protocol < b.protocol ? -1 : 1,
  );
}

/** `TCP/80`. */
export function portText({ protocol, port }: ClaimedPort): string {
  return `${protocol}/${port}`;
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

function filled(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== ''));
}
