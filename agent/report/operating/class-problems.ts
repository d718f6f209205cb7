// The problems of GatewayClasses, which have no load balancer: what their conditions say is not as asked for. Pure.

import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectStatus } from '../../model/object-status.ts';
import { type ObjectStatuses, statusName } from '../../model/object-statuses.ts';

export function classProblems(statuses: readonly ObjectStatus[]): readonly Problem[] {
  return statuses.flatMap((status) =>
    status.kind !== 'GatewayClass' || !('conditions' in status)
      ? []
      : status.conditions
          .filter((each) => each.status === 'False')
          .map(({ message }) => ({ object: statusName(status), reason: 'InvalidClass', message }) as const),
  );
}

/** The problems of all classes of this agent. */
export function allClassProblems(statuses: Pick<ObjectStatuses, 'names' | 'partsOf'>): readonly Problem[] {
  return [...statuses.names()]
    .filter((name) => name.startsWith('GatewayClass '))
    .flatMap((name) => classProblems(statuses.partsOf(name)));
}
