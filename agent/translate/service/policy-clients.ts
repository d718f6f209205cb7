// The clients that NetworkPolicies let in to the members of a pool, by their addresses: those that every member lets in.
// Policies add up: a pod takes what any policy that selects it lets in, and everything if none does. Only blocks of addresses
// count, because the load balancer cannot tell pods or namespaces by an address: what it cannot decide is refused. Pure.
// https://kubernetes.io/docs/concepts/services-networking/network-policies/
// Why: docs/design/decisions/0099-network-policies-at-the-door.md

import {
  type AddressSet,
  addressesOf,
  allAddresses,
  cidrsOf,
  common,
  hasAll,
  others,
  union,
} from '../../base/address-set.ts';
import { quote } from '../../base/quote.ts';
import { matches } from '../../kubernetes/label-selector.ts';
import type { IngressRule, Labels, NetworkPolicy, PolicyPort } from '../../kubernetes/network-policy.ts';
import type { Pod } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Family, Protocol } from '../../model/load-balancer.ts';

/** The part of the store of objects that policies need. */
export interface PoliciesView {
  networkPoliciesIn(namespace: string): readonly NetworkPolicy[];
  pod(key: string): Pod | undefined;
  podsAt(address: string): readonly Pod[];
}

/** Where the load balancer, or the node, sends connections. */
export interface SentTo {
  readonly address: string;
  readonly port: number;
  /** `Pod/web-1`, '' if unknown. */
  readonly target: string;
}

export interface PolicyQuestion {
  /** The namespace of the Service and its endpoints. */
  readonly namespace: string;
  readonly protocol: Protocol;
  /** The families that clients can have. */
  readonly families: readonly Family[];
}

export interface PolicyClients {
  /** For each family that was asked for; undefined: no policy restricts them. */
  readonly allowed: Readonly<Partial<Record<Family, AddressSet>>> | undefined;
  /** Destinations that must not be used: no pod is known by their address or name yet, so that no policy can be found. */
  readonly unknown: ReadonlySet<SentTo>;
  /** What cannot be told from the address of a client, each a sentence. */
  readonly faults: readonly string[];
}

/** More policies in a namespace, or more ranges for a pod, are not read: they would cost all others time. */
export const MAX_POLICIES = 1_000;
export const MAX_RANGES = 1_000;
const MAX_NAMES = 3;

export function policyClients(
  destinations: readonly SentTo[],
  question: PolicyQuestion,
  view: PoliciesView,
  reads: { add(dependency: Dependency): unknown },
): PolicyClients {
  const unknown = new Set<SentTo>();
  const groups = new Map<string, Group>();
  for (const destination of destinations) {
    const pods = podsOf(destination, question.namespace, view, reads);
    if (pods === undefined) unknown.add(destination);
    for (const pod of pods ?? []) {
      reads.add(`networkpolicies ${pod.namespace}`);
      const selection = selectionOf(view.networkPoliciesIn(pod.namespace), pod.labels);
      if (selection.id === '') continue;
      const id = [selection.id, destination.port, ...pod.ports.map((each) => Object.values(each).join(' '))];
      groups.set(id.join('\n'), { pod, selection, port: destination.port });
    }
  }
  if (groups.size === 0) return { allowed: undefined, unknown, faults: [] };
  const faults = new Set<string>();
  const sets = [...groups.values()].map((group) => clientsOf(group, question, faults));
  const allowed = Object.fromEntries(
    question.families.map((family) => [
      family,
      sets.reduce((all, each) => common(all, each[family]), allAddresses(family)),
    ]),
  );
  if (groups.size > 1 && !sets.every((each) => isSame(each, sets[0], question.families)))
    faults.add('its members have different NetworkPolicies; only what all of them let in is served');
  const isOpen = question.families.every((family) => hasAll(allowed[family] ?? [], family));
  return { allowed: isOpen ? undefined : allowed, unknown, faults: [...faults] };
}

/** `CIDRs` of both; undefined if they would be more than the load balancer takes. */
export function restricted(
  cidrs: readonly string[],
  set: AddressSet | undefined,
  family: Family,
): readonly string[] | undefined {
  if (set === undefined || hasAll(set, family)) return cidrs;
  return cidrsOf(common(addressesOf(cidrs, family), set), family, MAX_RANGES);
}

/** Pods that are alike for the policies. */
interface Group {
  readonly pod: Pod;
  readonly selection: Selection;
  readonly port: number;
}

interface Selection {
  readonly policies: readonly NetworkPolicy[];
  /** '' if no policy selects the pods; the names of the policies, and their namespace. */
  readonly id: string;
  readonly areTooMany: boolean;
}

type Sets = Readonly<Record<Family, AddressSet>>;

const NOBODY: Sets = { v4: [], v6: [] };

