// VIPs that come and go on one host seconds before the other, at random moments, and what VRRP has counted meanwhile. For
// comparison, ports that change in the same way: as many reloads of HAProxy, and none of keepalived.

import { randomInt } from 'node:crypto';
import { pause } from '../support/until.ts';
import { otherThan, PORT } from './contender.ts';
import type { HostName } from './network.ts';
import { HOSTS, type TwoAgents } from './two-agents.ts';

/** Milliseconds by which one host is before the other, and until the next change. */
const AHEAD = [500, 3_000] as const;
const BETWEEN = [0, 500] as const;
/** How often what was counted is looked at. */
const LOOKS = 10;

export interface Churned {
  /** Advertisements that the standby has not heard. */
  readonly missed: number;
  /** On either host. */
  readonly transitions: number;
}

/** Of `count` VIPs the first one stays. All are as they were when it ends. */
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
      const [least, most] = host === first ? AHEAD : BETWEEN;
      await pause(randomInt(least, most));
    }
  }
  for (const index of altered) for (const host of HOSTS) agents.folder(host).write(agents.service(index));
  await agents.settled();
  // What was sent between the two questions to one host may or may not have been counted by the other, and on a busy
  // machine the other may count it a little later; what was missed stays missed.
  let missed = Number.POSITIVE_INFINITY;
  let transitions = 0;
  for (let look = 0; look < LOOKS; look++) {
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
