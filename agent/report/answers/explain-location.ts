// Explains an address, an address with a port, a pod or a node for the command `why`: the load balancers that have it as a VIP,
// and the ports of which it is a member. Reads the parts of the agent; changes nothing.

import type { EgressMapping } from '../../dataplane/egress-facts.ts';
import type { LoadBalancer, Member, OwnerKey, Vip } from '../../model/load-balancer.ts';
import { listenerInWords, ownerOf } from '../../model/names.ts';
import type { OperatingStatus } from '../../model/operating-status.ts';
import type { VipAnnouncement } from '../../vips/bgp.ts';
import { operatingStatus } from '../operating/operating-status.ts';
import { explainService, type ServiceExplanation } from './explain.ts';
import type { StatusSources } from './status.ts';

/** '' and 0 for what is not asked for. */
export interface AskedLocation {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
  /** `Pod/web-1`, `Node/worker-1`. */
  readonly target: string;
  /** The pod's namespace. */
  readonly namespace: string;
}

export interface LocationExplanation {
  /** Load balancers that have the address, and the port if one is asked for. */
  readonly loadBalancers: readonly ServiceExplanation[];
  readonly members: readonly MemberOf[];
  /** From which VIP connections of the pod leave; empty if from none. An agent of a release before says nothing. */
  readonly egress?: readonly EgressMapping[];
  /** How many more of both there are. */
  readonly more: number;
  /** How each host of the setting `hosts` announces the address; undefined without it, or if it is no VIP. */
  readonly hosts?: readonly HostAnnouncement[];
}

export interface HostAnnouncement {
  readonly name: string;
  /** undefined if the host does not answer. */
  readonly announcement: VipAnnouncement | undefined;
}

export interface MemberOf {
  readonly key: OwnerKey;
  /** `TCP port 80 (IPv4)`. */
  readonly port: string;
  readonly name: string;
  readonly target: string;
  readonly state: Member['state'];
  readonly status: OperatingStatus;
  /** Why it is in ERROR, or what of its traffic failed. */
  readonly cause: string;
}

/** The most in one answer. */
const MAX_LOAD_BALANCERS = 20;
const MAX_MEMBERS = 200;

export function placeOf(query: URLSearchParams): AskedLocation {
  const text = (name: string): string => query.get(name) ?? '';
  return {
    address: text('address'),
    port: Number(text('port')) || 0,
    target: text('target'),
    namespace: text('namespace'),
  };
}

/** As explainLocation(), with how all hosts announce a VIP. */
export async function explainVip(place: AskedLocation, sources: StatusSources): Promise<LocationExplanation> {
  const explanation = explainLocation(place, sources);
  const { address } = place;
  const vips = [...sources.desired.loadBalancers.values()].flatMap((each) => each.vips);
  const vip = vips.find((each) => isMeantBy(each, address));
  const hosts = vip && (await sources.bgpHost?.announcements(vip.address));
  if (hosts === undefined) return explanation;
  return {
    ...explanation,
    hosts: [...hosts].map(([name, announcement]) => ({ name, announcement })),
  };
}

export function explainLocation(place: AskedLocation, sources: StatusSources): LocationExplanation {
  const all = [...sources.desired.loadBalancers.values()];
  const atVip = all.filter((each) => hasVip(each, place)).map(({ key }) => key);
  const members = all.flatMap((each) => membersOf(each, place, sources));
  return {
    loadBalancers: atVip.slice(0, MAX_LOAD_BALANCERS).map((key) => explainService(key, sources)),
    members: members.slice(0, MAX_MEMBERS),
    egress: egressOf(place, sources),
    more: Math.max(0, atVip.length - MAX_LOAD_BALANCERS) + Math.max(0, members.length - MAX_MEMBERS),
  };
}

function egressOf(
  { address, target, namespace }: AskedLocation,
  { egress }: Pick<StatusSources, 'egress'>,
): readonly EgressMapping[] {
  if (target !== '') return egress.mappingsOf(namespace, target);
  return [egress.mappingOf(address) ?? []].flat();
}

function hasVip({ vips, listeners }: LoadBalancer, { address, port }: AskedLocation): boolean {
  const own = address === '' ? [] : vips.filter((vip) => isMeantBy(vip, address));
  if (own.length === 0 || port === 0) return own.length > 0;
  return listeners.some(
    (each) => each.port === port && own.some((vip) => each.addresses.includes(vip.address)),
  );
}

/** Also by the address that clients use. */
function isMeantBy(vip: Vip, address: string): boolean {
  return vip.address === address || vip.publicAddress === address;
}

function membersOf(
  loadBalancer: LoadBalancer,
  place: AskedLocation,
  sources: StatusSources,
): readonly MemberOf[] {
  const { key, listeners } = loadBalancer;
  const isMeant = (member: Member): boolean => isAt(member, ownerOf(key).namespace, place);
  if (!listeners.some(({ pool }) => pool.members.some(isMeant))) return [];
  const status = operatingStatus(loadBalancer, sources.dataplane, sources.reach);
  return listeners.flatMap((listener, at) =>
    listener.pool.members.filter(isMeant).map(({ name, target, state }) => {
      const own = status.listeners[at]?.members.find((each) => each.name === name);
      const { status: word = 'OFFLINE', cause = '' } = own ?? {};
      return { key, port: listenerInWords(listener), name, target, state, status: word, cause };
    }),
  );
}

function isAt(member: Member, namespace: string, asked: AskedLocation): boolean {
  if (asked.target !== '')
    return member.target === asked.target && (asked.namespace === '' || asked.namespace === namespace);
  return member.address === asked.address && (asked.port === 0 || asked.port === member.port);
}
