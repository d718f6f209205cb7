// What a change does to whom something is open: it opens, it closes, or it asks for something else. What cannot be told counts as
// opening, because it is what a reader must look at first. Pure.

import { type AddressSet, common, others, union } from '../../base/address-set.ts';
import type { Family } from '../../model/load-balancer.ts';
import { type Access, accessOf } from '../answers/access/access.ts';
import { CLOSED, type Way } from '../answers/access/check.ts';
import { ANY_CLIENT, type Client } from '../answers/access/client.ts';
import { admittedBy } from '../answers/access/ranges.ts';
import { rangesOfRoute } from '../answers/access/request-checks.ts';
import { guardsOf, inWords, opens } from './guards.ts';

export interface AccessChange {
  readonly kind: 'opens' | 'closes' | 'same';
  /** `Open to everybody`. */
  readonly before: string;
  readonly after: string;
  /** It was closed and stays so: no client sees what else differs. */
  readonly isClosed: boolean;
  /** Some clients get another answer of those that it is closed to. */
  readonly isRefusedOtherwise: boolean;
}

type OwnWay = Omit<Way, 'client'> | undefined;

const NOTHING: Access = {
  verdict: 'refused',
  answer: CLOSED,
  sentence: 'Closed to everybody (nothing listens)',
  checks: [],
};
const RANKS: Readonly<Record<Access['verdict'], number>> = {
  refused: 0,
  redirected: 1,
  answered: 1,
  asks: 2,
  open: 3,
};

export function accessChange(before: OwnWay, after: OwnWay, client: Client = ANY_CLIENT): AccessChange {
  const [old, now] = [accessFor(before, client), accessFor(after, client)];
  const isSame = old.sentence === now.sentence;
  const words = { before: old.sentence, after: now.sentence, isClosed: false, isRefusedOtherwise: false };
  const rank = RANKS[now.verdict] - RANKS[old.verdict] || RANKS[endOf(now)] - RANKS[endOf(old)];
  if (rank !== 0) return { kind: rank > 0 ? 'opens' : 'closes', ...words };
  if (before === undefined || after === undefined)
    return {
      kind: 'same',
      ...words,
      isRefusedOtherwise: before !== after && answersOf(old) !== answersOf(now),
    };
  const [was, is] = [guardsOf(before), guardsOf(after)];
  const own = {
    before: withGuards(old.sentence, isSame ? inWords(was, is) : []),
    after: withGuards(now.sentence, isSame ? inWords(is, was) : []),
  };
  if (old.verdict === 'refused') {
    const isRefusedOtherwise = answersOf(old) !== answersOf(now) || (isSame && own.before !== own.after);
    return { kind: 'same', ...own, isClosed: true, isRefusedOtherwise };
  }
  // A client whose address is known was compared by it.
  const isAny = client.from === undefined;
  const isOpening = opens(was, is) || (isAny && letsMoreIn(before, after));
  const isClosing = opens(is, was) || (isAny && letsMoreIn(after, before));
  return { ...words, kind: isOpening ? 'opens' : isClosing ? 'closes' : 'same', ...own };
}

/** What clients get by what they lack of what is asked for, up to the check that ends all requests. */
function answersOf({ checks }: Access): string {
  const reached = checks.filter(({ result }) => result === 'asked' || result === 'refused');
  return reached.map(({ answer }) => answer).join();
}

/** What becomes of a client that has all that is asked for. */
function endOf({ checks }: Access): Access['verdict'] {
  const results = checks.map(({ result }) => result);
  return (['refused', 'redirected', 'answered'] as const).find((each) => results.includes(each)) ?? 'open';
}

function accessFor(way: OwnWay, client: Client): Access {
  return way === undefined ? NOTHING : accessOf({ ...way, client });
}

const MOST_SHOWN = 5;

/** A sentence that does not say what differs gets it behind it. */
function withGuards(sentence: string, guards: readonly string[]): string {
  if (guards.length === 0) return sentence;
  const more = guards.length > MOST_SHOWN ? ' and others' : '';
  return `${sentence} (${guards.slice(0, MOST_SHOWN).join(', ')}${more})`;
}

/** `now` lets an address in that `old` does not. */
function letsMoreIn(old: Omit<Way, 'client'>, now: Omit<Way, 'client'>): boolean {
  const { family } = now.listener;
  return common(admitted(now, family), others(admitted(old, family), family)).length > 0;
}

/** With the PROXY protocol, or behind trusted proxies, the ranges of a route are those of other addresses than the listener's. */
function admitted({ listener, request }: Omit<Way, 'client'>, family: Family): AddressSet {
  const ofListener = admittedBy({ allowed: listener.allowedCidrs, denied: [] }, family);
  const ofRoute = rangesOfRoute(request);
  const own = ofRoute === undefined ? ofListener : common(ofListener, admittedBy(ofRoute, family));
  const pools = request?.pools.filter(({ weight }) => weight > 0) ?? [];
  if (pools.every(({ clients }) => clients === undefined)) return own;
  return common(
    own,
    union(pools.flatMap(({ clients: allowed }) => admittedBy({ allowed, denied: [] }, family))),
  );
}
