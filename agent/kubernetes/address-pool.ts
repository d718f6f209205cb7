// The schema of an AddressPool, its flat value, and its status: for the API, for pools in the settings and for the CRD.
// Pure.

import { type AddressRange, parseBlock } from '../base/ip-range.ts';
import { label, subdomain } from '../base/name-forms.ts';
import {
  boolean,
  listOf,
  object,
  oneOf,
  someOf,
  string,
  textReader,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import type { Family } from '../model/load-balancer.ts';
import { type AllowedRule, allowedRule } from './allowed-rule.ts';
import { type Selector, selectorSchema } from './label-selector.ts';
import { ADDRESS_API_VERSION, named, uid } from './object-names.ts';
import { type PoolBgp, poolBgpOf, poolBgpSchema, whyNoAggregate } from './pool-bgp.ts';
import { ONE_BLOCK, type PublicRule, publicRule, publicSchema } from './public-addresses.ts';

/** Addresses for Services. */
export interface AddressPool {
  readonly kind: 'AddressPool';
  /** The name alone: pools have no namespace. */
  readonly key: string;
  readonly name: string;
  /** If two pools have one name, that of the settings counts. */
  readonly source: 'settings' | 'api';
  readonly uid: string;
  /** The generation of the object in the cluster; 0 elsewhere. */
  readonly generation: number;
  /** The condition `Ready` in the object's status. */
  readonly ready: PoolReady | undefined;
  /** In the order of the object, without the addresses that `avoidBuggyIPs` excludes. */
  readonly blocks: readonly AddressRange[];
  /** The highest number is used first; of equal ones, the first by name. */
  readonly priority: number;
  /** False: only for Services that request the pool by name, or one of its addresses. */
  readonly auto: boolean;
  /** Gives no new addresses. */
  readonly draining: boolean;
  readonly shareAcrossNamespaces: boolean;
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly selector: Selector;
  /** undefined: no rule. */
  readonly allowed: AllowedRule | undefined;
  /** By which way, on hosts that have both; '' for VRRP. */
  readonly announce: '' | 'vrrp' | 'bgp';
  /** undefined: to all peers, by all hosts, without more. */
  readonly bgp: PoolBgp | undefined;
  /** undefined: clients use the addresses of the pool. */
  readonly public: PublicRule | undefined;
}

export interface PoolReady {
  readonly status: string;
  readonly reason: string;
  /** As in the object. */
  readonly lastTransitionTime: string;
}

const blockNot =
  'is not a CIDR without host bits (192.0.2.0/24), a range (192.0.2.10-192.0.2.20) or an address, of unicast addresses';

/** [first, last] of addresses that cannot be VIPs: unspecified, multicast, reserved, link-local, IPv4-mapped. */
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

const OCTETS = '([0-9]{1,3}[.]){3}[0-9]{1,3}';
/** In CEL, the number of the IPv4 address whose first octet has this index in a range. */
const numberAt = (first: 0 | 4) =>
  [0, 1, 2, 3]
    .map(
      (at) => `int(self.replace(' ', '').replace('-', '.').split('.')[${first + at}]) * ${256 ** (3 - at)}`,
    )
    .join(' + ');
/** CEL has no order of addresses: ranges of IPv6 are left to the agent. */
const IN_ORDER = `!self.matches('^${OCTETS} *- *${OCTETS}$') || ${numberAt(0)} <= ${numberAt(4)}`;

const block = textReader((text) => {
  const parsed = parseBlock(text);
  if (parsed === undefined) return undefined;
  const { family, first, last } = parsed.range;
  return UNSERVABLE[family].some(([from, to]) => first <= to && last >= from) ? undefined : parsed;
}, blockNot).meta({
  type: 'string',
  maxLength: 83,
  pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3}| *- *[0-9A-Fa-f:.]+)?$',
  'x-kubernetes-validations': [
    {
      rule: "self.contains('-') || (self.contains('/') ? isCIDR(self) && cidr(self) == cidr(self).masked() : isIP(self))",
      message: 'not a CIDR without host bits (192.0.2.0/24), a range (192.0.2.10-192.0.2.20) or an address',
    },
    {
      rule: "!self.contains('-') || isIP(self.find('^[^ -]*')) && isIP(self.find('[^ -]*$'))",
      message: 'both ends of a range must be addresses, as in 192.0.2.10-192.0.2.20',
    },
    { rule: IN_ORDER, message: 'the end of a range must not be before its start' },
  ],
});

