// How objects become traffic: Services get addresses, changed objects are translated, the difference to what the
// dataplanes run is planned, and the plan is applied. The work of a round is proportional to what changed.

import type { Change } from './changes.ts';
import type { Forwarding, Outcome, Plan } from './dataplane/forwarder.ts';
import type { Flow } from './flow.ts';
import type { ProgrammingLatency } from './report/programming-latency.ts';
import { translateChanged } from './translate/translate.ts';
import type { Announcer } from './vips/announcer.ts';

export interface LoopOptions {
  readonly flow: Flow;
  readonly dataplane: Forwarding;
  /** Announces VIPs, and lets pods open connections from them; undefined if this host does neither. */
  readonly announcer: Follower | undefined;
  readonly metrics: LoopMetrics;
  readonly programming: Pick<ProgrammingLatency, 'applied'>;
  /** Called after each round with the load balancers that it planned. */
  readonly report: (keys: ReadonlySet<string>) => void;
}

/** Follows the load balancers in the background. */
export type Follower = Pick<Announcer, 'follow'>;

export interface LoopMetrics {
  roundStarted(): void;
  roundEnded(): void;
  planned(effort: Plan['effort']): void;
  /** The time from the arrival of an event at the agent to the dataplane's acknowledgement. */
  acknowledged(seconds: number): void;
}

/** Runs until `changes` is closed. */
export async function loop(options: LoopOptions): Promise<void> {
  const { flow, dataplane, announcer, metrics } = options;
  const { changes, desired, translators, addresses } = flow;
  // One of three things can happen: objects changed, the dataplane asks to plan something again, the agent stops.
  // Only one of them happens at a time.
  for await (const { changed, replan } of changes.drain()) {
    metrics.roundStarted();
    const reassigned = addresses.assign(changed.keys()); // claims are written in the background
    const dirty = new Set([...changed.keys(), ...reassigned]);
    const translated = translateChanged(desired, translators, dirty); // changes the desired state only
    announcer?.follow(translated, desired.loadBalancers); // files and reloads follow in the background
    const keys = new Set([...translated, ...replan]);
    dataplane.follow(keys); // a listener that changes its engine stays with the former until the other serves it
    const plans = dataplane.plan(keys); // changes nothing
    const outcome = await dataplane.apply(plans); // runtime commands; files and reloads follow in the background
    count(plans, outcome, changed, metrics);
    options.programming.applied(plans, outcome, changed);
    options.report(keys);
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
