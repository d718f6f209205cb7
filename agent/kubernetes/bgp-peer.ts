// The schema of a BGPPeer, a router that gets the routes of hosts, and its flat value: for the API and for the CRD. Pure.

import { bfdTimes, familiesOf, peerFields } from '../base/bgp-peer-rules.ts';
import { peerName, subdomain } from '../base/name-forms.ts';
import { listOf, object, textRule, type Valid, wholeNumber } from '../base/validate.ts';
import { type Selector, selectorSchema } from './label-selector.ts';
import { named, time, uid } from './object-names.ts';

/** Values as in the setting `bgp`. */
type PeerFields = Omit<
  Valid<typeof peerSpecSchema>,
  'families' | 'hosts' | 'hostSelector' | 'passwordSecret'
>;

export interface StoredPeer {
  readonly kind: 'BGPPeer';
  /** The name alone: peers have no namespace. */
  readonly key: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** Milliseconds since the epoch; Infinity if unknown. */
  readonly created: number;
  readonly spec: PeerFields & { readonly families: readonly ('v4' | 'v6')[] };
  readonly passwordSecret: SecretKey | undefined;
  /** The hosts that have this peer: those that are named, and those whose labels match. Both empty: all. */
  readonly hosts: readonly string[];
  readonly hostSelector: Selector;
}

/** A field of a Secret in the agents' namespace. */
export interface SecretKey {
  readonly name: string;
  readonly key: string;
}

const MAX_HOSTS = 64;
const NOBODY: Selector = { matchLabels: {}, matchExpressions: [] };
const LINK_LOCAL = "self.address.lowerAscii().startsWith('fe80:')";
const SIX = "self.address.contains(':')";

export const peerSpecSchema = object({
  ...peerFields,
  bfd: bfdTimes
    .meta({ description: 'How soon a dead host is left out; {} for the usual times, without it no BFD.' })
    .nullish(),
  passwordSecret: object({
    name: named(subdomain).meta({ maxLength: 253, description: 'In the namespace of the agents.' }),
    key: textRule(
      (text) => /^[A-Za-z0-9._-]{1,253}$/.test(text),
      'is not a key of a Secret (A-Z, a-z, 0-9, "-", "_" and ".")',
    )
      .meta({ maxLength: 253, pattern: '^[A-Za-z0-9._-]+$', default: 'password' })
      .or('password'),
  })
    .meta({ description: 'The MD5 password: one line of 1 to 80 printable ASCII characters.' })
    .nullish(),
  hosts: listOf(named(subdomain))
    .meta({ maxItems: MAX_HOSTS, description: 'Only these hosts have the peer, by their names.' })
    .or([]),
  hostSelector: selectorSchema
    .meta({
      description:
        'And hosts by the labels of their Nodes, or of the setting hostLabels. Without both: all hosts.',
    })
    .or(NOBODY),
}).meta({
  'x-kubernetes-validations': [
    {
      rule: `${LINK_LOCAL} == has(self.interface)`,
      message: 'interface must be given for a link-local address (fe80:), and for no other',
    },
    {
      rule: `!has(self.source) || self.source.contains(':') == ${SIX} && self.source != self.address`,
      message: 'source must be another address of the family of address',
    },
    {
      rule: '!has(self.localPort) || self.localPort == 179 || has(self.source)',
      message: 'localPort needs source, the address of the host that it is of',
    },
    {
      rule: `!has(self.multihop) || self.multihop == 0 || !${LINK_LOCAL} && (!has(self.bfd) || has(self.source))`,
      message: 'multihop is not possible with a link-local address, and with bfd it needs source',
    },
    {
      rule: `!has(self.families) || self.families.all(f, f == 'ipv6' ? ${SIX} : !${SIX} || ${LINK_LOCAL})`,
      message: 'families must be that of address; with a link-local address both are possible',
    },
  ],
});

/** For the whole object: a CRD has no pattern for its name. */
export const PEER_RULES = [
  {
    rule: "self.metadata.name.matches('^[a-z][a-z0-9-]{0,29}$')",
    message: 'the name must have at most 30 lower-case letters, digits and dashes, and begin with a letter',
  },
];

export const peerSchema = object({
  metadata: object({
    name: textRule(peerName.check, peerName.not),
    uid: uid().or(''),
    generation: wholeNumber(0, Number.MAX_SAFE_INTEGER).or(0),
    creationTimestamp: time().or(Number.POSITIVE_INFINITY),
  }),
  spec: peerSpecSchema,
});

export function storedPeerOf({ metadata, spec }: Valid<typeof peerSchema>): StoredPeer {
  const { name, uid, generation, creationTimestamp: created } = metadata;
  const { passwordSecret, hosts, hostSelector, families, ...fields } = spec;
  return {
    kind: 'BGPPeer',
    ...{ key: name, name, uid, generation, created, passwordSecret, hosts, hostSelector },
    spec: { ...fields, families: familiesOf(fields.address, families) },
  };
}
