// The shape of AddressPool and AddressClaim, the two kinds of object that are our own, and the flat values that they
// become. One source for what comes from the API, for pools in the settings and for the CRDs. Pure.

import { parseAddress } from '../base/ip.ts';
import { type AddressRange, parseBlock } from '../base/ip-range.ts';
import {
  listOf,
  mappingOf,
  oneOf,
  someOf,
  textReader,
  textRule,
  textsByName,
  truth,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import type { Family, Protocol } from '../model.ts';
import { label, labelValue, qualifiedName, subdomain } from './object-names.ts';

export const ADDRESS_GROUP = 'headgate.io';
export const ADDRESS_API_VERSION = `${ADDRESS_GROUP}/v1alpha1`;

/** Addresses that Services may be given. */
export interface AddressPool {
  readonly kind: 'AddressPool';
  /** The name alone: pools have no namespace. */
  readonly key: string;
  readonly name: string;
  /** Of two pools of one name, that of the settings holds. */
  readonly source: 'settings' | 'api';
  readonly uid: string;
  /** What it may give, in the order written; `avoidBuggyIPs` has taken its addresses out. */
  readonly blocks: readonly AddressRange[];
  /** The pool with the highest number is asked first; of equal ones, the first by name. */
  readonly priority: number;
  /** False: only for Services that ask for it by name, or for one of its addresses. */
  readonly auto: boolean;
  /** Gives nothing new; what it has given stays. */
  readonly draining: boolean;
  readonly shareAcrossNamespaces: boolean;
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly selector: Selector;
}

/** A label selector as Kubernetes has it; an empty one selects everything. */
export interface Selector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values: readonly string[];
  }[];
}

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

const blockNot =
  'is not a CIDR without host bits (192.0.2.0/24), a range (192.0.2.10-192.0.2.20) or an address, of unicast addresses';

/** [first, last] of what no VIP can be: unspecified, multicast, reserved; link-local and IPv4 in disguise of IPv6. */
const UNSERVABLE: Readonly<Record<Family, readonly (readonly [bigint, bigint])[]>> = {
  v4: [
    [0n, 0xffffffn],
    [0xe0000000n, 0xffffffffn],
  ],
  v6: [
    [0n, 0n],
    [0x10000n, 0xffffffffn],
    [0xffff00000000n, 0xffffffffffffn],
    [0xfe80n << 112n, (0xfec0n << 112n) - 1n],
    [0xff00n << 112n, (1n << 128n) - 1n],
  ],
};

const block = textReader((text) => {
  const parsed = parseBlock(text);
  if (parsed === undefined) return undefined;
  const { family, first, last } = parsed.range;
  return UNSERVABLE[family].some(([from, to]) => first <= to && last >= from) ? undefined : parsed;
}, blockNot).meta({
  type: 'string',
  maxLength: 100,
  pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3}| *- *[0-9A-Fa-f:.]+)?$',
});

const labelText = () => textRule(labelValue.check, labelValue.not);

const expression = mappingOf({
  key: textRule(qualifiedName.check, qualifiedName.not),
  operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
  values: listOf(labelText()).nullish(),
}).also(({ operator, values }, refuse) => {
  const wantsValues = operator === 'In' || operator === 'NotIn';
  if (wantsValues !== (values ?? []).length > 0) {
    const message = wantsValues ? `missing, ${operator} needs at least one` : `${operator} takes none`;
    refuse(['values'], message);
  }
});

const texts = { type: 'object', additionalProperties: { type: 'string' } } as const;

const selector = mappingOf({
  matchLabels: textsByName(qualifiedName, labelValue).meta(texts).nullish(),
  matchExpressions: listOf(expression).nullish(),
});

/** The `spec` of an AddressPool; in the settings, the pool without its name. */
export const poolSpecSchema = mappingOf({
  blocks: someOf(block, 'block').meta({
    description:
      'What the pool may give: CIDRs, ranges of addresses as in 192.0.2.10-192.0.2.20, single addresses; IPv4 and IPv6.',
    minItems: 1,
    maxItems: 1000,
  }),
  priority: wholeNumber(-1000, 1000)
    .meta({
      type: 'integer',
      minimum: -1000,
      maximum: 1000,
      description:
        'The pool with the highest number is asked first; of equal ones, the first by name. Default 0.',
    })
    .nullish(),
  auto: truth()
    .meta({
      description:
        'False: only Services that ask for this pool by name, or for one of its addresses, get any. Default true.',
    })
    .nullish(),
  draining: truth()
    .meta({ description: 'Gives nothing new; what it has given stays where it is. Default false.' })
    .nullish(),
  avoidBuggyIPs: truth()
    .meta({
      description:
        'Leaves out the first and the last address (network and broadcast) of each IPv4 CIDR. Default false.',
    })
    .nullish(),
  shareAcrossNamespaces: truth()
    .meta({
      description:
        'Services of different namespaces may share an address by the same sharing key. Default false: of one namespace only.',
    })
    .nullish(),
  serviceAllocation: mappingOf({
    namespaces: listOf(textRule(label.check, label.not))
      .meta({ description: 'Only Services of these namespaces. Empty: of all.' })
      .nullish(),
    serviceSelector: selector
      .meta({ description: 'Only Services whose labels match. Empty: all.' })
      .nullish(),
  })
    .meta({ description: 'Which Services may have addresses of the pool: those that meet all that is said.' })
    .nullish(),
});

