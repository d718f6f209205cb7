// The rows of one hostname's routes: which path leads to which target. A path whose first route has no condition leads to its
// target, another one to a list of targets with conditions, which Lua tries in their order (templates/haproxy/routes.lua). A
// list ends with what the next shorter prefix leads to, so that the rows are as many as the routes. Behind each target stands
// the rule. Pure.

import type { Anchoring } from '../../base/expression/automaton.ts';
import { expressionOf } from '../../base/expression/expression.ts';
import type { HostRoutes, RouteEntry } from '../../model/routes.ts';
import { isStrict } from '../../model/strict-hosts.ts';
import { conditionsText, digest, expressionId, isConditional, namedTarget, oneSpelling } from './encode.ts';
import type { MapRow } from './maps.ts';
import { replacesPrefix, ruleTarget, type Target } from './rule-rows.ts';
import { servable } from './unservable.ts';

/** Characters of a list in one row. HAProxy's buffer has 16 KB for a command, and for a line of a file. */
const MAX_LIST = 8_000;

/** In the order in which they must be added: each row after those that it leads to. */
export function pathRows({ entries }: HostRoutes, table: string): readonly MapRow[] {
  const lists = new Lists(table);
  const served = entries.map(servable);
  const groups = groupsOf(served);
  const { exact, prefix, regex } = groups;
  const expressions = new ExpressionLists(lists, served, groups);
  const rows: MapRow[] = [];
  /** The prefixes that the path of the turn has. */
  const wider: Prefix[] = [];
  const paths = new Set([...(regex.length === 0 ? [] : ['']), ...prefix.keys(), ...exact.keys()]);
  // With a slash at the end, all paths below a prefix follow it.
  for (const path of [...paths].map((each) => `${each}/`).sort()) {
    while (wider.length > 0 && !path.startsWith(wider.at(-1)?.path ?? '')) wider.pop();
    const key = path.slice(0, -1);
    const above = wider.at(-1);
    const own = prefix.get(key) ?? [];
    if (own.length > 0 || key === '') {
      const first = expressions.before(own[0]);
      // Expressions that come behind the prefix, and before the wider one, stand in what that one leads to.
      const then = first.count === above?.first.count ? above.lead : above?.whole;
      const lead = lists.leadTo(own, then ?? expressions.behind(first));
      const whole = first.list === '' || lead === '' ? first.list || lead : lists.of([first.list, lead]);
      if (whole !== '') rows.push({ map: 'prefix', key: `${table}${key}/`, value: whole });
      wider.push({ path, first, lead, whole });
    }
    const exactly = exact.get(key);
    if (exactly !== undefined)
      rows.push({
        map: 'exact',
        key: `${table}${key}`,
        value: lists.leadTo(exactly, wider.at(-1)?.whole ?? ''),
      });
  }
  const strict: readonly MapRow[] = isStrict(served) ? [{ map: 'strict', key: table, value: '1' }] : [];
  return [...strict, ...lists.rows(), ...rows];
}

interface Prefix {
  readonly path: string;
  /** The expressions before it. */
  readonly first: ExpressionList;
  /** What it leads to behind them. */
  readonly lead: string;
  /** Both. */
  readonly whole: string;
}

interface Groups {
  /** By path. */
  readonly exact: ReadonlyMap<string, readonly RouteEntry[]>;
  readonly prefix: ReadonlyMap<string, readonly RouteEntry[]>;
  readonly regex: readonly RouteEntry[];
}

function groupsOf(entries: readonly RouteEntry[]): Groups {
  const exact = new Map<string, RouteEntry[]>();
  const prefix = new Map<string, RouteEntry[]>();
  const regex: RouteEntry[] = [];
  for (const entry of entries) {
    const { kind, value } = entry.match.path;
    if (kind === 'regex') regex.push(entry);
    else append(kind === 'exact' ? exact : prefix, oneSpelling(value), entry);
  }
  return { exact, prefix, regex };
}

function append(map: Map<string, RouteEntry[]>, key: string, entry: RouteEntry): void {
  const entries = map.get(key);
  if (entries === undefined) map.set(key, [entry]);
  else entries.push(entry);
}

interface ExpressionList {
  /** '' for none. */
  readonly list: string;
  readonly count: number;
}

/** The expressions that come before each prefix: any path can match them. Prefixes with the same ones have the same list. */
class ExpressionLists {
  readonly #lists: Lists;
  readonly #regex: readonly RouteEntry[];
  /** How many expressions come before each entry, in the order of precedence. */
  readonly #before = new Map<RouteEntry, number>();
  /** How many come before some prefix, ascending; the last one: all. */
  readonly #counts: readonly number[];
  readonly #byCount = new Map<number, string>([[0, '']]);