/**
 * By its address, because the author of an EndpointSlice can name any pod; by its name only if it has the address of its node.
 * Empty: it is no pod. undefined: it is not known yet.
 */
function podsOf(
  { address, target }: SentTo,
  namespace: string,
  view: PoliciesView,
  reads: { add(dependency: Dependency): unknown },
): readonly Pod[] | undefined {
  reads.add(`podaddress ${address}`);
  const pods = view.podsAt(address);
  if (pods.length > 0 || !target.startsWith('Pod/')) return pods;
  const key = `${namespace}/${target.slice('Pod/'.length)}`;
  reads.add(`pod ${key}`);
  const pod = view.pod(key);
  return pod?.hostNetwork && pod.addresses.includes(address) ? [pod] : undefined;
}

/** By the list of policies of a namespace, by labels. */
const selections = new WeakMap<readonly NetworkPolicy[], WeakMap<Labels, Selection>>();

function selectionOf(policies: readonly NetworkPolicy[], labels: Labels): Selection {
  let ofLabels = selections.get(policies);
  if (ofLabels === undefined) {
    ofLabels = new WeakMap();
    selections.set(policies, ofLabels);
  }
  let selection = ofLabels.get(labels);
  if (selection === undefined) {
    selection = select(policies, labels);
    ofLabels.set(labels, selection);
  }
  return selection;
}

function select(policies: readonly NetworkPolicy[], labels: Labels): Selection {
  if (policies.length > MAX_POLICIES) return { policies: [], id: 'too many', areTooMany: true };
  const selected = policies
    .filter(({ isForIngress, pods }) => isForIngress && (pods === undefined || matches(pods, labels)))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  return { policies: selected, id: selected.map(({ key }) => key).join(' '), areTooMany: false };
}

function clientsOf(
  { pod, selection, port }: Group,
  { protocol, families }: PolicyQuestion,
  faults: Set<string>,
): Sets {
  if (selection.areTooMany) {
    faults.add(
      `namespace ${quote(pod.namespace)} has more than ${MAX_POLICIES} NetworkPolicies, so that none is read`,
    );
    return NOBODY;
  }
  const rules = selection.policies.flatMap((policy) =>
    policy.rules
      .filter((rule) => isOpen(rule, pod, protocol, port))
      .map((rule): OpenRule => ({ ...rule, policy: policy.key })),
  );
  const names = rules.filter(({ hasOthers }) => hasOthers).map(({ policy }) => quote(policy));
  const isForAll = rules.some(({ blocks }) => blocks === undefined);
  if (names.length > 0 && !isForAll) faults.add(othersFault([...new Set(names)]));
  const blocks = rules.flatMap(({ blocks: some }) => some ?? []);
  const ranges = blocks.reduce((count, { except }) => count + 1 + except.length, 0);
  if (ranges > MAX_RANGES && !isForAll) {
    faults.add(
      `the NetworkPolicies of a pod have ${ranges} ranges for port ${port}, more than ${MAX_RANGES}`,
    );
    return NOBODY;
  }
  const setOf = (family: Family): AddressSet => {
    if (!families.includes(family)) return [];
    if (isForAll) return allAddresses(family);
    return union(
      blocks.flatMap(({ cidr, except }) =>
        common(addressesOf([cidr], family), others(addressesOf(except, family), family)),
      ),
    );
  };
  return { v4: setOf('v4'), v6: setOf('v6') };
}

interface OpenRule extends IngressRule {
  readonly policy: string;
}

function othersFault(policies: readonly string[]): string {
  const more = policies.length > MAX_NAMES ? ` and ${policies.length - MAX_NAMES} more` : '';
  const names = policies.slice(0, MAX_NAMES).join(', ');
  return `NetworkPolicy ${names}${more} also lets in what is no "ipBlock", such as pods, which the load balancer cannot tell by an address: it is refused`;
}

function isOpen({ ports }: IngressRule, pod: Pod, protocol: Protocol, port: number): boolean {
  return ports === undefined || ports.some((each) => isPort(each, pod, protocol, port));
}

function isPort({ protocol: of, port, last }: PolicyPort, pod: Pod, protocol: Protocol, at: number): boolean {
  if (of !== protocol) return false;
  if (port === undefined) return true;
  if (typeof port === 'number') return last === undefined ? at === port : port <= at && at <= last;
  return pod.ports.some((each) => each.name === port && each.protocol === protocol && each.port === at);
}

function isSame(a: Sets, b: Sets | undefined, families: readonly Family[]): boolean {
  return families.every((family) => {
    const [one, other] = [a[family], b?.[family] ?? []];
    return (
      one.length === other.length &&
      one.every(({ first, last }, at) => first === other[at]?.first && last === other[at]?.last)
    );
  });
}
