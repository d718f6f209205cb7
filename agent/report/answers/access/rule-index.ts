// Finds the rule that takes a request, as findRule() does, in a time that does not grow with the number of routes: the rules of a
// listener by host and by path. For many requests to the same routes; it has no words for the rules that do not match. Pure.

import { oneSpelling } from '../../../base/one-spelling.ts';
import type { HostRoutes, HttpRouting, RouteEntry, RouteSection } from '../../../model/routes.ts';
import { isStrict } from '../../../model/strict-hosts.ts';
import type { AskedRequest } from './asked-request.ts';
import { asServed, whyNot } from './find-rule.ts';
import { mostSpecific } from './hosts.ts';
import type { ReadPath } from './path-rules.ts';

export interface IndexedRule {
  /** The Gateway's listener that the host belongs to; undefined: to none. */
  readonly section: RouteSection | undefined;
  /** The first that matches for certain. */
  readonly entry: RouteEntry | undefined;
  /** Some paths of the host are guarded, and the request's could be read as one of them. */
  readonly isAmbiguous: boolean;
  /** Rules before it of which only HAProxy can tell whether they match. */
  readonly perhaps: readonly RouteEntry[];
}

const NONE: readonly RouteEntry[] = [];
const NO_PLACES: readonly number[] = [];
/** Hosts of requests, which clients choose, are remembered up to so many. */
const MOST_HOSTS = 10_000;

export class RuleIndex {
  readonly #sections: readonly RouteSection[];
  /** By the request's host. */
  readonly #hosts = new Map<string, HostRules>();
  readonly #paths = new Map<HostRoutes, PathRules>();

  constructor({ sections }: HttpRouting) {
    this.#sections = sections;
  }

  find(request: AskedRequest, { path, isAmbiguous }: ReadPath): IndexedRule {
    const { section, hosts } = this.#hostRules(request.host);
    let perhaps = NONE;
    for (const rules of hosts) {
      if (isAmbiguous && rules.isStrict)
        return { section, entry: undefined, isAmbiguous: perhaps.length === 0, perhaps };
      for (const at of rules.placesOf(path)) {
        const entry = rules.entries[at];
        if (entry === undefined) continue;
        if (rules.byPathOnly[at]) return { section, entry, isAmbiguous: false, perhaps };
        const { why, isUnclear } = whyNot(entry.match, request, path);
        if (why === '') return { section, entry, isAmbiguous: false, perhaps };
        if (isUnclear) perhaps = [...perhaps, entry];
      }
    }
    return { section, entry: undefined, isAmbiguous: false, perhaps };
  }

  #hostRules(host: string): HostRules {
    const known = this.#hosts.get(host);
    if (known !== undefined) return known;
    const [section] = mostSpecific(this.#sections, host, ({ hostname }) => hostname);
    const routes = mostSpecific(section?.hosts ?? [], host, (each) => each.host);
    const found = { section, hosts: routes.map((each) => this.#pathRules(each)) };
    if (this.#hosts.size >= MOST_HOSTS) this.#hosts.clear();
    this.#hosts.set(host, found);
    return found;
  }

  #pathRules(routes: HostRoutes): PathRules {
    const known = this.#paths.get(routes);
    if (known !== undefined) return known;
    const rules = new PathRules(routes);
    this.#paths.set(routes, rules);
    return rules;
  }
}

interface HostRules {
  readonly section: RouteSection | undefined;
  /** The most specific host first. */
  readonly hosts: readonly PathRules[];
}

/** The rules of one host by their paths. A place is an index of `entries`, so that the order of precedence is that of numbers. */
class PathRules {
  readonly entries: readonly RouteEntry[];
  readonly isStrict: boolean;
  /** By place: the path alone decides, and has decided. */
  readonly byPathOnly: readonly boolean[];
  readonly #exact = new Map<string, number[]>();
  readonly #prefixes = new Map<string, number[]>();
  readonly #expressions: number[] = [];
  /** Characters; -1 without prefixes. */
  readonly #longestPrefix: number;

  constructor({ entries }: HostRoutes) {
    this.entries = entries;
    this.isStrict = isStrict(entries.map(asServed));
    this.byPathOnly = entries.map(({ match: { path, method, headers, query } }) => {
      const hasConditions = method !== '' || headers.length + query.length > 0;
      return path.kind !== 'regex' && !hasConditions;
    });
    for (const [at, { match }] of entries.entries()) {
      const { kind, value } = match.path;
      if (kind === 'regex') this.#expressions.push(at);
      else add(kind === 'exact' ? this.#exact : this.#prefixes, oneSpelling(value), at);
    }
    this.#longestPrefix = [...this.#prefixes.keys()].reduce((most, { length }) => Math.max(most, length), -1);
  }

  /** The places of rules that may match the path, in their order. */
  placesOf(path: string): readonly number[] {
    let places =
      this.#exact.size === 0 ? this.#expressions : joined(this.#expressions, this.#exact.get(path));
    const most = Math.min(path.length, this.#longestPrefix);
    for (let at = path.indexOf('/'); at >= 0 && at <= most; at = path.indexOf('/', at + 1))
      places = joined(places, this.#prefixes.get(path.slice(0, at)));
    return path.length > most ? places : joined(places, this.#prefixes.get(path));
  }
}

function joined(places: readonly number[], others: readonly number[] = NO_PLACES): readonly number[] {
  if (others.length === 0) return places;
  return places.length === 0 ? others : [...places, ...others].sort((a, b) => a - b);
}

function add(places: Map<string, number[]>, path: string, at: number): void {
  const there = places.get(path);
  if (there === undefined) places.set(path, [at]);
  else there.push(at);
}
