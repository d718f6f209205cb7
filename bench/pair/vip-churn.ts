// Adds and removes VIPs at random moments, on one host seconds before the other, and reads VRRP's counters. For comparison
// it can change ports instead, which reloads HAProxy as often and keepalived never.

import { randomInt } from 'node:crypto';
import { pause } from '../support/until.ts';
import { otherThan, PORT } from './contender.ts';
import type { HostName } from './network.ts';
import { HOSTS, type TwoAgents } from './two-agents.ts';

/** The least and the longest time from the change on the first host to that on the second. */
const LAG_MS = [500, 3_000] as const;
/** The least and the longest time until the next change. */
const BETWEEN_MS = [0, 500] as const;
const READINGS = 10;

export interface Churned {
  /** Advertisements that the standby has not received. */
  readonly missed: number;
  /** On both hosts. */
  readonly transitions: number;
}

/** Changes all of the `count` VIPs but the first. Restores all of them at the end. */
export async function churn(
  agents: TwoAgents,
  active: HostName,
  {
    what,
    count,
    changes,
  }: { readonly what: 'vips' | 'ports'; readonly count: number; readonly changes: number },
): Promise<Churned> {
  const alter = (host: HostName, index: number): void => {
    const service = agents.service(index);
    if (what === 'vips') agents.folder(host).remove(service);
    else agents.folder(host).write({ ...service, port: PORT + 1 });
  };
  const before = await counted(agents, active);
  const altered = new Set<number>();
  for (let change = 0; change < changes; change++) {
    const index = 1 + randomInt(count - 1);
    const isBack = altered.delete(index);
    if (!isBack) altered.add(index);
    const first = HOSTS[randomInt(2)] ?? 'a';
    for (const host of [first, otherThan(first)]) {
      if (isBack) agents.folder(host).write(agents.service(index));
      else alter(host, index);
      const [least, most] = host === first ? LAG_MS : BETWEEN_MS;
      await pause(randomInt(least, most));
    }
  }
  for (const index of altered) for (const host of HOSTS) agents.folder(host).write(agents.service(index));
  await agents.settled();
  // A single reading can count an advertisement as missed that is still on its way, so the lowest of several readings
  // counts.
  let missed = Number.POSITIVE_INFINITY;
  let transitions = 0;
  for (let reading = 0; reading < READINGS; reading++) {
    const after = await counted(agents, active);
    const sent = after.sentBefore - before.sentAfter;
    missed = Math.min(missed, Math.max(0, sent - (after.received - before.received)));
    transitions = after.transitions - before.transitions;
  }
  return { missed, transitions };
}

async function counted(agents: TwoAgents, active: HostName) {
  const { advertsSent: sentBefore } = await agents.vrrp(active);
  const { advertsReceived: received } = await agents.vrrp(otherThan(active));
  const { advertsSent: sentAfter } = await agents.vrrp(active);
  let transitions = 0;
  for (const host of HOSTS)
    for (const { transitions: own } of (await agents.status(host)).vrrp?.instances ?? []) transitions += own;
  return { sentBefore, received, sentAfter, transitions };
}
