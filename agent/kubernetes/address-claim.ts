// The schema of an AddressClaim, its flat value, and its manifest: for the API, for the file of claims and for the CRD.
// Pure.

import { parseAddress } from '../base/ip.ts';
import { label, labelValue, subdomain } from '../base/name-forms.ts';
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
import type { Family, OwnerKey, Protocol } from '../model/load-balancer.ts';
import { ADDRESS_API_VERSION, named, namedOrEmpty, time, uid } from './object-names.ts';

/** The durable record of the Service that has an address, or some of its ports. */
export interface AddressClaim {
  readonly kind: 'AddressClaim';
  /** The object's; derived from the address unless a user made the claim. */
  readonly name: string;
  /** Canonical. */
  readonly address: string;
  readonly family: Family;
  /** The address's pool, '' in a reservation. */
  readonly pool: string;
  /** The owner: `namespace/name` of a Service. In a reservation '' if it is not for one owner. */
  readonly service: OwnerKey;
  readonly serviceUID: string;
  /** '' if the whole address is claimed. */
  readonly sharingKey: string;
  /** Sorted; empty for the whole address. */
  readonly ports: readonly ClaimedPort[];
  /** In a pool that limits ports: those that the owner may have; undefined elsewhere, and before they are recorded. */
  readonly granted: readonly ClaimedPort[] | undefined;
  /** The address that clients use, named by the owner or by the provisioner; '' if it follows from the pool, or is not known. */
  readonly publicAddress: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** When the address becomes free, milliseconds since the epoch; 0 while the Service has it. */
  readonly heldUntil: number;
  /** A user reserved the address for `service`, or for the Services of `namespace`, or for none. */
  readonly reserved: boolean;
  /** The namespace of a reservation, '' if it names none. */
  readonly namespace: string;
}

/** An AddressClaim in the cluster or in a file. */
export interface StoredClaim {
  readonly kind: 'AddressClaim';
  /** The name alone: claims have no namespace. */
  readonly key: string;
  /** '' if it does not come from the API. */
  readonly uid: string;
  readonly resourceVersion: string;
  readonly claim: AddressClaim;
}

export interface ClaimedPort {
  readonly protocol: Protocol;
  readonly port: number;
}

const BYTE = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const LABEL = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?';
const NAME = '[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const OWNER = `^(${LABEL}/${LABEL}|gateway:${LABEL}/${NAME}|ingress:-/${NAME})?$`;
const OWNER_KEY = new RegExp(OWNER);
/** In the CRD, so that the API server refuses what the agent cannot read; for IPv6 it checks the characters only. */
const FORMS = {
  address: { maxLength: 45, pattern: `^(${BYTE}([.]${BYTE}){3}|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$` },
  label: { maxLength: 63, pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$' },
  subdomain: {
    maxLength: 253,
    pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$',
  },
  labelValue: { maxLength: 63, pattern: '^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$' },
  service: { maxLength: 325, pattern: OWNER },
} as const;

const describedTime = (description: string) =>
  time().meta({ type: 'string', format: 'date-time', description }).or(0);

const claimedPorts = listOf(
  object({
    protocol: oneOf('TCP', 'UDP', 'SCTP'),
    port: wholeNumber(1, 65535),
  }),
);

/** The `spec` of an AddressClaim. */
export const claimSpecSchema = object({
  address: textReader(parseAddress, 'is not an IPv4 or IPv6 address').meta({
    type: 'string',
    ...FORMS.address,
    description: 'The address; it cannot be changed.',
    'x-kubernetes-validations': [
      { rule: 'isIP(self)', message: 'not an IPv4 or IPv6 address' },
      { rule: 'self == oldSelf', message: 'the address cannot be changed' },
    ],
  }),
  family: oneOf('IPv4', 'IPv6').meta({ description: 'The family of the address.' }).nullish(),
  pool: namedOrEmpty(subdomain)
    .meta({ ...FORMS.subdomain, description: "The address's pool." })
    .or(''),
  service: textRule(
    (text) => OWNER_KEY.test(text),
    'is not "NAMESPACE/NAME" of a Service, "gateway:NAMESPACE/NAME" or "ingress:-/CLASS"',
  )
    .meta({
      ...FORMS.service,
      description:
        'NAMESPACE/NAME of the Service that has the address, or for which it is reserved; gateway:NAMESPACE/NAME for a Gateway, ingress:-/CLASS for an IngressClass.',
    })
    .or(''),
  serviceUID: uid()
    .meta({ maxLength: 128, description: 'UID of the Service that had the address last.' })
    .or(''),
  sharingKey: named(labelValue)
    .meta({
      ...FORMS.labelValue,
      description: 'Services with the same key share the address, each with its own ports.',
    })
    .or(''),
  ports: claimedPorts.meta({ description: 'The claimed ports. Empty: the whole address.' }).or([]),
  granted: claimedPorts
    .meta({
      description: 'In a pool that limits ports: those that the owner has got, also by an earlier rule.',
    })
    .nullish(),
  public: textReader(parseAddress, 'is not an IPv4 or IPv6 address')
    .meta({
      type: 'string',
      ...FORMS.address,
      description: "The address that clients use, by the owner's annotation or the provisioner's answer.",
    })
    .nullish(),
  since: describedTime('When the Service got the address.'),
  heldUntil: describedTime('Set once the Service is gone: the address is held for it until this time.'),
  reserved: boolean()
    .meta({
      description:
        'True in a claim that a user makes: reserves the address for the Service or the namespace in it, or for none.',
    })
    .or(false),
  namespace: namedOrEmpty(label)
    .meta({
      ...FORMS.label,
      description: 'In a reservation: Services of this namespace may request the address.',
    })
    .or(''),
})
  .refine(({ reserved, service }, refuse) => {
    if (reserved || service) return;
    refuse(['service'], 'missing, which is allowed only with "reserved: true"');
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: "(has(self.reserved) && self.reserved) || (has(self.service) && self.service != '')",
        message: 'only a claim with "reserved: true" may have no service',
      },
    ],
  });

