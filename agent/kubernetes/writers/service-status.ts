// What the status of a Service should say: addresses with each port, and the conditions; and what of that differs from
// what stands there. Pure: from the load balancer and what the dataplane has acknowledged.
// Formats: the Kubernetes API reference (ServiceStatus, PortStatus), KEP-1435 (ports), KEP-1860 (ipMode).

import { compactList } from '../../base/compact.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Listener, LoadBalancer, Problem, ProblemReason, Vip } from '../../model/load-balancer.ts';
import type { Condition, CurrentService, Ingress, PortStatus } from '../current-service.ts';

/** What the dataplane says of one load balancer. */
export interface StatusFacts {
  /** Whether it has acknowledged to serve the listener of this name at this address. */
  serves(listener: string, address: string): boolean;
  readonly problems: readonly Problem[];
  /** How a listener's connections reach the members; without it all are proxied. */
  ipMode?(listener: string): 'Proxy' | 'VIP';
  /** How it is doing, in Octavia's words; undefined where nobody checks its members. */
  readonly health?: { readonly status: string; readonly message: string } | undefined;
}

/** What the status should say, as far as it is ours to say. */
export interface DesiredStatus {
  readonly ingress: readonly DesiredIngress[];
  readonly conditions: readonly DesiredCondition[];
  /** False while the dataplane has yet to say yes or no to something: it may look different in a moment. */
  readonly isSettled: boolean;
}

export interface DesiredIngress {
  readonly ip: string;
  readonly ipMode: 'Proxy' | 'VIP';
  readonly ports: readonly PortStatus[];
  /** No port is served yet: the address is not published, but where it already is it stays. */
  readonly onlyIfPublished: boolean;
}

export interface DesiredCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface MergedStatus {
  readonly ingress: readonly Ingress[];
  readonly conditions: readonly Condition[];
}

export const IP_ALLOCATED = 'headgate.io/IPAllocated';
export const PROGRAMMED = 'headgate.io/Programmed';
/** There only where there is a health monitor. */
export const HEALTHY = 'headgate.io/Healthy';
/** Kubernetes' own, there only where a port cannot be served. */
export const PORTS_ERROR = 'LoadBalancerPortsError';
/** Characters; HAProxy may have much to say. */
const LONGEST_MESSAGE = 1024;
const OWN_CONDITIONS = [IP_ALLOCATED, PROGRAMMED, HEALTHY, PORTS_ERROR];

/** Whether we have written to this Service; it is also how we know our finalizer from another's of the same name. */
export function isMarkedOurs({ conditions }: Pick<CurrentService, 'conditions'>): boolean {
  return conditions.some(({ type }) => type === IP_ALLOCATED);
}

/** One that the Service has from somebody else, of which its status says nothing. */
export function isItsOwn({ source }: Vip): boolean {
  return source === 'spec.externalIPs' || source === 'spec.clusterIPs';
}

export function desiredStatus(loadBalancer: LoadBalancer, facts: StatusFacts): DesiredStatus {
  const problems = [...loadBalancer.problems, ...facts.problems];
  const addresses = loadBalancer.vips
    .filter((vip) => !isItsOwn(vip))
    .map(({ address, family }) => ({ address, family }));
  const states = addresses.flatMap(({ address, family }) =>
    loadBalancer.listeners
      .filter((listener) => listener.family === family)
      .map((listener) => portState(listener, address, problems, facts)),
  );
  const ingress = addresses.flatMap(({ address }) =>
    ingressOf(
      address,
      states.filter((state) => state.address === address),
      facts,
    ),
  );
  const conditions: readonly DesiredCondition[] = [
    ipAllocated(
      addresses.map(({ address }) => address),
      states,
      problems,
    ),
    programmed(addresses.length > 0, states, problems),
    ...healthy(facts),
    ...portsError(states),
  ];
  const short = conditions.map((each) => ({ ...each, message: each.message.slice(0, LONGEST_MESSAGE) }));
  return {
    ingress: compactList(ingress),
    conditions: short,
    isSettled: !states.some(({ fault }) => fault === 'Pending'),
  };
}

/** The reason is Octavia's word as a condition has it: `Online`, `Degraded`. */
function healthy({ health }: StatusFacts): DesiredCondition[] {
  if (health === undefined) return [];
  const { status, message } = health;
  const reason = `${status.slice(0, 1)}${status.slice(1).toLowerCase()}`.replace(/_(.)/g, (_, letter) =>
    letter.toUpperCase(),
  );
  return [{ type: HEALTHY, status: status === 'ONLINE' ? 'True' : 'False', reason, message }];
}

