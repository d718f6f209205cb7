// The desired status of a Service: addresses with each port, and the conditions. Pure: from the load balancer and what
// the dataplane has confirmed.
// Formats: the Kubernetes API reference (ServiceStatus, PortStatus), KEP-1435 (ports), KEP-1860 (ipMode).

import { compactList } from '../../base/compact.ts';
import {
  addressInWords,
  type Listener,
  type LoadBalancer,
  type Problem,
  type ProblemReason,
  shownAddress,
  type Vip,
} from '../../model/load-balancer.ts';
import { IP_ALLOCATED } from '../class-names.ts';
import type { PortStatus } from '../current-service.ts';

/** The dataplane's report about one load balancer. */
export interface StatusFacts {
  /** True if it has confirmed to serve the listener of this name at this address. */
  serves(listener: string, address: string): boolean;
  readonly problems: readonly Problem[];
  /** Addresses are published also before a port is served; absent: not. */
  readonly publishUnready?: boolean;
  /** Octavia's operating status; undefined if nothing is known, see HEALTHY. */
  readonly health?: { readonly status: string; readonly message: string } | undefined;
}

/** The agent's part of the status. */
export interface DesiredStatus {
  readonly ingress: readonly DesiredIngress[];
  readonly conditions: readonly DesiredCondition[];
  /** False while no address is chosen, or the dataplane has neither confirmed nor refused a port: it may change in a moment. */
  readonly isSettled: boolean;
}

export interface DesiredIngress {
  readonly ip: string;
  /** `VIP`: members see the client's address on every port, as they would if kube-proxy forwarded inside the cluster. */
  readonly ipMode: 'Proxy' | 'VIP';
  readonly ports: readonly PortStatus[];
  /** No port is served yet: an address that is published stays, another one waits. */
  readonly onlyIfPublished: boolean;
}

export interface DesiredCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export const PROGRAMMED = 'headgate.io/Programmed';
/** Present with a health monitor, and while members fail clients. */
export const HEALTHY = 'headgate.io/Healthy';
/** Present if the pods' connections must leave from its addresses. */
export const EGRESS = 'headgate.io/Egress';
/** Kubernetes' own; present only if a port cannot be served. */
export const PORTS_ERROR = 'LoadBalancerPortsError';
const MAX_MESSAGE_CHARACTERS = 1024;

/** An address that the Service has from another source; its status does not list it. */
export function isItsOwn({ source }: Vip): boolean {
  return source === 'spec.externalIPs' || source === 'spec.clusterIPs';
}

export function desiredStatus(loadBalancer: LoadBalancer, facts: StatusFacts): DesiredStatus {
  const problems = [...loadBalancer.problems, ...facts.problems];
  const vips = loadBalancer.vips.filter((vip) => !isItsOwn(vip));
  const addresses = vips.map(({ address }) => address);
  const states = vips.flatMap(({ address, family }) =>
    loadBalancer.listeners
      .filter((listener) => listener.family === family)
      .map((listener) => portState(listener, address, problems, facts)),
  );
  const statesOf = (address: string) => states.filter((state) => state.address === address);
  return {
    ingress: compactList(vips.flatMap((vip) => ingressOf(vip, statesOf(vip.address), facts))),
    conditions: [
      ipAllocated(vips, statesOf, problems),
      programmed(addresses.length > 0, states, problems),
      ...healthy(facts),
      ...egressCondition(loadBalancer, problems),
      ...portsError(states),
    ],
    isSettled: !isUndecided(addresses, problems) && !states.some(({ fault }) => fault === 'Pending'),
  };
}

function condition(
  type: string,
  status: DesiredCondition['status'],
  reason: string,
  message: string,
): DesiredCondition {
  return { type, status, reason, message: message.slice(0, MAX_MESSAGE_CHARACTERS) };
}

/** The reason is Octavia's status in CamelCase: `Online`, `Degraded`. */
function healthy({ health }: StatusFacts): DesiredCondition[] {
  if (health === undefined) return [];
  const { status, message } = health;
  const reason = `${status.slice(0, 1)}${status.slice(1).toLowerCase()}`.replace(/_(.)/g, (_, letter) =>
    letter.toUpperCase(),
  );
  return [condition(HEALTHY, status === 'ONLINE' ? 'True' : 'False', reason, message)];
}

/** What is asked for and not given, in whole or in part; the first counts. */
const EGRESS_FAULTS: readonly ProblemReason[] = [
  'EgressNotServed',
  'NotPermitted',
  'EgressConflict',
  'EgressPodRefused',
];