const EVERYTHING: Selector = { matchLabels: {}, matchExpressions: [] };

/** Ranges are left to the agent, which also checks that they consist of whole networks. */
const WHOLE_AGGREGATES = (
  [
    ['aggregateLength', '.', 4],
    ['aggregateLengthV6', ':', 6],
  ] as const
).map(([field, mark, version]) => ({
  rule: `!has(self.bgp) || !has(self.bgp.${field}) || self.blocks.all(b, !b.contains('${mark}') || b.contains('-') || (b.contains('/') ? cidr(b).prefixLength() <= self.bgp.${field} : self.bgp.${field} == ${version === 4 ? 32 : 128}))`,
  message: `bgp.${field} must not be shorter than the prefix of an IPv${version} block`,
}));

const poolFields = object({
  blocks: someOf(block, 'block').meta({
    description:
      'The addresses of the pool: CIDRs, ranges as in 192.0.2.10-192.0.2.20, single addresses; IPv4 and IPv6.',
    minItems: 1,
    maxItems: 1000,
  }),
  priority: wholeNumber(-1000, 1000)
    .meta({
      default: 0,
      description: 'The pool with the highest number is used first; of equal ones, the first by name.',
    })
    .or(0),
  auto: boolean()
    .meta({
      default: true,
      description: 'False: only Services that request this pool by name, or one of its addresses, get one.',
    })
    .or(true),
  draining: boolean()
    .meta({
      default: false,
      description: 'True: gives no new addresses; Services keep those that they have.',
    })
    .or(false),
  avoidBuggyIPs: boolean()
    .meta({
      default: false,
      description: 'Leaves out the first and the last address (network and broadcast) of each IPv4 CIDR.',
    })
    .or(false),
  shareAcrossNamespaces: boolean()
    .meta({
      default: false,
      description: 'True: Services of different namespaces may share an address by the same sharing key.',
    })
    .or(false),
  serviceAllocation: object({
    namespaces: listOf(named(label))
      .meta({ description: 'Only Services of these namespaces. Empty: of all namespaces.' })
      .or([]),
    serviceSelector: selectorSchema
      .meta({ description: 'Only Services whose labels match. Empty: all.' })
      .or(EVERYTHING),
  })
    .meta({
      description: 'The Services that may have addresses of the pool: those that meet all conditions.',
    })
    .or({ namespaces: [], serviceSelector: EVERYTHING }),
  allowed: allowedRule,
  announce: oneOf('vrrp', 'bgp')
    .meta({
      description: 'How the VIPs become reachable on hosts with "announce: both". By default by VRRP.',
    })
    .nullish(),
  bgp: poolBgpSchema
    .meta({
      description: 'How the VIPs are announced by BGP. By default to all peers, by all hosts.',
    })
    .nullish(),
  public: publicSchema.nullish(),
});

export const POOL_KEYS = poolFields.keys;
/** The `spec` of an AddressPool; in the settings, the pool without its name. */
export const poolSpecSchema = poolFields
  .refine(({ blocks, bgp }, refuse) => {
    for (const { range } of blocks) {
      const key = range.family === 'v4' ? 'aggregateLength' : 'aggregateLengthV6';
      const length = bgp?.[key];
      const why = length === undefined ? '' : whyNoAggregate(range, length);
      if (why !== '') refuse(['bgp', key], why);
    }
  })
  .refine(({ blocks, public: outside }, refuse) => {
    const [inside] = blocks;
    if (outside?.from === undefined || inside === undefined) return;
    if (blocks.length > 1 || publicRule(inside.range, outside) === undefined)
      refuse(['public', 'from'], 'is not a range of the family and size of the only block of the pool');
  })
  .meta({ 'x-kubernetes-validations': [...WHOLE_AGGREGATES, ONE_BLOCK] });

export const poolSchema = object({
  metadata: object({
    name: named(subdomain),
    uid: uid().or(''),
    generation: wholeNumber(0, Number.MAX_SAFE_INTEGER).or(0),
  }),
  spec: poolSpecSchema,
  status: object({
    conditions: listOf(
      object({
        type: string(),
        status: string(),
        reason: string().or(''),
        lastTransitionTime: string().or(''),
      }),
    ).or([]),
  }).nullish(),
});

const OF_NO_OBJECT = { uid: '', generation: 0, ready: undefined };

