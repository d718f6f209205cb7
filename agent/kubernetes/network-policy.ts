// NetworkPolicies as flat values, and what they read of pods: which clients a pod lets in. A part of a policy that cannot be
// read lets no client in, because the object as a whole would otherwise be missing, and its pods open. Pure.
// https://kubernetes.io/docs/concepts/services-networking/network-policies/

import { compactList, intern } from '../base/compact.ts';
import { parseCidr } from '../base/ip.ts';
import { label, subdomain } from '../base/name-forms.ts';
import { isMapping, listOf, object, oneOf, string, type Valid, wholeNumber } from '../base/validate.ts';
import type { Protocol } from '../model/load-balancer.ts';
import { type Selector, selectorSchema } from './label-selector.ts';
import { named, uid } from './object-names.ts';

interface Identity {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** '' in a manifest without one. */
  readonly uid: string;
}

export interface NetworkPolicy extends Identity {
  readonly kind: 'NetworkPolicy';
  /** undefined: it cannot be read, and counts for all pods of the namespace. */
  readonly pods: Selector | undefined;
  /** It is about incoming connections: what none of its rules lets in is refused. */
  readonly isForIngress: boolean;
  readonly rules: readonly IngressRule[];
}

export interface IngressRule {
  /** undefined: all. */
  readonly ports: readonly PolicyPort[] | undefined;
  /** undefined: all sources. */
  readonly blocks: readonly IpBlock[] | undefined;
  /** It also lets in what cannot be told by an address: pods by their labels, or something unreadable. */
  readonly hasOthers: boolean;
}

export interface PolicyPort {
  readonly protocol: Protocol;
  /** The number, the name of a port of the pod's containers, or undefined for all. */
  readonly port: number | string | undefined;
  /** With a number: the last one of a range. */
  readonly last: number | undefined;
}

export interface IpBlock {
  /** Canonical. */
  readonly cidr: string;
  readonly except: readonly string[];
}

export type Labels = Readonly<Record<string, string>>;

export interface NamedPort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

const MAX_CIDR_CHARACTERS = 64;

const metadata = object({
  name: named(subdomain),
  namespace: named(label).nullish(),
  uid: uid().nullish(),
});
const protocol = () => oneOf('TCP', 'UDP', 'SCTP');

/** The rest is read part by part. */
export const networkPolicySchema = object({ metadata });

const specSchema = object({ policyTypes: listOf(string()).nullish() });
const portSchema = object({ protocol: protocol().nullish(), endPort: wholeNumber(1, 65535).nullish() });
const cidr = named({ check: (text) => text.length <= MAX_CIDR_CHARACTERS, not: 'is too long' });
const blockSchema = object({ cidr, except: listOf(cidr).nullish() });

/** `json`: the whole object. */
export function networkPolicyOf(
  { metadata: meta }: Valid<typeof networkPolicySchema>,
  json: unknown,
): NetworkPolicy {
  const spec = isMapping(json) && isMapping(json.spec) ? json.spec : {};
  const selector = selectorSchema.judge(spec.podSelector);
  const types = specSchema.judge(spec);
  const { policyTypes } = types.success ? types.data : {};
  return {
    kind: 'NetworkPolicy',
    ...identityOf(meta),
    pods: selector.success ? selector.data : undefined,
    isForIngress: policyTypes === undefined || policyTypes.length === 0 || policyTypes.includes('Ingress'),
    rules: compactList(Array.isArray(spec.ingress) ? spec.ingress.map(ruleOf) : []),
  };
}

const NOTHING: IngressRule = { ports: [], blocks: [], hasOthers: true };

/** An empty list of ports or sources is as no list: all. */
function ruleOf(rule: unknown): IngressRule {
  if (!hasOnly(rule, ['ports', 'from'])) return NOTHING;
  const { ports, from } = rule;
  if (!isListOrNone(ports) || !isListOrNone(from)) return NOTHING;
  const found = from?.map(blockOf);
  return {
    ports: ports?.length ? ports.flatMap(portOf) : undefined,
    blocks: found?.length ? found.filter((block) => block !== undefined) : undefined,
    hasOthers: found?.includes(undefined) ?? false,
  };
}

/** A field of a later version of the API may restrict the others. */
function hasOnly(value: unknown, fields: readonly string[]): value is Readonly<Record<string, unknown>> {
  return isMapping(value) && Object.keys(value).every((field) => fields.includes(field));
}

function isListOrNone(value: unknown): value is readonly unknown[] | null | undefined {
  return value === undefined || value === null || Array.isArray(value);
}

function portOf(written: unknown): readonly PolicyPort[] {
  const judged = portSchema.judge(written);
  if (!judged.success || !hasOnly(written, ['protocol', 'port', 'endPort'])) return [];
  const { port } = written;
  const { protocol: spoken = 'TCP', endPort: last } = judged.data;
  if (port === undefined || port === null)
    return last === undefined ? [{ protocol: spoken, port: undefined, last }] : [];
  if (typeof port === 'string')
    return last === undefined && label.check(port) ? [{ protocol: spoken, port, last }] : [];
  return typeof port === 'number' ? [{ protocol: spoken, port, last }] : [];
}

/** undefined for other sources than addresses. */
function blockOf(peer: unknown): IpBlock | undefined {
  if (!isMapping(peer) || Object.values(peer).filter((each) => each !== null).length !== 1) return undefined;
  const judged = blockSchema.judge(peer.ipBlock);
  if (!judged.success || !hasOnly(peer.ipBlock, ['cidr', 'except'])) return undefined;
  const block = parseCidr(judged.data.cidr)?.cidr;
  const except = (judged.data.except ?? []).map((each) => parseCidr(each)?.cidr);
  // An exception that cannot be read could be any part of the block.
  if (block === undefined || except.includes(undefined)) return undefined;
  return { cidr: block, except: compactList(except.filter((each) => each !== undefined)) };
}

const containers = listOf(
  object({
    restartPolicy: string().nullish(),
    ports: listOf(
      object({
        name: string().nullish(),
        containerPort: wholeNumber(1, 65535),
        protocol: protocol().nullish(),
      }),
    ).nullish(),
  }),
).nullish();

/** In the spec of a Pod. */
export const containersOfPod = { containers, initContainers: containers };

const NO_LABELS: Labels = {};

/** Sidecars are containers that run beside the others from the start on. */
export function namedPortsOf(
  spec: { readonly [K in keyof typeof containersOfPod]: Valid<typeof containers> } | undefined,
): readonly NamedPort[] {
  const sidecars = spec?.initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always') ?? [];
  return compactList(
    [...(spec?.containers ?? []), ...sidecars].flatMap(({ ports }) =>
      (ports ?? []).flatMap(({ name, containerPort, protocol: spoken }) =>
        name ? { name: intern(name), protocol: spoken ?? 'TCP', port: containerPort } : [],
      ),
    ),
  );
}

/** By their text; the pods of a ReplicaSet have the same. */
const labelSets = new Map<string, Labels>();
const MAX_LABEL_SETS = 5_000;

export function sharedLabels(labels: Labels = NO_LABELS): Labels {
  const text = JSON.stringify(labels);
  const known = labelSets.get(text);
  if (known !== undefined) return known;
  if (labelSets.size >= MAX_LABEL_SETS) labelSets.clear();
  labelSets.set(text, labels);
  return labels;
}

function identityOf({ namespace = 'default', name, uid: id = '' }: Valid<typeof metadata>): Identity {
  return { key: `${namespace}/${name}`, namespace: intern(namespace), name, uid: id };
}