  constructor(lists: Lists, entries: readonly RouteEntry[], { regex, prefix }: Groups) {
    this.#lists = lists;
    this.#regex = regex;
    let count = 0;
    for (const entry of entries) {
      this.#before.set(entry, count);
      if (entry.match.path.kind === 'regex') count++;
    }
    const counts = Array.from(prefix.values(), ([first]) => this.#countBefore(first));
    this.#counts = [...new Set([...counts, regex.length])].sort((a, b) => a - b);
  }

  /** `entry`: the first of the prefix; undefined: all expressions. */
  before(entry: RouteEntry | undefined): ExpressionList {
    const count = this.#countBefore(entry);
    return { list: this.#listOf(count), count };
  }

  /** All that follow, for the widest prefix. */
  behind({ count }: ExpressionList): string {
    return this.#lists.leadTo(this.#regex.slice(count), '');
  }

  #countBefore(entry: RouteEntry | undefined): number {
    return entry === undefined ? this.#regex.length : (this.#before.get(entry) ?? 0);
  }

  /** The list of the next smaller count, then the others. */
  #listOf(count: number): string {
    const known = this.#byCount.get(count);
    if (known !== undefined) return known;
    const fewer = this.#counts.findLast((each) => each < count) ?? 0;
    const first = this.#listOf(fewer);
    const others = this.#lists.leadTo(this.#regex.slice(fewer, count), '');
    const list = first === '' ? others : this.#lists.of([first, others]);
    this.#byCount.set(count, list);
    return list;
  }
}

/** The lists of one table, with the expressions and targets that they need, each made once. */
class Lists {
  readonly #table: string;
  readonly #targets: Targets;
  readonly #expressions = new Map<string, MapRow>();
  readonly #lists = new Map<string, MapRow>();

  constructor(table: string) {
    this.#table = table;
    this.#targets = new Targets(table);
  }

  rows(): readonly MapRow[] {
    return [...this.#targets.rows, ...this.#expressions.values(), ...this.#lists.values()];
  }

  /** A target, or the id of a list that ends with `then`; '' for nothing. Entries behind one without a condition do not count. */
  leadTo(entries: readonly RouteEntry[], then: string): string {
    const last = entries.findIndex(({ match }) => !isConditional(match));
    const used = last === -1 ? entries : entries.slice(0, last + 1);
    const candidates = used.map((entry) =>
      [this.#targets.of(entry), conditionsText(entry.match, this.#expressionId)].filter(Boolean).join('&'),
    );
    return this.of(last === -1 && then !== '' ? [...candidates, then] : candidates);
  }

  /** The id of a list; a long list ends with the id of the next one. One candidate without a condition needs none. */
  of(candidates: readonly string[]): string {
    const [only = '', ...others] = candidates;
    if (others.length === 0 && !only.includes('&')) return only;
    let text = '';
    for (const candidate of [...candidates].reverse()) {
      if (text.length + candidate.length > MAX_LIST) text = this.#put(text);
      text = text === '' ? candidate : `${candidate}|${text}`;
    }
    return this.#put(text);
  }

  #put(value: string): string {
    const key = `?${digest(`${this.#table} ${value}`, 24)}`;
    this.#lists.set(key, { map: 'lists', key, value });
    return key;
  }

  readonly #expressionId = (pattern: string, anchoring: Anchoring): string => {
    const key = expressionId(pattern, anchoring, this.#table);
    if (!this.#expressions.has(key)) {
      const expression = expressionOf(pattern, anchoring);
      if (typeof expression !== 'string')
        this.#expressions.set(key, { map: 'expressions', key, value: expression.text });
    }
    return key;
  };
}

/** The targets of the rules of one table, each made once. */
class Targets {
  readonly rows: MapRow[] = [];
  readonly #table: string;
  /** Rules, and the expressions that they have. */
  readonly #ids = new Set<string>();
  /** A rule that replaces the prefix has a target for each prefix. */
  readonly #targets = new Map<RouteEntry['rule'], Map<string, string>>();

  constructor(table: string) {
    this.#table = table;
  }

  of({ match: { path }, rule }: RouteEntry): string {
    const prefix = path.kind === 'prefix' && replacesPrefix(rule) ? path.value : '';
    const targets = this.#targets.get(rule) ?? new Map<string, string>();
    this.#targets.set(rule, targets);
    const known = targets.get(prefix);
    if (known !== undefined) return known;
    const target = ruleTarget(rule, this.#table, prefix);
    this.#keep(target);
    const named = namedTarget(target.target, rule.name);
    targets.set(prefix, named);
    return named;
  }

  /** Two rules with equal contents have the same rows. */
  #keep({ target, rows }: Target): void {
    if (this.#ids.has(target)) return;
    this.#ids.add(target);
    for (const row of rows) {
      if (row.map === 'expressions') {
        if (this.#ids.has(row.key)) continue;
        this.#ids.add(row.key);
      }
      this.rows.push(row);
    }
  }
}
