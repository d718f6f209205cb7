// How objects become traffic: Services get their addresses, changed objects are translated, the difference to what
// the dataplanes run is planned, the plan is applied. The work of a round is proportional to what changed.

import type { AddressKeeper } from './address-keeper/address-keeper.ts';
import type { Change, Changes } from './changes.ts';
import type { Dataplane, Outcome, Plan } from './dataplane/dataplane.ts';
import type { DesiredState } from './model/desired-state.ts';
import type { ProgrammingLatency } from './report/programming-latency.ts';
import { type Translators, translateChanged } from './translate/translate.ts';
import type { Announcer } from './vips/announcer.ts';

export interface LoopOptions {
  readonly changes: Changes;
  /** Only the loop changes it. */
  readonly desired: DesiredState;
  readonly translators: Translators;
  readonly addresses: Pick<AddressKeeper, 'assign'>;
  readonly dataplane: Dataplane;
  /** undefined if this host announces nothing. */
  readonly announcer?: Announcer | undefined;
  readonly metrics: LoopMetrics;
  readonly programming: ProgrammingLatency;
  /** The loop has gone through these load balancers. */
  readonly report: (keys: ReadonlySet<string>) => void;
}

export interface LoopMetrics {
  planned(effort: Plan['effort']): void;
  /** From the event that reached the agent to the dataplane's acknowledgement. */
  acknowledged(seconds: number): void;
  roundStarted(): void;
  roundEnded(): void;
}

/** Runs until `changes` is closed. */
export async function loop({
  changes,
  desired,
  translators,
  addresses,
  dataplane,
  announcer,
  metrics,
  programming,
  report,
}: LoopOptions): Promise<void> {
  // One of three things can happen: objects changed, the dataplane asks to plan something again, we are stopping.
  // Only one of them happens at a time.
  for await (const { changed, replan } of changes.drain()) {
    metrics.roundStarted();
    const moved = addresses.assign(changed.keys()); // claims are written in the background
    const dirty = new Set([...changed.keys(), ...moved]);
    const keys = translateChanged(desired, translators, dirty); // changes the desired state only
    announcer?.follow(keys, desired.loadBalancers); // VIPs that came or went; files and reloads follow in the background
    const touched = new Set([...keys, ...replan]);
    const plans = dataplane.plan(touched); // pure
    const outcome = await dataplane.apply(plans); // sockets; files and reloads follow in the background
    count(plans, outcome, changed, metrics);
    programming.applied(plans, outcome, changed);
    report(touched);
    metrics.roundEnded();
  }
}

function count(
  plans: readonly Plan[],
  { acknowledged }: Outcome,
  changed: ReadonlyMap<string, Change>,
  metrics: LoopMetrics,
): void {
  const now = performance.now();
  for (const { key, effort } of plans) {
    metrics.planned(effort);
    const since = changed.get(key)?.since;
    if (since !== undefined && acknowledged.has(key)) metrics.acknowledged((now - since) / 1000);
  }
}