export const claimSchema = object({
  metadata: object({
    name: named(subdomain),
    uid: uid().or(''),
    resourceVersion: textRule((text) => text.length <= 128, 'is not a version').or(''),
  }),
  spec: claimSpecSchema,
});

export function storedClaimOf(checked: Valid<typeof claimSchema>): StoredClaim {
  const { name: key, uid, resourceVersion } = checked.metadata;
  return { kind: 'AddressClaim', key, uid, resourceVersion, claim: claimOf(checked) };
}

/** A claim without `since` counts as the oldest. */
function claimOf({ metadata, spec }: Valid<typeof claimSchema>): AddressClaim {
  const { public: outside, ...rest } = spec;
  const { address, family } = spec.address;
  const ports = sortedPorts(spec.ports);
  const granted = spec.granted && sortedPorts(spec.granted);
  const publicAddress = outside?.address ?? '';
  return {
    kind: 'AddressClaim',
    name: metadata.name,
    ...rest,
    address,
    family,
    ports,
    granted,
    publicAddress,
  };
}

/** Without duplicates, by protocol and number. */
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

/** The whole object; with a version it replaces only this version. */
export function claimManifest(claim: AddressClaim, resourceVersion = ''): Readonly<Record<string, unknown>> {
  const { name, address, family, pool, service, serviceUID, sharingKey, ports, reserved, namespace } = claim;
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressClaim',
    metadata: { name, ...(resourceVersion === '' ? {} : { resourceVersion }) },
    spec: {
      address,
      family: family === 'v4' ? 'IPv4' : 'IPv6',
      ...filled({ pool, service, serviceUID, sharingKey, namespace, public: claim.publicAddress }),
      ...(ports.length === 0 ? {} : { ports: ports.map(({ protocol, port }) => ({ protocol, port })) }),
      ...(claim.granted && { granted: claim.granted.map(({ protocol, port }) => ({ protocol, port })) }),
      ...(claim.since === 0 ? {} : { since: new Date(claim.since).toISOString() }),
      ...(claim.heldUntil === 0 ? {} : { heldUntil: new Date(claim.heldUntil).toISOString() }),
      ...(reserved ? { reserved } : {}),
    },
  };
}

function filled(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== ''));
}
