// Which requests are treated otherwise by one state than by another, in groups by what differs and by the rules. Pure.

import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';
import type { AskedRequest } from '../answers/access/asked-request.ts';
import type { Client } from '../answers/access/client.ts';
import { ANY_CLIENT } from '../answers/access/client.ts';
import { type AccessChange, accessChange } from './access-change.ts';
import { NO_MEMBER, type Treatment } from './treatment.ts';
import type { RequestPlace, Treatments } from './treatments.ts';

/** The first one that applies: to whom it is open, then what it gets, then how. */
export type DifferenceKind = 'opens' | 'closes' | 'answer' | 'backend' | 'handling';

export interface RequestGroup {
  readonly kind: DifferenceKind;
  /** The rules, or the load balancers without rules. */
  readonly ruleBefore: string;
  readonly ruleAfter: string;
  /** What happened, and what happens now, in words. */
  readonly before: string;
  readonly after: string;
  /** Requests; examples count once. */
  count: number;
  /** The first few, in words. */
  readonly examples: string[];
}

const MOST_EXAMPLES = 3;
/** Clients whose access was compared; others are compared again. */
const MOST_CLIENTS = 100_000;

interface Compared {
  readonly kind: DifferenceKind;
  readonly before: string;
  readonly after: string;
}

export class RequestDifferences {
  readonly #before: Treatments;
  readonly #after: Treatments;
  readonly #groups = new Map<string, RequestGroup>();
  readonly #pairs = new Map<Treatment, Map<Treatment, Compared | undefined>>();
  readonly #clients = new Map<string, Compared | undefined>();
  #asked = 0;

  /** Both read paths by the same settings. */
  constructor(before: Treatments, after: Treatments) {
    this.#before = before;
    this.#after = after;
  }

  /** `words`: for an example. */
  ask(
    request: AskedRequest,
    place: RequestPlace,
    words: () => string,
    client: Client = ANY_CLIENT,
    count = 1,
  ): void {
    this.#asked += count;
    const read = this.#before.read(request.path);
    const before = this.#before.treat(request, place, read);
    const after = this.#after.treat(request, place, read);
    const found = this.#compare(before, after, client);
    if (found === undefined) return;
    const key = JSON.stringify([found.kind, before.rule, after.rule, found.before, found.after]);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { ...found, ruleBefore: before.rule, ruleAfter: after.rule, count: 0, examples: [] };
      this.#groups.set(key, group);
    }
    group.count += count;
    if (group.examples.length >= MOST_EXAMPLES) return;
    const example = words();
    if (!group.examples.includes(example)) group.examples.push(example);
  }

  /** How many requests were asked. */
  get asked(): number {
    return this.#asked;
  }

  /** What opens first; of a kind the group with most requests. */
  groups(): readonly RequestGroup[] {
    const order: readonly DifferenceKind[] = ['opens', 'closes', 'answer', 'backend', 'handling'];
    return [...this.#groups.values()].sort(
      (a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.count - a.count,
    );
  }

  #compare(before: Treatment, after: Treatment, client: Client): Compared | undefined {
    let pairs = this.#pairs.get(before);
    if (pairs === undefined) {
      pairs = new Map();
      this.#pairs.set(before, pairs);
    }
    if (before.guards === after.guards || client === ANY_CLIENT) {
      if (!pairs.has(after)) pairs.set(after, compared(before, after, client));
      return pairs.get(after);
    }
    const key = JSON.stringify([client.from?.address, before.rule, after.rule, before.guards, after.guards]);
    if (this.#clients.has(key)) return this.#clients.get(key);
    if (this.#clients.size >= MOST_CLIENTS) this.#clients.clear();
    const found = compared(before, after, client);
    this.#clients.set(key, found);
    return found;
  }
}

/** undefined if nothing differs. The words are those for any client, so that requests of many clients are one group. */
function compared(before: Treatment, after: Treatment, client: Client): Compared | undefined {
  const { kind, isRefusedOtherwise } = accessKind(before, after, client);
  const { kind: _, isRefusedOtherwise: __, ...words } = accessKind(before, after);
  if (before.guards !== after.guards && kind !== 'same') return { kind, ...words };
  if (before.answer !== after.answer) {
    // A backend instead of an answer, or an answer instead of a backend; members that come and go open and close nothing.
    const isAboutRules = ![before.answer, after.answer].includes(NO_MEMBER);
    const isForwarded = before.answer === '' || after.answer === '';
    if (kind !== 'same' && isForwarded && isAboutRules) return { kind, ...words };
    return { kind: 'answer', before: wordsOf(before), after: wordsOf(after) };
  }
  if (isRefusedOtherwise) return { kind: 'answer', ...words };
  if (before.backends !== after.backends)
    return { kind: 'backend', before: before.backends, after: after.backends };
  if (before.handling === after.handling) return undefined;
  return { kind: 'handling', ...handlingWords(before.handling, after.handling) };
}

/** If only HAProxy can tell which rule takes the request, what any of them opens counts. */
function accessKind(before: Treatment, after: Treatment, client?: Client): AccessChange {
  const [old, now] = [before.each ?? [before], after.each ?? [after]];
  const pairs = old.length === now.length ? old.map((each, at) => [each, now[at]] as const) : [];
  const changes = pairs.map(([was, is]) => accessChange(was.way, is?.way, client));
  const own = accessChange(before.way, after.way, client);
  // Rules that come or go may take requests from those that stay.
  if (pairs.length === 0 && before.guards !== after.guards) return { ...own, kind: 'opens' };
  const [found] = (['opens', 'closes'] as const).flatMap((kind) =>
    changes.filter((each) => each.kind === kind),
  );
  return found ?? own;
}

const NOTHING = 'nothing';
const MAX_SHOWN = 200;

/** `the time limit 5000`, of what differs. */
function handlingWords(before: string, after: string): Pick<Compared, 'before' | 'after'> {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const differing = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(
    (name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]),
  );
  const words = (fields: Readonly<Record<string, unknown>>): string =>
    differing
      .map((name) => `${name} ${(JSON.stringify(fields[name]) ?? NOTHING).slice(0, MAX_SHOWN)}`)
      .join(', ') || NOTHING;
  return { before: words(old), after: words(now) };
}

function fieldsOf(handling: string): Readonly<Record<string, unknown>> {
  const fields: unknown = handling.startsWith('{') ? parseJson(handling) : undefined;
  return isMapping(fields) ? fields : handling === '' ? {} : { handling };
}

function wordsOf({ answer, backends }: Treatment): string {
  return answer === '' ? `goes to ${backends}` : answer;
}
