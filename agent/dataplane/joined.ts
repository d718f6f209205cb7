// What several dataplanes that are used as one give together.

import type { Forwarder, Plan } from './forwarder.ts';
import type { Liveness, LivenessOptions, Meter } from './meter.ts';

/** The plans for one load balancer, in the order of the dataplanes; undefined if a dataplane has none now. */
export interface JoinedPlan extends Plan {
  readonly parts: readonly (Plan | undefined)[];
}

const EFFORTS = ['none', 'runtime', 'reload'] as const;

/** The effort is the largest of the parts. A key for which no dataplane has a plan is left out. */
export function joinedPlans(
  dataplanes: readonly Pick<Forwarder, 'plan'>[],
  keys: Iterable<string>,
): readonly JoinedPlan[] {
  const planned = [...new Set(keys)];
  const plans = dataplanes.map(
    (dataplane) => new Map(dataplane.plan(planned).map((plan) => [plan.key, plan])),
  );
  return planned.flatMap((key) => {
    const parts = plans.map((each) => each.get(key));
    const effort = EFFORTS.findLast((each) => parts.some((part) => part?.effort === each));
    return effort === undefined ? [] : [{ key, effort, parts }];
  });
}

/** The first failure of each kind. */
export async function joinedLiveness(
  dataplanes: readonly Pick<Meter, 'liveness'>[],
  options: LivenessOptions,
): Promise<Liveness> {
  const all = await Promise.all(dataplanes.map((dataplane) => dataplane.liveness(options)));
  const first = (key: keyof Liveness): string => all.map((each) => each[key]).find(Boolean) ?? '';
  return { control: first('control'), listeners: first('listeners') };
}
