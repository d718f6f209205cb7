// Adds to the statuses of Gateways, ListenerSets and Ingresses what only the dataplane knows: whether their listeners are
// served. Pure: from the status that translation gives and what the dataplane has confirmed.

import type { LoadBalancer, Problem } from '../../model/load-balancer.ts';
import type {
  ListenerStatus,
  ObjectStatus,
  ProgrammedBy,
  StatusCondition,
} from '../../model/object-status.ts';

/** What is known about the load balancer of the object. */
export interface ServingFacts {
  readonly loadBalancer: LoadBalancer | undefined;
  /** The dataplane has confirmed that it serves the listener. */
  serves(listener: string): boolean;
  /** What this host has found, besides the mistakes in objects. */
  readonly problems: readonly Problem[];
  /** The claims on its addresses are stored: they may be published. */
  readonly isKept: boolean;
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
      const addresses = facts.isKept ? status.addresses : [];
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
      const isServed = facts.isKept && status.programmedBy.some((name) => facts.serves(name));
      return isServed
        ? { status, isSettled: true }
        : { status: { ...status, addresses: [] }, isSettled: false };
    }
    default:
      return { status, isSettled: true };
  }
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
    return { status: 'False', reason: PENDING, message: 'The claim on its address is being stored' };
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
