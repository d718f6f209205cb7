// Converts objects of MetalLB: its pools become AddressPools, its peers BGPPeers, and each field that has no match here is a note.
// Pure: JSON of objects to text and notes. https://metallb.io/apis/

import { parseBlock } from '../base/ip-range.ts';
import { isMapping, pathText, shownValue } from '../base/validate.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import { ADDRESS_API_VERSION, METALLB_GROUP } from '../kubernetes/object-names.ts';
import { groupOf, parseObject } from '../kubernetes/parse-object.ts';
import { MetallbBgp } from './convert-metallb-bgp.ts';

type Json = Readonly<Record<string, unknown>>;

export interface Converted {
  /** YAML of BGPPeers and AddressPools; '' if there is none. */
  readonly text: string;
  readonly pools: number;
  readonly peers: number;
  /** What has no match: object, field, value, and what to do. */
  readonly notes: readonly string[];
}

/** The kinds that pools and the setting bgp are made of, too. */
const OF_BGP: readonly string[] = ['BGPAdvertisement', 'BGPPeer', 'BFDProfile', 'Community'];
/** The kind that says how addresses are announced, and what does that here. */
const ANNOUNCING: Readonly<Record<string, string>> = {
  L2Advertisement: 'the setting "vrrp" announces the addresses of all pools, from the active host of a pair',
};
/** The names of kinds in which the controller itself reports. */
const REPORTS = /(Status|State)$/;
const SECRETS = ['password'];

/**
 * Objects and lists of them, as kubectl prints them, and the ConfigMap that MetalLB read before version 0.13. Other kinds are
 * passed over.
 */
export function convertMetallb(values: readonly unknown[]): Converted {
  const notes: string[] = [];
  const pools = new Map<string, string>();
  const items = values.flatMap(itemsOf);
  const all = items.flatMap((each) => (isConfigMap(each) ? ofConfigMap(each, notes) : [each]));
  const bgp = bgpOf(all, notes);
  for (const json of all) {
    const { kind, apiVersion } = json;
    if (typeof kind !== 'string' || groupOf(String(apiVersion)) !== METALLB_GROUP || REPORTS.test(kind))
      continue;
    const { name = '', namespace = '' } = isMapping(json.metadata) ? json.metadata : {};
    const object = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
    const note = (text: string): number => notes.push(`${object}: ${text}`);
    if (OF_BGP.includes(kind)) continue;
    if (kind !== 'IPAddressPool' && kind !== 'AddressPool') {
      note(`has no match: ${ANNOUNCING[kind] ?? 'Headgate does not know this kind'}`);
      noteFields(json.spec, ['spec'], note);
    } else if (pools.has(String(name))) {
      note('is left out: AddressPools have no namespace, and there is one of this name already');
    } else {
      const text = poolText(json, bgp, note);
      if (text !== undefined) pools.set(String(name), text);
    }
  }
  const settings = bgp.settings();
  const comment =
    settings.length === 0 ? [] : ['BGPPeers need these settings of each host, /etc/headgate/headgate.yaml:'];
  const head = [...comment, ...settings].map((line) => `# ${line}\n`).join('');
  const peers = bgp.peers().map(({ name, spec }) => objectText('BGPPeer', { name }, spec));
  const text = head + [...peers, ...pools.values()].join('---\n');
  return { text, pools: pools.size, peers: peers.length, notes };
}

function bgpOf(all: readonly Json[], notes: string[]): MetallbBgp {
  const own = all.filter(({ apiVersion }) => groupOf(String(apiVersion)) === METALLB_GROUP);
  const placeOf = new Map<string, string>();
  const objects = own.map(({ kind, metadata, spec }) => {
    const { name = '', namespace = '', labels } = isMapping(metadata) ? metadata : {};
    placeOf.set(`${kind} ${name}`, namespace === '' ? '' : `${namespace}/`);
    return {
      ...{ kind: String(kind), name: String(name) },
      labels: isMapping(labels) ? labels : {},
      spec: isMapping(spec) ? spec : {},
    };
  });
  const said = new Set<string>();
  return new MetallbBgp(objects, (kind, name) => (text) => {
    const note = `${kind} ${placeOf.get(`${kind} ${name}`) ?? ''}${name}: ${text}`;
    if (!said.has(note)) notes.push(note);
    said.add(note);
  });
}