export function poolOf(
  name: string,
  source: AddressPool['source'],
  spec: Valid<typeof poolSpecSchema>,
  { uid, generation, ready }: Pick<AddressPool, 'uid' | 'generation' | 'ready'> = OF_NO_OBJECT,
): AddressPool {
  const { blocks, avoidBuggyIPs, serviceAllocation, announce, bgp, public: outside, ...rules } = spec;
  const [inside] = blocks;
  return {
    kind: 'AddressPool',
    key: name,
    name,
    source,
    uid,
    generation,
    ready,
    blocks: blocks.map(({ range, isCidr }) => (avoidBuggyIPs && isCidr ? withoutEnds(range) : range)),
    ...rules,
    public: outside && inside && publicRule(inside.range, outside),
    namespaces: serviceAllocation.namespaces,
    selector: serviceAllocation.serviceSelector,
    announce: announce ?? '',
    bgp:
      bgp &&
      poolBgpOf(
        bgp,
        blocks.map(({ range }) => range),
      ),
  };
}

/** A /31 or a /32 has neither network nor broadcast address (RFC 3021). */
function withoutEnds(range: AddressRange): AddressRange {
  if (range.family === 'v6' || range.last - range.first < 2n) return range;
  return { ...range, first: range.first + 1n, last: range.last - 1n };
}

/** From the API, or from a manifest. */
export function storedPoolOf({ metadata, spec, status }: Valid<typeof poolSchema>): AddressPool {
  const { name, uid, generation } = metadata;
  const condition = status?.conditions.find(({ type }) => type === READY);
  const ready = condition && {
    status: condition.status,
    reason: condition.reason,
    lastTransitionTime: condition.lastTransitionTime,
  };
  return poolOf(name, 'api', spec, { uid, generation, ready });
}

/** How many addresses of one family the pool has, and how many are in which state. */
export interface AddressCount {
  readonly total: bigint;
  readonly free: bigint;
  readonly used: bigint;
  readonly held: bigint;
  readonly conflicting: bigint;
}

export interface PoolProblem {
  /** `Invalid`: the object cannot be read; its last readable version counts. */
  readonly state: 'Conflicting' | 'Invalid';
  readonly message: string;
}

const READY = 'Ready';
const MAX_MESSAGE_CHARACTERS = 1024;

/** The condition `Ready` of a pool: true while its blocks are in force as the object asks. */
export interface PoolCondition {
  readonly status: 'True' | 'False';
  readonly reason: 'Active' | 'Draining' | PoolProblem['state'];
  readonly message: string;
}

export function poolCondition(
  pool: Pick<AddressPool, 'draining'>,
  fault: PoolProblem | undefined,
): PoolCondition {
  if (fault !== undefined) {
    const message = fault.message.slice(0, MAX_MESSAGE_CHARACTERS);
    return { status: 'False', reason: fault.state, message };
  }
  if (pool.draining)
    return { status: 'True', reason: 'Draining', message: 'The pool gives no new addresses' };
  return { status: 'True', reason: 'Active', message: 'The pool gives addresses' };
}

/**
 * The `status` of an AddressPool: all fields that a server-side apply of the status owns. Numbers are texts, because an
 * IPv6 pool has more addresses than an int64 can count. The UID keeps the status of a deleted pool from its successor.
 * `since`: when the condition got its status (RFC 3339).
 */
export function poolStatusManifest(
  pool: AddressPool,
  counts: { readonly v4: AddressCount; readonly v6: AddressCount },
  fault: PoolProblem | undefined,
  since: string,
): Readonly<Record<string, unknown>> {
  // An unreadable version has a generation that is not known.
  const observed = fault?.state === 'Invalid' ? {} : { observedGeneration: pool.generation };
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name: pool.name, uid: pool.uid },
    status: {
      ...(fault ?? { state: pool.draining ? 'Draining' : 'Active' }),
      ipv4: countTexts(counts.v4),
      ipv6: countTexts(counts.v6),
      conditions: [{ type: READY, ...poolCondition(pool, fault), lastTransitionTime: since, ...observed }],
    },
  };
}

/** The status of a pool that has never been readable. */
export function unreadPoolManifest(
  name: string,
  fault: PoolProblem,
  since: string,
): Readonly<Record<string, unknown>> {
  const condition = poolCondition({ draining: false }, fault);
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name },
    status: { ...fault, conditions: [{ type: READY, ...condition, lastTransitionTime: since }] },
  };
}

function countTexts(counts: AddressCount): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, String(count)]));
}
