// Adds to the statuses of Gateways, ListenerSets and Ingresses what only the dataplane knows: whether their listeners are
// served. Pure: from the status that translation gives and what the dataplane has confirmed.

import { type LoadBalancer, type Problem, shownAddress } from '../../model/load-balancer.ts';
import type {
  ListenerStatus,
  ObjectStatus,
  ProgrammedBy,
  StatusCondition,
} from '../../model/object-status.ts';

/** What is known about the load balancer of the object. */
export interface ServingFacts {
  readonly loadBalancer: LoadBalancer | undefined;
  /** The dataplane has confirmed that it serves the listener, at this address or at any. */
  serves(listener: string, address?: string): boolean;
  /** What this host has found, besides the mistakes in objects. */
  readonly problems: readonly Problem[];
  /** As of Publishing. */
  readonly isKept: boolean;
  readonly unready: boolean;
  /** What the status of the object shows now, by this agent. */
  readonly published: () => readonly string[];
}

export interface ServedStatus {
  readonly status: ObjectStatus;
  /** False while the dataplane has neither confirmed nor refused a listener: the status may change in a moment. */
  readonly isSettled: boolean;
}

const PENDING = 'Pending';

export function withProgrammed(status: ObjectStatus, facts: ServingFacts): ServedStatus {
  if ('isWithdrawn' in status) return { status, isSettled: true };
  switch (status.kind) {
    case 'Gateway': {
      const addresses = publishable(status, facts, () => true);
      const conditions = withCondition(status, facts);
      const listeners = status.listeners.map((each) => servedListener(each, facts));
      return settled({ ...status, addresses, conditions, listeners }, conditions, listeners);
    }
    case 'ListenerSet': {
      const conditions = withCondition(status, facts);
      const listeners = status.listeners.map((each) => servedListener(each, facts));
      return settled({ ...status, conditions, listeners }, conditions, listeners);
    }
    case 'Ingress': {
      const addresses = publishable(status, facts, (name) => status.programmedBy.includes(name));
      return { status: { ...status, addresses }, isSettled: addresses.length > 0 };
    }
    default:
      return { status, isSettled: true };
  }
}

/** The addresses at which a listener that `isMeant` names is served; one that is published stays. */
function publishable(
  { addresses }: { readonly addresses: readonly string[] },
  facts: ServingFacts,
  isMeant: (listener: string) => boolean,
): readonly string[] {
  const { isKept, unready, published, loadBalancer } = facts;
  if (!isKept) return published();
  if (unready) return addresses;
  const listeners = loadBalancer?.listeners.filter(({ name }) => isMeant(name)) ?? [];
  const isServed = (shown: string): boolean =>
    loadBalancer?.vips.some(
      (vip) =>
        shownAddress(vip) === shown &&
        listeners.some(
          ({ name, addresses: own }) => own.includes(vip.address) && facts.serves(name, vip.address),
        ),
    ) === true;
  return addresses.filter((address) => isServed(address) || published().includes(address));
}

function servedListener(listener: ListenerStatus, facts: ServingFacts): ListenerStatus {
  return { ...listener, conditions: withCondition(listener, facts) };
}

function withCondition(
  {
    conditions,
    programmedBy,
  }: { readonly conditions: readonly StatusCondition[]; readonly programmedBy: ProgrammedBy },
  facts: ServingFacts,
): readonly StatusCondition[] {
  if (conditions.some(({ type }) => type === 'Programmed')) return conditions;
  return [...conditions, { type: 'Programmed', ...programmed(programmedBy, facts) }];
}

function programmed(by: ProgrammedBy, facts: ServingFacts): Omit<StatusCondition, 'type'> {
  const { loadBalancer, problems, isKept } = facts;
  if (!isKept)
    return {
      status: 'False',
      reason: PENDING,
      message: 'Its address is being stored, or the host that has it does not serve it yet',
    };
  const unserved = by.filter((name) => !facts.serves(name));
  if (unserved.length === 0)
    return { status: 'True', reason: 'Programmed', message: 'The load balancer serves it' };
  const ports = loadBalancer?.listeners.filter(({ name }) => unserved.includes(name)) ?? [];
  const problem = problems.find(
    ({ port }) =>
      port === undefined || ports.some((each) => each.port === port.port && each.protocol === port.protocol),
  );
  if (problem !== undefined) return { status: 'False', reason: problem.reason, message: problem.message };
  const names = [...new Set(ports.map(({ protocol, port }) => `${protocol} ${port}`))].join(', ');
  const message = `The load balancer has not confirmed yet that it serves ${names || 'its listeners'}`;
  return { status: 'False', reason: PENDING, message };
}

function settled(
  status: ObjectStatus,
  conditions: readonly StatusCondition[],
  listeners: readonly ListenerStatus[],
): ServedStatus {
  const all = [...conditions, ...listeners.flatMap((each) => each.conditions)];
  return { status, isSettled: !all.some(({ type, reason }) => type === 'Programmed' && reason === PENDING) };
}
