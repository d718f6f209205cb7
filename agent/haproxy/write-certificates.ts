// Writes certificates to disk before HAProxy gets them, because HAProxy would lose them at its next start.

import { systemClock } from '../base/clock.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { HaproxyOptions } from './options.ts';
import type { HaproxyParts } from './parts.ts';
import type { HaproxyPlan } from './plan.ts';
import { isOfTls } from './socket/commands.ts';

/** From a failed write to the next attempt. */
const WRITE_RETRY_MS = 1_000;

/** Writes the certificates and lists that change; if that fails, the plans are without them. */
export async function withCertificates(
  plans: readonly HaproxyPlan[],
  { certificates, maker, persister }: Pick<HaproxyParts, 'certificates' | 'maker' | 'persister'>,
  { desired, replan }: Pick<HaproxyOptions, 'desired' | 'replan'>,
): Promise<readonly HaproxyPlan[]> {
  const keys = plans.filter(({ commands }) => commands.some(isOfTls)).map(({ key }) => key);
  if (keys.length === 0) return plans;
  const changing = new Map<string, LoadBalancer>();
  for (const key of keys) {
    const loadBalancer = desired.get(key);
    if (loadBalancer !== undefined) changing.set(key, loadBalancer);
  }
  try {
    await certificates.write(maker.effective(changing).values());
    return plans;
  } catch (error) {
    persister.failed(error);
    systemClock.after(WRITE_RETRY_MS, () => replan(keys));
    return plans.map((plan) => ({ ...plan, commands: plan.commands.filter((command) => !isOfTls(command)) }));
  }
}
