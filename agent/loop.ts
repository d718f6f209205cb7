// How objects become traffic: Services get their addresses, changed objects are translated, the difference to what
// HAProxy runs is planned, the plan is applied. The work of a round is proportional to what changed.

import type { AddressKeeper } from './address-keeper/address-keeper.ts';
import type { Change, Changes } from './changes.ts';
import type { Outcome } from './haproxy/apply.ts';
import type { HaproxyDataplane } from './haproxy/dataplane.ts';
import type { Plan } from './haproxy/plan.ts';
import type { ProgrammingLatency } from './report/programming-latency.ts';
import {
  type ClusterView,
  type Model,
  type TranslateSettings,
  translateChanged,
} from './translate/translate.ts';
import type { KeepalivedDataplane } from './vips/keepalived/dataplane.ts';

export interface LoopOptions {
  readonly changes: Changes;
  readonly cluster: ClusterView;
  /** The desired state; only the loop changes it. */
  readonly model: Model;
  readonly settings: () => TranslateSettings;
  readonly addresses: Pick<AddressKeeper, 'assign' | 'ofPools'>;
  readonly haproxy: HaproxyDataplane;
  /** undefined where this host has no VRRP. */
  readonly keepalived?: KeepalivedDataplane | undefined;
  readonly metrics: LoopMetrics;
  readonly programming: ProgrammingLatency;
  /** Tells people what became of these load balancers. */
  readonly report: (keys: Iterable<string>) => void;
}

export interface LoopMetrics {
  planned(kind: 'none' | 'runtime' | 'reload'): void;
  /** From the event that reached the agent to HAProxy's acknowledgement. */
  acknowledged(seconds: number): void;
  /** A round begins. */
  turns(): void;
  /** The loop has come round: it lives. */
  turned(): void;
}

/** Runs until `changes` is closed. */
export async function loop({
  changes,
  cluster,
  model,
  settings,
  addresses,
  haproxy,
  keepalived,
  metrics,
  programming,
  report,
}: LoopOptions): Promise<void> {
  // One of three things can happen: objects changed, the dataplane asks to plan something again, we are stopping.
  // Only one of them happens at a time.
  for await (const { changed, replan } of changes.drain()) {
    metrics.turns();
    const moved = addresses.assign(changed.keys()); // claims are written by themselves
    const dirty = new Set([...changed.keys(), ...moved]);
    const keys = translateChanged(cluster, model, dirty, settings(), addresses.ofPools); // pure
    keepalived?.follow(keys, model.loadBalancers); // VIPs that came or went; files and reloads follow by themselves
    const touched = new Set([...keys, ...replan]);
    const plans = haproxy.plan(touched); // pure
    const outcome = await haproxy.apply(plans); // socket; files and reloads follow by themselves
    count(plans, outcome, changed, metrics);
    programming.applied(plans, outcome, changed);
    report(touched);
    metrics.turned();
  }
}

function count(
  plans: readonly Plan[],
  outcome: Outcome | undefined,
  changed: ReadonlyMap<string, Change>,
  metrics: LoopMetrics,
): void {
  const now = performance.now();
  for (const plan of plans) {
    metrics.planned(kindOf(plan));
    const since = changed.get(plan.key)?.since;
    const isAcknowledged = outcome !== undefined && outcome.lost === undefined && plan.commands.length > 0;
    if (since !== undefined && isAcknowledged) metrics.acknowledged((now - since) / 1000);
  }
}

function kindOf({ reload, commands }: Plan): 'none' | 'runtime' | 'reload' {
  if (reload !== undefined) return 'reload';
  return commands.length > 0 ? 'runtime' : 'none';
}
