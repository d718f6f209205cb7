// Hints for handwritten manifests: a kind, apiVersion or field that is unknown, and one or two letters off a known one,
// would otherwise be ignored without a word, and so would objects of MetalLB. Pure.

import { memoByIdentity } from '../base/memo.ts';
import { nearest } from '../base/nearest.ts';
import { printable } from '../base/quote.ts';
import { isMapping, pathText, shownValue } from '../base/validate.ts';
import type { Problem } from '../model/load-balancer.ts';
import { poolSchema } from './address-pool.ts';
import { peerSchema } from './bgp-peer.ts';
import { ALL_KINDS, isKind, KINDS } from './kinds.ts';
import { RANGES } from './misplaced-ranges.ts';
import { METALLB_GROUP } from './object-names.ts';
import { endpointsSchema, nodeSchema, serviceSchema, sliceSchemas } from './object-schemas.ts';
import { GROUPS, groupOf, listedKind, nameOf } from './parse-object.ts';

const MOST_LETTERS = 2;
/** The most hints about one object. */
const MAX_FIELDS = 5;
/** For each kind and place: authors choose the names. */
const MAX_ANSWERS = 100;

type OpenApi = Readonly<Record<string, unknown>>;

/** The fields that Headgate reads, by kind; AddressClaims are not written by hand. */
const FIELDS: Readonly<Record<string, OpenApi>> = {
  Service: serviceSchema.openApi,
  EndpointSlice: sliceSchemas.IPv4.openApi,
  Endpoints: endpointsSchema.openApi,
  Node: nodeSchema.openApi,
  AddressPool: poolSchema.openApi,
  BGPPeer: peerSchema.openApi,
};

/** A field of Kubernetes that Headgate does not read, and that is near to one that it reads. */
const OTHER_FIELD = 'internalTrafficPolicy';

/** `path`: of the file, with which messages begin. */
export function misspellings(json: unknown, path: string): readonly Problem[] {
  if (!isMapping(json) || typeof json.kind !== 'string') return [];
  const { kind, apiVersion, items } = json;
  const listed = listedKind(kind);
  if (listed === undefined) return ofObject(json, path);
  if (!Array.isArray(items)) return [];
  return items
    .filter(isMapping)
    .flatMap((item) => ofObject(listed === '' ? item : { ...item, kind: listed, apiVersion }, path));
}

function ofObject(json: Readonly<Record<string, unknown>>, path: string): readonly Problem[] {
  const { kind, apiVersion } = json;
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') return [];
  if (groupOf(apiVersion) === METALLB_GROUP) return [ofMetallb(path, kind, json)];
  if (!isKind(kind)) {
    const meant = GROUPS.has(groupOf(apiVersion)) ? nearest(kind, ALL_KINDS, MOST_LETTERS) : undefined;
    // Another spelling in upper and lower case is refused.
    if (meant === undefined || meant.toLowerCase() === kind.toLowerCase()) return [];
    return [
      hint(
        path,
        meant,
        json,
        `kind: ${shownValue(kind)} is unknown, so the object is ignored; the nearest is "${meant}"`,
      ),
    ];
  }
  if (!GROUPS.has(groupOf(apiVersion))) {
    const expected = KINDS[kind].apiVersion;
    if (nearest(apiVersion, [expected], MOST_LETTERS) === undefined) return [];
    return [
      hint(
        path,
        kind,
        json,
        `apiVersion: ${shownValue(apiVersion)} is unknown, so the object is ignored; the nearest is "${expected}"`,
      ),
    ];
  }
  const fields = FIELDS[kind];
  if (fields === undefined) return [];
  const found: UnknownField[] = [];
  findUnknown(json, fields, [], found);
  return found.map(({ place, meant }) =>
    hint(path, kind, json, `${place}: the field is unknown and ignored; the nearest is "${meant}"`),
  );
}

interface UnknownField {
  readonly place: string;
  readonly meant: string;
}

/** Adds to `found` the fields that Headgate does not read, with the nearest one that it reads at the same place. */
function findUnknown(
  value: unknown,
  openApi: OpenApi,
  path: (string | number)[],
  found: UnknownField[],
): void {
  const { items, properties } = openApi;
  const into = (key: string | number, inner: unknown, of: OpenApi): void => {
    path.push(key);
    findUnknown(inner, of, path, found);
    path.pop();
  };
  if (Array.isArray(value) && isMapping(items))
    for (const [at, item] of value.entries()) into(at, item, items);
  if (!isMapping(value) || !isMapping(properties)) return;
  const nearestOf = nearestIn(properties);
  for (const name of Object.keys(value)) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (isMapping(own)) into(name, value[name], own);
    else if (name !== OTHER_FIELD && found.length < MAX_FIELDS) {
      const meant = nearestOf(name);
      // An object with a field that is nearly the ranges of clients is refused.
      if (meant !== undefined && meant !== RANGES) found.push({ place: pathText([...path, name]), meant });
    }
  }
}

/** Answers are kept, because every object has the same few fields of Kubernetes that Headgate does not read. */
const nearestIn = memoByIdentity((properties: OpenApi) => {
  const known = Object.keys(properties);
  const answers = new Map<string, string | undefined>();
  return (name: string): string | undefined => {
    if (answers.has(name)) return answers.get(name);
    const meant = nearest(name, known, MOST_LETTERS);
    if (answers.size < MAX_ANSWERS) answers.set(name, meant);
    return meant;
  };
});

function ofMetallb(path: string, kind: string, json: Readonly<Record<string, unknown>>): Problem {
  const { namespace, name } = isMapping(json.metadata) ? json.metadata : {};
  const object = `${printable(kind)} ${[namespace, name].filter(Boolean).map(String).map(printable).join('/')}`;
  const message = `${path}: ${object}: an object of MetalLB is ignored; "headgate convert metallb" makes AddressPools and BGPPeers of MetalLB's`;
  return { object, reason: 'KindIgnored', message };
}

/** `kind`: the one that is meant. */
function hint(path: string, kind: string, json: Readonly<Record<string, unknown>>, message: string): Problem {
  const object = nameOf(kind, json);
  return { object: object || path, reason: 'Misspelled', message: `${path}: ${object || kind}: ${message}` };
}