/** Present if the Service asks for it; without the number of pods, which would be a write for each pod. */
function egressCondition({ egress }: LoadBalancer, problems: readonly Problem[]): DesiredCondition[] {
  const refused = problems.find(
    ({ reason, message }) => reason === 'InvalidAnnotation' && ABOUT_EGRESS.test(message),
  );
  if (egress === undefined)
    return refused === undefined ? [] : [condition(EGRESS, 'False', refused.reason, refused.message)];
  const fault = EGRESS_FAULTS.flatMap((each) => problems.find(({ reason }) => reason === each) ?? [])[0];
  if (fault !== undefined) return [condition(EGRESS, 'False', fault.reason, fault.message)];
  const vips = Object.values(egress.addresses);
  if (vips.length === 0) return [condition(EGRESS, 'False', 'Pending', 'The Service has no address yet')];
  return [condition(EGRESS, 'True', 'Mapped', `Connections of its pods leave from ${vips.join(', ')}`)];
}

const ABOUT_EGRESS = /"headgate\.io\/egress"/;

/** `Pending`: the dataplane has neither confirmed nor refused it. */
type Fault = ProblemReason | 'Pending';

/** One listener on one of its addresses. */
interface PortState {
  readonly address: string;
  readonly listener: Listener;
  /** undefined if it is served. */
  readonly fault: Fault | undefined;
  readonly message: string;
}

/** A port with such a problem cannot be served, even if the dataplane has confirmed it before. */
const PORT_FAULTS: readonly ProblemReason[] = [
  'ProtocolNotServed',
  'NodePortMissing',
  'AddressInUse',
  'AddressUnavailable',
  'AddressNotAnnounced',
];

/** A port with such a problem is not served unless it has a certificate from before. */
const CERTIFICATE_FAULTS: readonly ProblemReason[] = ['CertificateMissing', 'InvalidCertificate'];
/** Only a mistake in its TLS keeps a port from being served. */
const UNSERVED_FAULTS: readonly ProblemReason[] = [...CERTIFICATE_FAULTS, 'InvalidAnnotation'];

function portState(
  listener: Listener,
  address: string,
  problems: readonly Problem[],
  facts: StatusFacts,
): PortState {
  const isDesired = listener.addresses.includes(address);
  const faults = isDesired ? PORT_FAULTS : [...PORT_FAULTS, ...UNSERVED_FAULTS];
  const problem = problems.find((each) => faults.includes(each.reason) && isAbout(each, listener, address));
  const isServed = isDesired && facts.serves(listener.name, address);
  if (isServed && problem === undefined) return { address, listener, fault: undefined, message: '' };
  // The dataplane does not get a port that exceeds a share, so that it never confirms it.
  const causes = isDesired ? ['ConfigurationRejected'] : ['ConfigurationRejected', 'ShareExceeded'];
  const cause = problem ?? problems.find(({ reason }) => causes.includes(reason));
  return { address, listener, fault: cause?.reason ?? 'Pending', message: cause?.message ?? '' };
}

/** Their messages name the address. */
const OF_ONE_ADDRESS: readonly ProblemReason[] = [
  'AddressInUse',
  'AddressUnavailable',
  'AddressNotAnnounced',
];

function isAbout({ port, reason, message }: Problem, listener: Listener, address: string): boolean {
  if (port?.port !== listener.port || port.protocol !== listener.protocol) return false;
  if (OF_ONE_ADDRESS.includes(reason)) return message.split(' ').includes(address);
  return true;
}

function ingressOf(
  vip: Vip,
  states: readonly PortState[],
  { publishUnready = false }: StatusFacts,
): DesiredIngress[] {
  const ip = shownAddress(vip);
  if (ip === '' || states.length === 0 || isTakenByAnother(states)) return [];
  const ports = states.map(({ listener: { port, protocol }, fault }) => ({
    ...(fault === undefined ? {} : { error: `headgate.io/${fault}` }),
    port,
    protocol,
  }));
  // Traffic to a public address comes from outside, so that no node may shorten its way.
  const isTranslated = ip !== vip.address;
  const isVip = !isTranslated && states.every(({ listener }) => listener.sourceAddress !== 'load-balancer');
  const ipMode = isVip ? 'VIP' : 'Proxy';
  const isUnready = states.every(({ fault }) => fault !== undefined);
  return [{ ip, ipMode, ports, onlyIfPublished: isUnready && !publishUnready }];
}

/** Reasons of problems that concern a Service's addresses. */
const ADDRESS_FAULT = /Address|Pool|Claim|Provisioner/;

