// The setting `vrrp`: a mapping in the file, the same as YAML text in a flag or a variable. Pure.

import { familyOf, parseAddress } from '../base/ip.ts';
import { nearestHint } from '../base/nearest.ts';
import { faultsOf, isMapping, listOf, object, textReader, textRule, wholeNumber } from '../base/validate.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import { duration as durationKind, SECOND } from '../translate/annotations/kinds.ts';
import type { Kind, Reading } from './kinds.ts';

/** As of agent/vips/keepalived/vrrp.ts. */
export interface VrrpSetting {
  readonly interface: string;
  readonly address: string;
  readonly peers: readonly string[];
  /** Milliseconds. */
  readonly advertInterval: number;
  readonly instances: readonly VrrpInstanceSetting[];
}

export interface VrrpInstanceSetting {
  readonly virtualRouterId: number;
  readonly priority: number;
  readonly anchors: readonly string[];
}

const ALLOWED =
  'a mapping with interface, address, peers, virtualRouterId and anchors, and where wanted priority and advertInterval; or nothing';
const INSTANCE_KEYS = ['virtualRouterId', 'priority', 'anchors'];
const KEYS = ['interface', 'address', 'peers', 'advertInterval', 'instances', ...INSTANCE_KEYS];

/** Ten seconds without a host would be too much for anyone; less than 100 ms is too little for a busy virtual machine. */
const INTERVAL = durationKind(100, 10 * SECOND);
/** Where only the standing of the hosts shall count. */
const PRIORITY = 200;

const address = textReader((text) => parseAddress(text)?.address, 'is not an IP address');
const instanceRules = object({
  virtualRouterId: wholeNumber(1, 255),
  // The steps by which a host is lowered are larger than this span, so that they count more than any priority.
  priority: wholeNumber(200, 250).default(PRIORITY),
  anchors: listOf(address),
});
const rules = object({
  interface: textRule(
    (text) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/.test(text),
    'is not the name of a network interface',
  ),
  address,
  peers: listOf(address),
  advertInterval: textReader(
    (text) => tens(INTERVAL.parse(text)),
    `is not ${INTERVAL.words}, in tens of milliseconds`,
  ).default(200),
  instances: listOf(instanceRules),
});

/** undefined: no VRRP. */
export function vrrp(): Kind<VrrpSetting | undefined> {
  return { placeholder: 'YAML', allowed: ALLOWED, read, write };
}

function read(raw: unknown): Reading<VrrpSetting | undefined> {
  const given = typeof raw === 'string' ? fromText(raw) : raw;
  if (given === undefined) return { value: undefined };
  if (!isMapping(given)) return { errors: [`${JSON.stringify(given)} is not ${ALLOWED}`] };
  const unknown = [
    ...unknownKeys(given, KEYS),
    ...instancesOf(given).flatMap((one, at) => unknownKeys(one, INSTANCE_KEYS, `instances[${at}].`)),
  ];
  if (unknown.length > 0) return { errors: unknown };
  const isOne = given.instances === undefined;
  const { virtualRouterId, priority, anchors, ...common } = given;
  if (!isOne && INSTANCE_KEYS.some((key) => given[key] !== undefined))
    return { errors: [`${INSTANCE_KEYS.join(', ')} stand in each of the instances, or beside none`] };
  const whole = isOne ? { ...common, instances: [defined({ virtualRouterId, priority, anchors })] } : given;
  const parsed = rules.judge(whole);
  if (!parsed.success) {
    const faults = faultsOf(parsed.faults, whole);
    return { errors: [isOne ? faults.replaceAll('instances[0].', '') : faults] };
  }
  const errors = conflicts(parsed.data);
  return errors.length > 0 ? { errors } : { value: parsed.data };
}

function fromText(text: string): unknown {
  if (text.trim() === '') return undefined;
  const { documents, errors } = parseYamlDocuments(text);
  return errors.length > 0 || documents.length !== 1 ? text : documents[0]?.value;
}

function instancesOf({ instances }: Readonly<Record<string, unknown>>) {
  return Array.isArray(instances) ? instances.filter(isMapping) : [];
}

function unknownKeys(
  mapping: Readonly<Record<string, unknown>>,
  known: readonly string[],
  place = '',
): readonly string[] {
  return Object.keys(mapping)
    .filter((key) => !known.includes(key))
    .map((key) => `${place}${key}: Unknown key${nearestHint(key, known)}`);
}

function defined(mapping: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(mapping).filter(([, value]) => value !== undefined));
}

/** What is wrong with values that are each allowed. */
function conflicts({ address: own, peers, instances }: VrrpSetting): readonly string[] {
  const faults: string[] = [];
  const family = familyOf(own);
  if (peers.length === 0) faults.push('peers: An instance without another host needs no VRRP');
  if (peers.includes(own)) faults.push(`peers: "${own}" is this host's own address`);
  for (const peer of peers)
    if (familyOf(peer) !== family) faults.push(`peers: "${peer}" is not of the family of address "${own}"`);
  if (instances.length === 0 || instances.length > 8) faults.push('instances: There must be 1 to 8 of them');
  for (const { virtualRouterId, anchors } of instances) {
    const families = anchors.map(familyOf);
    if (families[0] !== family)
      faults.push(`anchors: The first one of ${virtualRouterId} must be of the family of address "${own}"`);
    if (new Set(families).size < families.length)
      faults.push(`anchors: ${virtualRouterId} has two of one family, it needs one of each at most`);
  }
  const ids = instances.map(({ virtualRouterId }) => virtualRouterId);
  if (new Set(ids).size < ids.length) faults.push(`virtualRouterId: ${ids.join(', ')} are not all different`);
  const all = [own, ...peers, ...instances.flatMap(({ anchors }) => anchors)];
  const twice = all.find((one, at) => all.indexOf(one) < at);
  if (faults.length === 0 && twice !== undefined) faults.push(`"${twice}" stands in two places`);
  return faults;
}

function tens(milliseconds: number | undefined): number | undefined {
  return milliseconds !== undefined && milliseconds % 10 === 0 ? milliseconds : undefined;
}

function write(value: VrrpSetting | undefined): string {
  if (value === undefined) return '';
  return JSON.stringify({ ...value, advertInterval: INTERVAL.format(value.advertInterval) });
}
