// The kind of the setting `vrrp`: a mapping in the settings file, or YAML text in a flag or variable. Pure.

import { familyOf, parseAddress } from '../base/ip.ts';
import { unknownKeys } from '../base/nearest.ts';
import {
  faultsOf,
  isMapping,
  listOf,
  object,
  textReader,
  textRule,
  type Valid,
  wholeNumber,
} from '../base/validate.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import { duration as durationKind, SECOND } from '../translate/annotations/kinds.ts';
import type { Kind, Reading } from './kinds.ts';

const ALLOWED =
  'a mapping with interface, address, peers, virtualRouterId, anchors and optional priority and advertInterval; or nothing';
const INSTANCE_KEYS = ['virtualRouterId', 'priority', 'anchors'];
const KEYS = ['interface', 'address', 'peers', 'advertInterval', 'instances', ...INSTANCE_KEYS];

/** A failover after more than ten seconds is too late; a busy virtual machine cannot keep less than 100 ms. */
const INTERVAL = durationKind(100, 10 * SECOND);
/** The most of one instance; each is a source address of packets to members. */
const MAX_ANCHORS = 32;
/** Equal on both hosts, so that only reasons that lower a host decide. */
const DEFAULT_PRIORITY = 200;

const address = textReader((text) => parseAddress(text)?.address, 'is not an IP address');
export const vrrpInstanceSchema = object({
  virtualRouterId: wholeNumber(1, 255),
  // A reason that lowers a host subtracts more than this range, so that it outweighs any difference of priorities.
  priority: wholeNumber(200, 250).default(DEFAULT_PRIORITY),
  anchors: listOf(address),
});
export const vrrpSchema = object({
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
  instances: listOf(vrrpInstanceSchema),
});

/** Durations in milliseconds. */
export type VrrpSetting = Valid<typeof vrrpSchema>;

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
    return { errors: [`${INSTANCE_KEYS.join(', ')} are keys of each instance if there are instances`] };
  const whole = isOne ? { ...common, instances: [defined({ virtualRouterId, priority, anchors })] } : given;
  const parsed = vrrpSchema.judge(whole);
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

function defined(mapping: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(mapping).filter(([, value]) => value !== undefined));
}

/** The faults of values that are valid one by one. */
function conflicts({ address: own, peers, instances }: VrrpSetting): readonly string[] {
  const faults: string[] = [];
  const family = familyOf(own);
  if (peers.length === 0) faults.push('peers: VRRP needs at least one other host');
  if (peers.includes(own)) faults.push(`peers: "${own}" is this host's own address`);
  for (const peer of peers)
    if (familyOf(peer) !== family) faults.push(`peers: "${peer}" is not of the family of address "${own}"`);
  if (instances.length === 0 || instances.length > 8) faults.push('instances: 1 to 8 instances are allowed');
  for (const { virtualRouterId, anchors } of instances) {
    const families = anchors.map(familyOf);
    if (families[0] !== family)
      faults.push(
        `anchors: The first anchor of ${virtualRouterId} must be of the family of address "${own}"`,
      );
    if (anchors.length > MAX_ANCHORS)
      faults.push(
        `anchors: ${virtualRouterId} has ${anchors.length} anchors: at most ${MAX_ANCHORS} are allowed`,
      );
  }
  const ids = instances.map(({ virtualRouterId }) => virtualRouterId);
  if (new Set(ids).size < ids.length) faults.push(`virtualRouterId: ${ids.join(', ')} are not all different`);
  const all = [own, ...peers, ...instances.flatMap(({ anchors }) => anchors)];
  const twice = all.find((one, at) => all.indexOf(one) < at);
  if (faults.length === 0 && twice !== undefined) faults.push(`"${twice}" is used twice`);
  return faults;
}

function tens(milliseconds: number | undefined): number | undefined {
  return milliseconds !== undefined && milliseconds % 10 === 0 ? milliseconds : undefined;
}

function write(value: VrrpSetting | undefined): string {
  if (value === undefined) return '';
  return JSON.stringify({ ...value, advertInterval: INTERVAL.format(value.advertInterval) });
}