/** The status with what is wanted in place of ours; what others wrote stays. Times stay where nothing changed. */
export function mergeStatus(current: CurrentService, wanted: DesiredStatus, now: string): MergedStatus {
  const published = new Map(current.ingress.map((each) => [each.ip, each]));
  const isLoadBalancer = current.type === 'LoadBalancer';
  const ingress = (isLoadBalancer ? wanted.ingress : [])
    .filter(({ ip, onlyIfPublished }) => !onlyIfPublished || published.has(ip))
    .map(({ ip, ipMode, ports }) => ({ ip, ipMode, ports }));
  const before = new Map(current.conditions.map((each) => [each.type, each]));
  const own = wanted.conditions.map((each) => mergeCondition(before.get(each.type), each, current, now));
  // In their old places, so that equal lists are equal.
  const left = new Map(own.map((each) => [each.type, each]));
  const conditions: Condition[] = [];
  for (const condition of current.conditions) {
    const mine = left.get(condition.type);
    if (mine !== undefined) conditions.push(mine);
    else if (!OWN_CONDITIONS.includes(condition.type)) conditions.push(condition);
    left.delete(condition.type);
  }
  return { ingress, conditions: [...conditions, ...left.values()] };
}

/**
 * The status without anything of ours, for a Service that is no longer ours. Addresses that another load balancer has
 * written by now stay: ours are those that our condition names.
 */
export function clearedStatus(current: CurrentService): MergedStatus {
  const marker = current.conditions.find(({ type }) => type === IP_ALLOCATED);
  if (marker === undefined) return current;
  const addresses = allocatedAddresses(marker);
  return {
    ingress: current.ingress.filter(({ ip = '' }) => !addresses.includes(ip)),
    conditions: current.conditions.filter(({ type }) => !OWN_CONDITIONS.includes(type)),
  };
}

/** Those that the condition IPAllocated names. */
export function allocatedAddresses(
  marker: Pick<Condition, 'status' | 'message'> | undefined,
): readonly string[] {
  if (marker?.status !== 'True') return [];
  const [addresses = ''] = marker.message.split(';', 1);
  return addresses.split(', ');
}

export function isSameStatus(current: CurrentService, merged: MergedStatus): boolean {
  return sameValue(current.ingress, merged.ingress) && sameValue(current.conditions, merged.conditions);
}

function mergeCondition(
  before: Condition | undefined,
  { type, status, reason, message }: DesiredCondition,
  { generation }: CurrentService,
  now: string,
): Condition {
  return {
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    type,
    status,
    reason,
    message,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
  };
}

/** `Pending`: the dataplane has said neither yes nor no. */
type Fault = ProblemReason | 'Pending';

/** One listener on one of its addresses. */
interface PortState {
  readonly address: string;
  readonly listener: Listener;
  /** undefined where it is served. */
  readonly fault: Fault | undefined;
  readonly message: string;
  /** Connections are taken, be it by an older configuration. */
  readonly isServed: boolean;
}

/** A port with such a problem cannot be served, whatever the dataplane has acknowledged. */
const PORT_FAULTS: readonly ProblemReason[] = [
  'ProtocolNotServed',
  'NodePortMissing',
  'AddressInUse',
  'AddressUnavailable',
];

function portState(
  listener: Listener,
  address: string,
  problems: readonly Problem[],
  facts: StatusFacts,
): PortState {
  const problem = problems.find(
    (each) => PORT_FAULTS.includes(each.reason) && isAbout(each, listener, address),
  );
  const isServed =
    listener.addresses.includes(address) && facts.serves(listener.name, address) && problem === undefined;
  const rejection = isServed ? undefined : problems.find(({ reason }) => reason === 'ConfigurationRejected');
  const cause = problem ?? rejection;
  if (cause !== undefined)
    return { address, listener, fault: cause.reason, message: cause.message, isServed: false };
  if (isServed) return { address, listener, fault: undefined, message: '', isServed };
  return { address, listener, fault: 'Pending', message: '', isServed: false };
}

function isAbout({ port, reason, message }: Problem, listener: Listener, address: string): boolean {
  if (port?.port !== listener.port || port.protocol !== listener.protocol) return false;
  if (reason === 'AddressInUse' || reason === 'AddressUnavailable')
    return message.split(' ').includes(address);
  return true;
}

