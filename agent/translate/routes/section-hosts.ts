// The routes of one section by host. An update looks at what came and went, so that the change of one route among thousands
// orders the entries of its own hosts only.

import { differing } from '../../model/differing.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { HostPattern, HostRoutes } from '../../model/routes.ts';
import { inOrder, type PlaceOfExpressions, type RouteEntries } from './host-routes.ts';
import { shadowedRoutes } from './shadowed-routes.ts';

/** A route in the section; the same value while it does not change. */
export interface HostedRoute {
  readonly entries: RouteEntries;
  readonly hosts: readonly {
    readonly host: HostPattern;
    /** hostKey() of it. */
    readonly key: string;
  }[];
}

interface RoutesOfHost {
  readonly routes: Set<RouteEntries>;
  /** Made of `ordered`, which are the same routes unless some came or went. */
  ordered: ReadonlySet<RouteEntries>;
  value: HostRoutes;
}

const NONE: ReadonlySet<RouteEntries> = new Set();

export class SectionHosts {
  readonly #hosts = new Map<string, RoutesOfHost>();
  #routes: readonly HostedRoute[] = [];
  #values: readonly HostRoutes[] = [];
  /** By host, without those that have none. */
  readonly #shadowed = new Map<string, readonly Problem[]>();
  readonly #expressions: PlaceOfExpressions;

  constructor(expressions: PlaceOfExpressions = 'first') {
    this.#expressions = expressions;
  }

  /** Replaces the routes. The same list, and the same values in it, as far as they are made of the same entries. */
  update(routes: readonly HostedRoute[]): readonly HostRoutes[] {
    const { gone, fresh } = differing(this.#routes, routes);
    this.#routes = routes;
    const touched = new Set<string>();
    for (const { hosts, entries } of gone)
      for (const { key } of hosts) {
        this.#hosts.get(key)?.routes.delete(entries);
        touched.add(key);
      }
    for (const { hosts, entries } of fresh)
      for (const { host, key } of hosts) {
        this.#at(key, host).routes.add(entries);
        touched.add(key);
      }
    if ([...touched].filter((key) => this.#remake(key)).length > 0)
      this.#values = Array.from(this.#hosts.values(), ({ value }) => value);
    return this.#values;
  }

  /** Matches that never get a request. */
  get shadowed(): readonly Problem[] {
    return [...this.#shadowed.values()].flat();
  }

  #at(key: string, host: HostPattern): RoutesOfHost {
    const found = this.#hosts.get(key) ?? { routes: new Set(), ordered: NONE, value: { host, entries: [] } };
    this.#hosts.set(key, found);
    return found;
  }

  /** True if the value of the host is another one, or gone. */
  #remake(key: string): boolean {
    const found = this.#hosts.get(key);
    if (found === undefined) return false;
    const { routes, ordered, value } = found;
    if (routes.size === 0) {
      this.#shadowed.delete(key);
      return this.#hosts.delete(key);
    }
    if (routes.size === ordered.size && [...routes].every((each) => ordered.has(each))) return false;
    found.ordered = new Set(routes);
    found.value = { host: value.host, entries: inOrder([...routes], this.#expressions) };
    const shadowed = shadowedRoutes(found.value);
    if (shadowed.length > 0) this.#shadowed.set(key, shadowed);
    else this.#shadowed.delete(key);
    return true;
  }
}
