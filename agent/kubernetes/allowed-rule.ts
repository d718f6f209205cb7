// The rule `allowed` of an AddressPool: its schema, its flat value, and the ports that it allows. A rule with a mistake is
// kept as a fault, which gives nothing new, so that a mistake never opens a pool. Pure.

import { label } from '../base/name-forms.ts';
import { unknownKeys } from '../base/nearest.ts';
import { faultsOf, isMapping, object, oneOf, Rule, someOf, wholeNumber } from '../base/validate.ts';
import type { Protocol } from '../model/load-balancer.ts';
import type { ClaimedPort } from './address-claim.ts';
import { type Selector, selectorSchema } from './label-selector.ts';
import { named } from './object-names.ts';

export interface AllowedRule {
  /** A namespace is one of these, or has the labels of namespaceSelector, if there is any of both. */
  readonly namespaces: readonly string[];
  readonly namespaceSelector: Selector | undefined;
  /** [first, last]; empty: all. */
  readonly ports: readonly (readonly [number, number])[];
  /** Empty: all. */
  readonly protocols: readonly Protocol[];
  /** Addresses of both families; 0: any number. */
  readonly addressesPerNamespace: number;
  /** Why the rule cannot be read, '' if it can. */
  readonly fault: string;
}

const MAX_PORT = 65_535;
const portNot = 'is not a port from 1 to 65535, or a range as in 8000-8999';
const RANGE = /^([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?$/;

/** In CEL the type of a port is not known before. */
const PORT_RULE =
  "type(self) == int ? self >= 1 && self <= 65535 : self.matches('^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$') && self.split('-').all(port, int(port) <= 65535) && int(self.split('-')[0]) <= int(self.split('-')[size(self.split('-')) - 1])";

const portRange = new Rule<readonly [number, number]>(
  (value, faults) => {
    const [, first, last = first] =
      typeof value === 'number' || typeof value === 'string' ? (RANGE.exec(String(value)) ?? []) : [];
    const range = [Number(first), Number(last)] as const;
    if (!(range[0] <= range[1] && range[1] <= MAX_PORT)) faults.push({ path: [], message: portNot });
    return range;
  },
  {
    'x-kubernetes-int-or-string': true,
    maxLength: 11,
    'x-kubernetes-validations': [{ rule: PORT_RULE, message: portNot.slice('is '.length) }],
  },
);

/** Fields that the schema does not have stay, so that the agent sees a misspelled one. */
const KEEPS_ALL = { 'x-kubernetes-preserve-unknown-fields': true, minProperties: 1 } as const;

const fields = object({
  namespaces: someOf(named(label), 'namespace')
    .meta({
      minItems: 1,
      maxItems: 1000,
      description: 'Only these namespaces, and those of namespaceSelector.',
    })
    .nullish(),
  namespaceSelector: selectorSchema
    .meta({ ...KEEPS_ALL, description: 'Only namespaces with these labels, and those of namespaces.' })
    .nullish(),
  ports: someOf(portRange, 'port')
    .meta({ minItems: 1, maxItems: 100, description: 'Only these ports: 443, or a range as in 8000-8999.' })
    .nullish(),
  protocols: someOf(oneOf('TCP', 'UDP', 'SCTP'), 'protocol')
    .meta({ minItems: 1, maxItems: 3, description: 'Only these protocols.' })
    .nullish(),
  addressesPerNamespace: wholeNumber(1, 1_000_000)
    .meta({ description: 'The most addresses of the pool, of both families together, for one namespace.' })
    .nullish(),
});

const NOTHING = { namespaces: [], namespaceSelector: undefined, ports: [], protocols: [] } as const;

/** Never refuses a value: a mistake is the fault of the rule. */
export const allowedRule = new Rule<AllowedRule | undefined>(
  (value) => (value === undefined ? undefined : allowedOf(value)),
  {
    ...fields.openApi,
    ...KEEPS_ALL,
    description:
      'Which namespaces may have addresses of the pool, how many, and with which ports; Gateways and IngressClasses as Services. A mistake in it gives nothing new.',
  },
  true,
);

function allowedOf(value: unknown): AllowedRule {
  const closed = (fault: string): AllowedRule => ({ ...NOTHING, addressesPerNamespace: 0, fault });
  if (!isMapping(value)) return closed('allowed: is not a mapping');
  const { namespaceSelector: selector } = value;
  const unknown = [
    ...unknownKeys(value, fields.keys, 'allowed.'),
    ...(isMapping(selector)
      ? unknownKeys(selector, ['matchLabels', 'matchExpressions'], 'allowed.namespaceSelector.')
      : []),
  ];
  if (unknown[0] !== undefined) return closed(unknown[0]);
  if (Object.keys(value).length === 0) return closed('allowed: has no field');
  const empty = Object.keys(value).find((name) => value[name] === null || value[name] === undefined);
  if (empty !== undefined) return closed(`allowed.${empty}: has no value`);
  const judged = fields.judge(value);
  if (!judged.success) {
    const faults = judged.faults.map(({ path, message }) => ({ path: ['allowed', ...path], message }));
    return closed(faultsOf(faults, { allowed: value }));
  }
  const { data } = judged;
  const { namespaceSelector } = data;
  if (
    namespaceSelector !== undefined &&
    Object.keys(namespaceSelector.matchLabels).length + namespaceSelector.matchExpressions.length === 0
  )
    return closed('allowed.namespaceSelector: has no label');
  return {
    namespaces: data.namespaces ?? [],
    namespaceSelector,
    ports: data.ports ?? [],
    protocols: data.protocols ?? [],
    addressesPerNamespace: data.addressesPerNamespace ?? 0,
    fault: '',
  };
}

/** The pool has a rule about ports, so that the ports of its claims are recorded. */
export function limitsPorts(allowed: AllowedRule | undefined): allowed is AllowedRule {
  return (
    allowed !== undefined &&
    (allowed.fault !== '' || allowed.ports.length > 0 || allowed.protocols.length > 0)
  );
}

/** Completes `pool "a" `; undefined if the rule allows the port. */
export function whyNotPort(
  { fault, ports, protocols }: AllowedRule,
  { protocol, port }: ClaimedPort,
): string | undefined {
  if (fault !== '') return faultWords(fault);
  if (protocols.length > 0 && !protocols.includes(protocol))
    return `allows only ${protocols.join(', ')} (allowed.protocols), not ${protocol} port ${port}`;
  if (ports.length === 0 || ports.some(([first, last]) => first <= port && port <= last)) return undefined;
  const shown = ports.slice(0, 5).map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`));
  const more = ports.length > shown.length ? ' …' : '';
  return `allows only ports ${shown.join(', ')}${more} (allowed.ports), not ${protocol} port ${port}`;
}

export function faultWords(fault: string): string {
  return `has a rule that cannot be read, so it gives nothing new (${fault})`;
}