/** No decision on an address has been made, not even that there is none. */
function isUndecided(addresses: readonly string[], problems: readonly Problem[]): boolean {
  return addresses.length === 0 && !problems.some(({ reason }) => ADDRESS_FAULT.test(reason));
}

/** True with the problem's reason if the Service has addresses, but not those that it requests. */
function ipAllocated(
  vips: readonly Vip[],
  statesOf: (address: string) => readonly PortState[],
  problems: readonly Problem[],
): DesiredCondition {
  const about = problems.filter(({ reason, port }) => port === undefined && ADDRESS_FAULT.test(reason));
  const problem = about.find(({ reason }) => reason !== 'AddressPending') ?? about[0];
  const own = vips.filter(({ address }) => !isTakenByAnother(statesOf(address))).map(addressInWords);
  if (own.length > 0) {
    const { reason = 'Allocated', message } = problem ?? {};
    return condition(IP_ALLOCATED, 'True', reason, [own.join(', '), message].filter(Boolean).join('; '));
  }
  const [taken] = vips.flatMap(({ address }) => statesOf(address));
  const { reason = 'Pending', message = 'The address of the Service is being chosen' } =
    problem ?? (taken && { reason: taken.fault, message: taken.message }) ?? {};
  return condition(IP_ALLOCATED, 'False', reason, message);
}

/** Another Service has the address on each of these ports. */
function isTakenByAnother(states: readonly PortState[]): boolean {
  return states.length > 0 && states.every(({ fault }) => fault === 'AddressInUse');
}

function programmed(
  hasAddress: boolean,
  states: readonly PortState[],
  problems: readonly Problem[],
): DesiredCondition {
  const no = (reason: string, message: string) => condition(PROGRAMMED, 'False', reason, message);
  if (!hasAddress) {
    const reason = isUndecided([], problems) ? 'Pending' : 'AddressPending';
    return no(reason, 'The Service has no address to listen on');
  }
  const rejection = problems.find(({ reason }) => reason === 'ConfigurationRejected');
  if (rejection !== undefined) return no(rejection.reason, rejection.message);
  const faults = states.filter(({ fault }) => fault !== undefined);
  if (faults.length === 0) return served(states, problems);
  const first = faults.find(({ fault }) => fault !== 'Pending');
  if (first?.fault === undefined)
    return no('Pending', `${notServed(faults)}: the load balancer has not confirmed them yet`);
  return no(first.fault, `${notServed(faults)}: ${first.message}`);
}

const TOLD_WHILE_SERVED: readonly ProblemReason[] = [
  ...CERTIFICATE_FAULTS,
  'CertificateExpired',
  'ClosedByPolicy',
];

/**
 * The load balancer cannot make pods ready, and an owner may want none: the condition stays true, and its reason says
 * that there are none. The same holds for a certificate that is served although it has a problem, and for clients that policies
 * keep out.
 */
function served(states: readonly PortState[], problems: readonly Problem[]): DesiredCondition {
  const empty = states.filter(
    ({ listener }) => !listener.pool.members.some(({ state }) => state === 'ready'),
  );
  const told = problems.find(({ reason }) => TOLD_WHILE_SERVED.includes(reason));
  if (empty.length === 0 && told !== undefined)
    return condition(PROGRAMMED, 'True', told.reason, `All ports are served. ${told.message}`);
  if (empty.length === 0) return condition(PROGRAMMED, 'True', 'Programmed', 'All ports are served');
  const message = `All ports are served, but these refuse connections because no member is ready: ${portsOf(empty)}`;
  return condition(PROGRAMMED, 'True', 'NoMembers', message);
}

function notServed(faults: readonly PortState[]): string {
  return `Not served: ${portsOf(faults)}`;
}

function portsOf(states: readonly PortState[]): string {
  return [...new Set(states.map(({ listener: { port, protocol } }) => `${protocol} ${port}`))].join(', ');
}

/** KEP-1435 fixes the reason for a Service that mixes protocols of which one is not served. */
function portsError(states: readonly PortState[]): DesiredCondition[] {
  const faults = states.filter(({ fault }) => fault !== undefined && fault !== 'Pending');
  const [first] = faults;
  if (first?.fault === undefined) return [];
  const isMixed = new Set(states.map(({ listener }) => listener.protocol)).size > 1;
  const unserved = faults.find(({ fault }) => fault === 'ProtocolNotServed');
  const reason = isMixed && unserved !== undefined ? 'LoadBalancerMixedProtocolNotSupported' : first.fault;
  const { message } = unserved ?? first;
  return [condition(PORTS_ERROR, 'True', reason, `${notServed(faults)}: ${message}`)];
}
