// Which requests are treated otherwise by one state than by another, in groups by what differs and by the rules. Pure.

import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';
import type { AskedRequest } from '../answers/access/asked-request.ts';
import type { Client } from '../answers/access/client.ts';
import { ANY_CLIENT } from '../answers/access/client.ts';
import { accessChange } from './access-change.ts';
import { NO_MEMBER, type Treatment, withBackends } from './treatment.ts';
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

const ORDER: readonly DifferenceKind[] = ['opens', 'closes', 'answer', 'backend', 'handling'];
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
    return [...this.#groups.values()].sort(
      (a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || b.count - a.count,
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

/** undefined if nothing differs. If only HAProxy can tell which rule takes the request, the most that differs of any counts. */
function compared(before: Treatment, after: Treatment, client: Client): Compared | undefined {
  const found = pairsOf(before, after).flatMap(([was, is]) => comparedOne(was, is, client) ?? []);
  return found.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))[0];
}

/** The words are those for any client, so that requests of many clients are one group. */
function comparedOne(before: Treatment, after: Treatment, client: Client): Compared | undefined {
  if (isAlike(before, after)) return undefined;
  const { kind, isClosed, isRefusedOtherwise } = accessChange(before.way, after.way, client);
  const ofAny = accessChange(before.way, after.way);
  const words = { before: ofAny.before, after: ofAny.after };
  if (isClosed) {
    const assumed = [before, after].map(({ way }) => way && withBackends(way));
    const { kind: own, ...others } = accessChange(assumed[0], assumed[1]);
    if (own !== 'same') return { kind: own, before: others.before, after: others.after };
    return isRefusedOtherwise ? { kind: 'answer', ...words } : undefined;
  }
  if (before.guards !== after.guards && kind !== 'same') return { kind, ...words };
  if (before.answer !== after.answer) {
    // A backend instead of an answer, or an answer instead of a backend; members that come and go open and close nothing.
    const isAboutRules = ![before.answer, after.answer].includes(NO_MEMBER);
    const isForwarded = before.answer === '' || after.answer === '';
    if (kind !== 'same' && isForwarded && isAboutRules) return { kind, ...words };
    return { kind: 'answer', before: wordsOf(before), after: wordsOf(after) };
  }
  if (before.backends !== after.backends)
    return { kind: 'backend', before: before.backends, after: after.backends };
  if (before.handling === after.handling) return undefined;
  return { kind: 'handling', ...handlingWords(before.handling, after.handling) };
}

function isAlike(a: Treatment, b: Treatment): boolean {
  return (
    a.guards === b.guards && a.answer === b.answer && a.backends === b.backends && a.handling === b.handling
  );
}

/** The treatments before and after that one request can have, if what each rule asks for is had or not independently of the others. */
function pairsOf(before: Treatment, after: Treatment): readonly (readonly [Treatment, Treatment])[] {
  const [old, now] = [before, after].map((each) => each.each ?? [{ words: '', treatment: each }]);
  const lacking = new Set<string>();
  return (now ?? []).flatMap(({ words, treatment }) => {
    const pairs: (readonly [Treatment, Treatment])[] = [];
    for (const was of old ?? []) {
      if (lacking.has(was.words)) continue;
      pairs.push([was.treatment, treatment]);
      if (was.words === words || was.words === '') break;
    }
    lacking.add(words);
    return pairs;
  });
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
      .map(
        (name) => `${name} ${(JSON.stringify(fields[name], withoutSecrets) ?? NOTHING).slice(0, MAX_SHOWN)}`,
      )
      .join(', ') || NOTHING;
  const [was, is] = [words(old), words(now)];
  return { before: was, after: was === is ? `${is}, which differs in what is not shown` : is };
}

const OF_CREDENTIALS = /auth|cookie|token|key|secret|session|password|credential/i;

/** A route may give its members a password in a header: plans are shown in merge requests. */
function withoutSecrets(_: string, value: unknown): unknown {
  if (!isMapping(value) || typeof value.name !== 'string' || typeof value.value !== 'string') return value;
  return OF_CREDENTIALS.test(value.name) ? { ...value, value: '…' } : value;
}

function fieldsOf(handling: string): Readonly<Record<string, unknown>> {
  const fields: unknown = handling.startsWith('{') ? parseJson(handling) : undefined;
  return isMapping(fields) ? fields : handling === '' ? {} : { handling };
}

function wordsOf({ answer, backends }: Treatment): string {
  return answer === '' ? `goes to ${backends}` : answer;
}
