// Whether one more member of a pool may rest: at most a share of the ready ones does, and never the last that takes connections.
// Pure.

import type { Pool } from '../../model/load-balancer.ts';

/** What is known of a member besides its pool's value. */
export interface MemberKnown {
  readonly rests: boolean;
  /** Its health monitor has found it down. */
  readonly isDown: boolean;
}

/** `known`: by the member's name. */
export function mayRest(pool: Pool, name: string, known: (name: string) => MemberKnown): boolean {
  let [ready, resting, others] = [0, 0, 0];
  for (const member of pool.members) {
    if (member.state !== 'ready' || member.weight === 0) continue;
    ready++;
    const { rests, isDown } = known(member.name);
    if (member.name === name) continue;
    if (rests) resting++;
    else if (!isDown) others++;
  }
  return others > 0 && resting + 1 <= mostResting(pool, ready);
}

/** The members of a pool that rest and must not any more, because the others have become fewer: the first of `resting`. */
export function tooMany(
  pool: Pool,
  resting: readonly string[],
  known: (name: string) => MemberKnown,
): readonly string[] {
  const ready = pool.members.filter(({ state, weight }) => state === 'ready' && weight > 0);
  const names = new Set(ready.map(({ name }) => name));
  const own = resting.filter((name) => names.has(name));
  const others = ready.filter(({ name }) => !own.includes(name) && !known(name).isDown).length;
  const most = others === 0 ? 0 : mostResting(pool, ready.length);
  return own.slice(0, Math.max(0, own.length - most));
}

function mostResting({ ejection }: Pool, ready: number): number {
  return ejection === undefined ? ready : Math.max(1, Math.floor((ready * ejection.share) / 100));
}