function ingressOf(address: string, states: readonly PortState[], facts: StatusFacts): DesiredIngress[] {
  if (states.length === 0 || isAnothers(states)) return [];
  const [first] = states;
  const ports = states.map(({ listener: { port, protocol }, fault }) => ({
    ...(fault === undefined ? {} : { error: `headgate.io/${fault}` }),
    port,
    protocol,
  }));
  const ipMode = (first && facts.ipMode?.(first.listener.name)) ?? 'Proxy';
  return [{ ip: address, ipMode, ports, onlyIfPublished: !states.some(({ isServed }) => isServed) }];
}

/** Problems of what a Service asks of addresses, besides AddressPending itself. */
const ADDRESS_FAULT = /Address|Pool|Claim|Provisioner/;

/** True with a reason of its own where the Service has addresses, but not as it asks for, or as they should be. */
function ipAllocated(
  addresses: readonly string[],
  states: readonly PortState[],
  problems: readonly Problem[],
): DesiredCondition {
  const about = problems.filter(({ reason, port }) => port === undefined && ADDRESS_FAULT.test(reason));
  const problem = about.find(({ reason }) => reason !== 'AddressPending') ?? about[0];
  const lost = addresses.filter((address) => isAnothers(states.filter((state) => state.address === address)));
  const own = addresses.filter((address) => !lost.includes(address));
  if (own.length > 0) {
    const message = own.join(', ');
    if (problem === undefined) return { type: IP_ALLOCATED, status: 'True', reason: 'Allocated', message };
    return {
      type: IP_ALLOCATED,
      status: 'True',
      reason: problem.reason,
      message: `${message}; ${problem.message}`,
    };
  }
  const taken = states.find((state) => lost.includes(state.address));
  const { reason = 'AddressPending', message = 'It has no address yet' } =
    problem ?? (taken && { reason: taken.fault, message: taken.message }) ?? {};
  return { type: IP_ALLOCATED, status: 'False', reason, message };
}

/** Another Service has the address on each port of this one. */
function isAnothers(states: readonly PortState[]): boolean {
  return states.length > 0 && states.every(({ fault }) => fault === 'AddressInUse');
}

function programmed(
  hasAddress: boolean,
  states: readonly PortState[],
  problems: readonly Problem[],
): DesiredCondition {
  const no = (reason: string, message: string): DesiredCondition => ({
    type: PROGRAMMED,
    status: 'False',
    reason,
    message,
  });
  if (!hasAddress) return no('AddressPending', 'It has no address that could be listened on');
  const rejection = problems.find(({ reason }) => reason === 'ConfigurationRejected');
  if (rejection !== undefined) return no(rejection.reason, rejection.message);
  const faults = states.filter(({ fault }) => fault !== undefined);
  if (faults.length === 0) return { type: PROGRAMMED, status: 'True', ...servedAll(states) };
  const first = faults.find(({ fault }) => fault !== 'Pending');
  if (first?.fault === undefined)
    return no('Pending', `${notServed(faults)}: the load balancer has not confirmed it yet`);
  return no(first.fault, `${notServed(faults)}: ${first.message}`);
}

/**
 * Whether pods are ready is nothing that the load balancer could mend, and zero may be what the owner wants: the
 * condition stays true and says it in its reason.
 */
function servedAll(states: readonly PortState[]): { readonly reason: string; readonly message: string } {
  const empty = states.filter(
    ({ listener }) => !listener.pool.members.some(({ state }) => state === 'ready'),
  );
  if (empty.length === 0) return { reason: 'Programmed', message: 'All ports are served' };
  const message = `All ports are served, but connections are refused where no member is ready: ${portsOf(empty)}`;
  return { reason: 'NoMembers', message };
}

function notServed(faults: readonly PortState[]): string {
  return `Not served: ${portsOf(faults)}`;
}

function portsOf(states: readonly PortState[]): string {
  return [...new Set(states.map(({ listener: { port, protocol } }) => `${protocol} ${port}`))].join(', ');
}

/** KEP-1435: where a Service mixes protocols and one of them is not served, the reason has its fixed name. */
function portsError(states: readonly PortState[]): DesiredCondition[] {
  const faults = states.filter(({ fault }) => fault !== undefined && fault !== 'Pending');
  const [first] = faults;
  if (first?.fault === undefined) return [];
  const isMixed = new Set(states.map(({ listener }) => listener.protocol)).size > 1;
  const unserved = faults.find(({ fault }) => fault === 'ProtocolNotServed');
  const reason = isMixed && unserved !== undefined ? 'LoadBalancerMixedProtocolNotSupported' : first.fault;
  return [
    {
      type: PORTS_ERROR,
      status: 'True',
      reason,
      message: `${notServed(faults)}: ${(unserved ?? first).message}`,
    },
  ];
}
