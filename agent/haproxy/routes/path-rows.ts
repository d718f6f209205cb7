// The rows of one hostname's routes: which path leads to which target. A path whose first matching route has no condition
// leads to its target, another one to a list of candidates, which Lua tries in their order (templates/haproxy/routes.lua). A
// list has all routes that can match its path, also those of shorter prefixes. Behind each target stands the rule. Pure.

import type { HostRoutes, RouteEntry, RouteMatch } from '../../model/routes.ts';
import { conditionsText, digest, namedTarget, pathText } from './encode.ts';
import type { Row } from './maps.ts';
import { replacesPrefix, ruleTarget, type Target } from './rule-rows.ts';
import { faultOf } from './unservable.ts';

/** Characters of a list in one row. HAProxy's buffer has 16 KB for a command, and for a line of a file. */
const MAX_LIST = 8_000;

/** In the order in which they must be added: each row after those that it leads to. */
export function pathRows({ entries }: HostRoutes, table: string): readonly Row[] {
  const targets = new Targets(table);
  const lists = new Map<string, Row>();
  const paths = new Paths(entries.filter((entry) => faultOf(entry) === undefined));
  const entryRows: Row[] = [];
  const add = (map: 'exact' | 'prefix', key: string, some: readonly RouteEntry[]): void => {
    const value = leadTo(some, targets, lists, table);
    if (value !== '') entryRows.push({ map, key, value });
  };
  for (const path of paths.exact.keys())
    add('exact', `${table}${pathText(path)}`, paths.matching(path, paths.exact.get(path)));
  for (const path of paths.prefixes()) add('prefix', `${table}${pathText(path)}/`, paths.matching(path));
  return [...targets.rows, ...lists.values(), ...entryRows];
}

type Place = readonly [order: number, entry: RouteEntry];

/** Finds the routes that can match a path, without a look at all others. */
class Paths {
  readonly exact = new Map<string, Place[]>();
  readonly #prefix = new Map<string, Place[]>();
  readonly #regex: Place[] = [];

  constructor(entries: readonly RouteEntry[]) {
    for (const [order, entry] of entries.entries()) {
      const { kind, value } = entry.match.path;
      if (kind === 'regex') this.#regex.push([order, entry]);
      else append(kind === 'exact' ? this.exact : this.#prefix, value, [order, entry]);
    }
  }

  /** A regular expression can match any path, so that all paths lead to a list. */
  prefixes(): Iterable<string> {
    return this.#regex.length === 0 ? this.#prefix.keys() : new Set([...this.#prefix.keys(), '']);
  }

  /** In the order of precedence, up to the first without a condition. */
  matching(path: string, exact: readonly Place[] = []): readonly RouteEntry[] {
    const places = [...exact, ...this.#regex];
    for (let end = path.length; end >= 0; end = end === 0 ? -1 : Math.max(0, path.lastIndexOf('/', end - 1)))
      places.push(...(this.#prefix.get(path.slice(0, end)) ?? []));
    const entries = places.sort(([a], [b]) => a - b).map(([, entry]) => entry);
    const last = entries.findIndex(({ match }) => !isConditional(match));
    return last === -1 ? entries : entries.slice(0, last + 1);
  }
}

function append(map: Map<string, Place[]>, key: string, place: Place): void {
  const places = map.get(key);
  if (places === undefined) map.set(key, [place]);
  else places.push(place);
}

/** A target, or the id of a list; '' if there is no candidate. */
function leadTo(
  entries: readonly RouteEntry[],
  targets: Targets,
  lists: Map<string, Row>,
  table: string,
): string {
  const [first] = entries;
  if (first === undefined) return '';
  if (!isConditional(first.match)) return targets.of(first);
  const candidates = entries.map((entry) =>
    [targets.of(entry), conditionsText(entry.match)].filter(Boolean).join('&'),
  );
  return listOf(candidates, lists, table);
}

/** The id of a list; a long list ends with the id of the next one. */
function listOf(candidates: readonly string[], lists: Map<string, Row>, table: string): string {
  let text = '';
  for (const candidate of [...candidates].reverse()) {
    if (text.length + candidate.length > MAX_LIST) text = putList(text, lists, table);
    text = text === '' ? candidate : `${candidate}|${text}`;
  }
  return putList(text, lists, table);
}

function putList(value: string, lists: Map<string, Row>, table: string): string {
  const key = `?${digest(`${table} ${value}`, 24)}`;
  lists.set(key, { map: 'lists', key, value });
  return key;
}

function isConditional(match: RouteMatch): boolean {
  return conditionsText(match) !== '';
}

/** The targets of the rules of one table, each made once. */
class Targets {
  readonly rows: Row[] = [];
  readonly #table: string;
  readonly #ids = new Set<string>();
  /** A rule that replaces the prefix has a target for each prefix. */
  readonly #made = new Map<RouteEntry['rule'], Map<string, string>>();

  constructor(table: string) {
    this.#table = table;
  }

  of({ match: { path }, rule }: RouteEntry): string {
    const prefix = path.kind === 'prefix' && replacesPrefix(rule) ? path.value : '';
    const made = this.#made.get(rule) ?? new Map<string, string>();
    this.#made.set(rule, made);
    const known = made.get(prefix);
    if (known !== undefined) return known;
    const target = ruleTarget(rule, this.#table, prefix);
    this.#keep(target);
    const named = namedTarget(target.target, rule.name);
    made.set(prefix, named);
    return named;
  }

  /** Two rules with equal contents have the same rows. */
  #keep({ target, rows }: Target): void {
    if (this.#ids.has(target)) return;
    this.#ids.add(target);
    this.rows.push(...rows);
  }
}
