// What BIRD reports of sessions, from the replies to `show protocols all`, `show bfd sessions` and `show route export`. Pure.

import type { Family } from '../../model/load-balancer.ts';

export interface ProtocolFacts {
  /** `hg_tor_a` */
  readonly name: string;
  /** `Established`, `Idle`, `Active`; '' if BIRD does not report it. */
  readonly state: string;
  /** Milliseconds since the epoch; 0 if it is not known. */
  readonly since: number;
  /** `Received: Bad peer AS`; '' for none. */
  readonly lastError: string;
  readonly isUp: boolean;
  /** Families whose channel is up: both ends have it. */
  readonly channels: readonly Family[];
  readonly imported: Readonly<Record<Family, number>>;
  readonly exported: Readonly<Record<Family, number>>;
  readonly preferred: Readonly<Record<Family, number>>;
  /** Families of which BIRD holds routes back, because there are more than the limit. */
  readonly limited: readonly Family[];
}

/** By the name of the protocol; those of BGP alone. */
export function sessionsIn(lines: readonly string[]): ReadonlyMap<string, ProtocolFacts> {
  const found = new Map<string, ProtocolFacts>();
  let block: string[] = [];
  const end = (): void => {
    const facts = factsOf(block);
    if (facts !== undefined) found.set(facts.name, facts);
  };
  for (const line of lines) {
    if (HEAD.test(line)) {
      end();
      block = [];
    }
    block.push(line);
  }
  end();
  return found;
}

/** BIRD has whole seconds, and rounds the same moment up or down as the clock is adjusted. */
const SAME_MS = 1_500;

/** Both are of one session that has not ended in between. `shiftMs`: by how much the clock of the host has been set meanwhile. */
export function isSameSession(
  before: Pick<ProtocolFacts, 'since'>,
  now: Pick<ProtocolFacts, 'since'>,
  shiftMs: number,
): boolean {
  return Math.abs(now.since - before.since - shiftMs) < SAME_MS;
}

const HEAD = /^(\S+)\s+(\S+)\s+(\S+)\s+(up|down|start|stop|feed|flush)\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?/;

function factsOf([head = '', ...rest]: readonly string[]): ProtocolFacts | undefined {
  const [, name = '', proto, , state, since] = HEAD.exec(head) ?? [];
  if (proto !== 'BGP') return undefined;
  const field = (key: string): string => {
    const line = rest.find((each) => each.trimStart().startsWith(`${key}:`)) ?? '';
    return line.slice(line.indexOf(':') + 1).trim();
  };
  const counts = { imported: { v4: 0, v6: 0 }, exported: { v4: 0, v6: 0 }, preferred: { v4: 0, v6: 0 } };
  const channels: Family[] = [];
  const limited: Family[] = [];
  let family: Family | undefined;
  for (const line of rest) {
    const [, channel] = /^\s*Channel (ipv4|ipv6)\b/.exec(line) ?? [];
    if (channel !== undefined) family = channel === 'ipv4' ? 'v4' : 'v6';
    if (family === undefined) continue;
    if (/^\s*State:\s+UP/.test(line)) channels.push(family);
    if (/^\s*Export limit:.*\[HIT\]/.test(line)) limited.push(family);
    const routes = /^\s*Routes:\s+(\d+) imported,(?: \d+ filtered,)? (\d+) exported, (\d+) preferred/.exec(
      line,
    );
    if (routes === null) continue;
    counts.imported[family] = Number(routes[1]);
    counts.exported[family] = Number(routes[2]);
    counts.preferred[family] = Number(routes[3]);
  }
  return {
    name,
    state: field('BGP state'),
    since: timeOf(since),
    lastError: field('Last error'),
    isUp: state === 'up',
    channels,
    ...counts,
    limited,
  };
}

/** The state of BFD, `Up` or `Down`, by the address of the other end. */
export function bfdIn(lines: readonly string[]): ReadonlyMap<string, string> {
  return new Map([...bfdSessionsIn(lines)].map(([address, { state }]) => [address, state]));
}

export interface BfdFacts {
  /** `Up`, `Down`, `Init` or `AdminDown`. */
  readonly state: string;
  /** Milliseconds since the epoch; 0 if it is not known. */
  readonly since: number;
}

/** By the address of the other end. */
export function bfdSessionsIn(lines: readonly string[]): ReadonlyMap<string, BfdFacts> {
  const found = new Map<string, BfdFacts>();
  for (const line of lines) {
    const [, address, state, since] =
      /^(\S*[.:]\S*)\s+\S+\s+(Up|Down|Init|AdminDown)\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?/.exec(line) ?? [];
    if (address !== undefined && state !== undefined)
      found.set(address.replace(/%.*$/, ''), { state, since: timeOf(since) });
  }
  return found;
}

/** Address → when its route has come or changed, milliseconds since the epoch; 0 if that is not known. */
export function routesIn(lines: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const line of lines) {
    const [, address, time] =
      /^(\S+)\/(?:32|128)\s+.*\[\S+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?/.exec(line) ?? [];
    if (address !== undefined) found.set(address, timeOf(time));
  }
  return found;
}

/** BIRD runs with TZ=UTC. */
function timeOf(text: string | undefined): number {
  return text === undefined ? 0 : Date.parse(`${text.replace(' ', 'T')}Z`) || 0;
}
