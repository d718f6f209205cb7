// The kind of the setting `hosts`: a list in the settings file, or YAML text in a flag or variable. Pure.

import { familyOf, parseAddress } from '../base/ip.ts';
import { label } from '../base/name-forms.ts';
import { unknownKeys } from '../base/nearest.ts';
import { faultsOf, isMapping, listOf, object, textReader, textRule } from '../base/validate.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import type { LbHost } from '../model/host-group.ts';
import type { Kind, Reading } from './kinds.ts';

const ALLOWED = 'a list of 1 to 16 hosts with name, address and optional back and anchors; or nothing';
const MAX_HOSTS = 16;
/** Each anchor is a route of every host. */
const MAX_ANCHORS = 8;
const KEYS = [
  ['back', 'a back address'],
  ['anchors', 'anchors'],
] as const;

/** A host could not connect from, or to, an address that only it has, or that needs an interface. */
const address = textReader((text) => {
  const parsed = parseAddress(text)?.address;
  return parsed === undefined || UNUSABLE.test(parsed) ? undefined : parsed;
}, 'is not an IP address by which other hosts reach this one');
const UNUSABLE = /^(?:fe[89ab].:|::1?$|0\.|22[4-9]\.|23\d\.|255\.|ff)/;

export const hostSchema = object({
  name: textRule(label.check, label.not),
  address,
  back: listOf(address).default([]),
  anchors: listOf(address).default([]),
});
const hostsRule = listOf(hostSchema);

/** [] for none; otherwise by name. */
export function hosts(): Kind<readonly LbHost[]> {
  return { placeholder: 'YAML', allowed: ALLOWED, read, write };
}

function read(raw: unknown): Reading<readonly LbHost[]> {
  const given = typeof raw === 'string' ? fromText(raw) : raw;
  if (given === undefined) return { value: [] };
  if (!Array.isArray(given) || !given.every(isMapping))
    return { errors: [`${JSON.stringify(given)} is not ${ALLOWED}`] };
  const unknown = given.flatMap((one, at) => unknownKeys(one, [...hostSchema.keys], `[${at}].`));
  if (unknown.length > 0) return { errors: unknown };
  const parsed = hostsRule.judge(given);
  if (!parsed.success) return { errors: [faultsOf(parsed.faults, given)] };
  const errors = conflicts(parsed.data);
  if (errors.length > 0) return { errors };
  const byFamily = (all: readonly string[]) =>
    all.toSorted((one, other) => Number(one.includes(':')) - Number(other.includes(':')));
  const value = parsed.data.map((host) => ({
    ...host,
    back: byFamily(host.back),
    anchors: byFamily(host.anchors),
  }));
  return { value: value.toSorted((one, other) => (one.name < other.name ? -1 : 1)) };
}

function fromText(text: string): unknown {
  if (text.trim() === '') return undefined;
  const { documents, errors } = parseYamlDocuments(text);
  return errors.length > 0 || documents.length !== 1 ? text : documents[0]?.value;
}

/** The faults of values that are valid one by one. */
function conflicts(all: readonly LbHost[]): readonly string[] {
  const faults: string[] = [];
  if (all.length === 0 || all.length > MAX_HOSTS)
    faults.push(`${all.length} hosts: 1 to ${MAX_HOSTS} hosts are allowed`);
  const [first] = all;
  for (const [at, host] of all.entries()) {
    if (first !== undefined && familyOf(host.address) !== familyOf(first.address))
      faults.push(`[${at}].address: "${host.address}" is not of the family of "${first.address}"`);
    if (new Set(host.back.map(familyOf)).size < host.back.length)
      faults.push(`[${at}].back: ${host.back.join(', ')}: at most one address of each family is allowed`);
    for (const [key, what] of KEYS) {
      const [own, others] = [familiesOf(host[key]), familiesOf(first?.[key] ?? [])];
      if (own !== others)
        faults.push(
          `[${at}].${key}: every host needs ${what} of the same families, and "${host.name}" has ${own}, but "${first?.name}" ${others}`,
        );
    }
    if (host.anchors.length > MAX_ANCHORS)
      faults.push(`[${at}].anchors: ${host.anchors.length} anchors: at most ${MAX_ANCHORS} are allowed`);
    const lone = host.anchors.find((each) => !host.back.map(familyOf).includes(familyOf(each)));
    if (lone !== undefined)
      faults.push(
        `[${at}].anchors: "${lone}" needs a back address of its family, because packets of connections that a host takes over go over the back network`,
      );
  }
  const twice = (values: readonly string[]) => values.find((one, at) => values.indexOf(one) < at);
  const name = twice(all.map((host) => host.name));
  if (name !== undefined) faults.push(`The name "${name}" is used twice`);
  // A back network of its own is better, but the network of the addresses will do.
  const used = twice(all.flatMap((host) => [...new Set([host.address, ...host.back]), ...host.anchors]));
  if (used !== undefined) faults.push(`The address "${used}" is used twice`);
  return faults;
}

function familiesOf(addresses: readonly string[]): string {
  const families = addresses.map((each) => (familyOf(each) === 'v4' ? 'IPv4' : 'IPv6')).sort();
  return [...new Set(families)].join(' and ') || 'none';
}

function write(value: readonly LbHost[]): string {
  const hosts = value.map(({ anchors, ...host }) => (anchors.length === 0 ? host : { ...host, anchors }));
  return hosts.length === 0 ? '' : JSON.stringify(hosts);
}