export const poolSchema = mappingOf({
  metadata: mappingOf({
    name: textRule(subdomain.check, subdomain.not),
    uid: textRule((text) => text.length <= 128, 'is not a UID').nullish(),
  }),
  spec: poolSpecSchema,
});

export function poolOf(
  name: string,
  source: AddressPool['source'],
  uid: string,
  spec: Valid<typeof poolSpecSchema>,
): AddressPool {
  const { namespaces, serviceSelector } = spec.serviceAllocation ?? {};
  const blocks = spec.blocks.map(({ range, isCidr }) =>
    spec.avoidBuggyIPs && isCidr ? withoutEnds(range) : range,
  );
  return {
    kind: 'AddressPool',
    key: name,
    name,
    source,
    uid,
    blocks,
    priority: spec.priority ?? 0,
    auto: spec.auto ?? true,
    draining: spec.draining ?? false,
    shareAcrossNamespaces: spec.shareAcrossNamespaces ?? false,
    namespaces: namespaces ?? [],
    selector: {
      matchLabels: serviceSelector?.matchLabels ?? {},
      matchExpressions: (serviceSelector?.matchExpressions ?? []).map(({ key, operator, values }) => ({
        key,
        operator,
        values: values ?? [],
      })),
    },
  };
}

/** A /31 or a /32 has neither network nor broadcast address (RFC 3021). */
function withoutEnds(range: AddressRange): AddressRange {
  if (range.family === 'v6' || range.last - range.first < 2n) return range;
  return { ...range, first: range.first + 1n, last: range.last - 1n };
}

const SERVICE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
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
export const claimSpecSchema = mappingOf({
  address: textReader(parseAddress, 'is not an IPv4 or IPv6 address').meta({
    type: 'string',
    maxLength: 45,
    description: 'The address; it cannot be changed.',
    'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'the address cannot be changed' }],
  }),
  family: oneOf('IPv4', 'IPv6').meta({ description: 'That of the address.' }).nullish(),
  pool: textRule((text) => text === '' || subdomain.check(text), subdomain.not)
    .meta({ description: 'The pool that the address came from.' })
    .nullish(),
  service: textRule((text) => text === '' || SERVICE.test(text), 'is not "NAMESPACE/NAME" of a Service')
    .meta({
      maxLength: 127,
      description:
        'NAMESPACE/NAME of the Service that has the address; in a reservation, the one that it is for.',
    })
    .nullish(),
  serviceUID: textRule((text) => text.length <= 128, 'is not a UID')
    .meta({ description: 'Of the Service that had the address last.' })
    .nullish(),
  sharingKey: labelText()
    .meta({ description: 'Services with the same key share the address, each with ports of its own.' })
    .nullish(),
  ports: listOf(
    mappingOf({
      protocol: oneOf('TCP', 'UDP', 'SCTP'),
      port: wholeNumber(1, 65535).meta({ type: 'integer', minimum: 1, maximum: 65535 }),
    }),
  )
    .meta({ description: 'What of the address is claimed. Empty: all of it.' })
    .nullish(),
  since: time('When the Service got the address.'),
  heldUntil: time('Set once the Service is gone: until then the address is kept for it.'),
  reserved: truth()
    .meta({
      description:
        'True in what users make: keeps the address out of use, but for the Service or the namespace that it names.',
    })
    .nullish(),
  namespace: textRule((text) => text === '' || label.check(text), label.not)
    .meta({ description: 'Of a reservation: Services of this namespace may ask for the address.' })
    .nullish(),
})
  .also(({ reserved, service }, refuse) => {
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

export const claimSchema = mappingOf({
  metadata: mappingOf({
    name: textRule(subdomain.check, subdomain.not),
    uid: textRule((text) => text.length <= 128, 'is not a UID').nullish(),
    resourceVersion: textRule((text) => text.length <= 128, 'is not a version').nullish(),
  }),
  spec: claimSpecSchema,
});

/** Of the API, or of a manifest. */
export function storedPoolOf({ metadata, spec }: Valid<typeof poolSchema>): AddressPool {
  return poolOf(metadata.name, 'api', metadata.uid ?? '', spec);
}

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
