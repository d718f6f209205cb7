// Applies plans to the active worker and, for as long as it may take connections, to the worker that it replaced.
// Hides a reload under way: the worker that is being replaced refuses all commands, which is no fault.

import { HeadgateError } from '../../base/errors.ts';
import { applyPlans, type WorkerOutcome } from '../apply.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { HaproxyPlan } from '../plan.ts';
import type { ActiveWorker } from './active-worker.ts';

export interface AppliedOutcome extends WorkerOutcome {
  /** A reload is under way: refusals are no fault, because its worker gets what is missing. */
  readonly isReloading: boolean;
}

/** Plans load balancers for one worker. */
type PlanFor = (worker: BootedWorker, keys: readonly string[]) => readonly HaproxyPlan[];

/** The worker was replaced before it replied, so its state is unknown; the new one gets the desired state. */
const REPLACED: WorkerOutcome = {
  acknowledged: [],
  refused: [],
  repaired: [],
  refusedCertificates: [],
  refusedRows: [],
  beyondRepair: [],
  lost: new HeadgateError('RUNTIME_CLOSED', 'The worker was replaced before it replied', { retry: 'now' }),
};

/** undefined while there is no worker. Never throws. */
export async function applyToWorkers(
  active: ActiveWorker,
  plans: readonly HaproxyPlan[],
  planFor: PlanFor,
  isReloading: () => boolean,
): Promise<AppliedOutcome | undefined> {
  const { worker, draining } = active;
  if (worker === undefined) return undefined;
  const keys = plans.map(({ key }) => key);
  if (isReloading()) active.changedDuringReload(keys);
  if (draining !== undefined) void applyToDraining(active, draining, keys, planFor);
  const applying = applyPlans(worker, plans, (again) => planFor(worker, again));
  const outcome = await active.unlessReplaced(applying);
  if (outcome === undefined) {
    // Servers that the old worker has removed must still be drained there.
    void applying.then(({ acknowledged }) => active.acknowledged(worker, acknowledged));
    return { ...REPLACED, isReloading: isReloading() };
  }
  active.acknowledged(worker, outcome.acknowledged);
  if (isReloading()) active.planAfterReload(outcome.refused.map(({ key }) => key));
  return { ...outcome, isReloading: isReloading() };
}

/** A draining worker cannot be reloaded, so its refusals are ignored. */
async function applyToDraining(
  active: ActiveWorker,
  draining: BootedWorker,
  keys: readonly string[],
  planFor: PlanFor,
): Promise<void> {
  const { acknowledged } = await applyPlans(draining, planFor(draining, keys), (again) =>
    planFor(draining, again),
  );
  active.acknowledged(draining, acknowledged);
}