function itemsOf(json: unknown): readonly Json[] {
  if (!isMapping(json)) return [];
  return Array.isArray(json.items) ? json.items.flatMap(itemsOf) : [json];
}

/** A ConfigMap with pools; others are not of MetalLB. */
function isConfigMap({ kind, data }: Json): boolean {
  return (
    kind === 'ConfigMap' &&
    isMapping(data) &&
    typeof data.config === 'string' &&
    /^['"]?(address-pools|peers)\b/m.test(data.config)
  );
}

/** Its pools and peers, as the objects that they became. https://metallb.io/configuration/migration_to_crds/ */
function ofConfigMap({ metadata, data }: Json, notes: string[]): readonly Json[] {
  const { name = '', namespace = '' } = isMapping(metadata) ? metadata : {};
  const object = `ConfigMap ${namespace === '' ? '' : `${namespace}/`}${name}`;
  const { documents, errors } = parseYamlDocuments(String(isMapping(data) && data.config));
  for (const { message } of errors) notes.push(`${object}: data.config: ${message}`);
  const config = documents[0]?.value;
  if (!isMapping(config)) {
    notes.push(`${object}: data.config: is no mapping`);
    return [];
  }
  const { 'address-pools': pools, ...others } = config;
  for (const [key, value] of Object.entries(others))
    noteFields(value, ['data', 'config', key], (text) => notes.push(`${object}: ${text}`));
  return (Array.isArray(pools) ? pools : []).filter(isMapping).map((pool) => {
    const { name: own, 'auto-assign': autoAssign, 'avoid-buggy-ips': avoidBuggyIPs, ...spec } = pool;
    return {
      apiVersion: `${METALLB_GROUP}/v1beta1`,
      kind: 'AddressPool',
      metadata: { name: own, namespace },
      spec: { ...spec, autoAssign, avoidBuggyIPs },
    };
  });
}

type Note = (text: string) => unknown;

/** Each value by its field, but no secret. */
function noteFields(value: unknown, path: readonly (string | number)[], note: Note): void {
  const inner = Array.isArray(value) ? [...value.entries()] : isMapping(value) ? Object.entries(value) : [];
  for (const [key, each] of inner) noteFields(each, [...path, key], note);
  if (typeof value === 'object' || value === undefined) return;
  const isSecret = SECRETS.includes(String(path.at(-1)));
  note(`${pathText(path)}: ${isSecret ? 'its value' : shownValue(value)} has no match`);
}

/** undefined if it cannot be an AddressPool. */
function poolText({ kind, metadata, spec }: Json, bgp: MetallbBgp, note: Note): string | undefined {
  const { name, labels } = isMapping(metadata) ? metadata : {};
  const { addresses, autoAssign, avoidBuggyIPs, serviceAllocation, ...others } = isMapping(spec) ? spec : {};
  const blocks = blocksOf(addresses, note);
  if (blocks.length === 0) {
    note('is left out: it has no addresses that an AddressPool can have');
    return undefined;
  }
  for (const [field, value] of Object.entries(others)) noteFields(value, ['spec', field], note);
  const { priority, allocation, isWider } = allocationOf(serviceAllocation, note);
  if (isWider && autoAssign !== false)
    note('is written with "auto: false", so that only Services that name the pool get its addresses');
  const pool = {
    blocks,
    ...(autoAssign === false || isWider ? { auto: false } : {}),
    ...(avoidBuggyIPs === true ? { avoidBuggyIPs } : {}),
    ...(priority === 0 ? {} : { priority }),
    ...(Object.keys(allocation).length === 0 ? {} : { serviceAllocation: allocation }),
    ...bgp.poolFields({
      ...{ kind: String(kind), name: String(name), spec: {} },
      labels: isMapping(labels) ? labels : {},
    }),
  };
  const header = { apiVersion: ADDRESS_API_VERSION, kind: 'AddressPool' };
  const named = { name, ...(isMapping(labels) ? { labels } : {}) };
  const [problem] = parseObject({ ...header, metadata: named, spec: pool }, '').problems;
  if (problem !== undefined) {
    note(`is left out: ${problem.message}`);
    return undefined;
  }
  return objectText(header.kind, named, pool);
}

function objectText(kind: string, metadata: Json, spec: Json): string {
  const lines = Object.entries(spec).map(([field, value]) => `  ${field}: ${flow(value)}\n`);
  return `apiVersion: ${ADDRESS_API_VERSION}\nkind: ${kind}\nmetadata: ${flow(metadata)}\nspec:\n${lines.join('')}`;
}

function blocksOf(addresses: unknown, note: Note): readonly string[] {
  if (!Array.isArray(addresses)) return [];
  return addresses.flatMap((text: unknown, at) => {
    if (typeof text === 'string' && parseBlock(text) !== undefined) return [text];
    note(
      `spec.addresses[${at}]: ${shownValue(text)} is not a CIDR without host bits, a range or an address: write it as one of these`,
    );
    return [];
  });
}

interface Allocation {
  readonly priority: number;
  readonly allocation: Json;
  /** A condition is left out: without it more Services than before would get addresses. */
  readonly isWider: boolean;
}

/** In MetalLB the lowest number comes first, and 0 or none last; here the highest, and 0 is the default. */
function allocationOf(given: unknown, note: Note): Allocation {
  if (!isMapping(given)) return { priority: 0, allocation: {}, isWider: false };
  const { priority = 0, namespaces, namespaceSelectors, serviceSelectors, ...others } = given;
  const at = 'spec.serviceAllocation';
  for (const [field, value] of Object.entries(others))
    noteFields(value, ['spec', 'serviceAllocation', field], note);
  let isWider = Object.keys(others).length > 0;
  const number = typeof priority === 'number' && priority > 0 ? Math.max(1, 1_000 - priority) : 0;
  if (number === 1 && priority !== 999)
    note(`${at}.priority: ${shownValue(priority)} is over 999, so that it is the same as 999`);
  const allocation: Record<string, unknown> = {};
  if (isFilled(namespaces)) allocation.namespaces = namespaces;
  if (isFilled(namespaceSelectors)) {
    isWider = true;
    note(`${at}.namespaceSelectors has no match: list the namespaces in serviceAllocation.namespaces`);
    noteFields(namespaceSelectors, ['spec', 'serviceAllocation', 'namespaceSelectors'], note);
  }
  if (isFilled(serviceSelectors) && serviceSelectors.length === 1) {
    allocation.serviceSelector = serviceSelectors[0];
  } else if (isFilled(serviceSelectors)) {
    isWider = true;
    note(
      `${at}.serviceSelectors has ${serviceSelectors.length} selectors, an AddressPool one: make a pool of each`,
    );
    noteFields(serviceSelectors, ['spec', 'serviceAllocation', 'serviceSelectors'], note);
  }
  return { priority: number, allocation, isWider };
}

function isFilled(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0;
}

/** YAML's flow style, in which JSON is YAML. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (!isMapping(value)) return typeof value === 'string' && isPlain(value) ? value : JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, each]) => `${isPlain(key) ? key : JSON.stringify(key)}: ${flow(each)}`)
    .join(', ')}}`;
}

/** A text that YAML reads as this text without quotes. */
function isPlain(text: string): boolean {
  return /^[a-zA-Z][a-zA-Z0-9_./-]*$/.test(text) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(text);
}
