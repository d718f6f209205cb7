// The entries of one Ingress on one host, and the same as ingress-nginx has them where some path of the host is a regular
// expression: all its locations match in any case then, and what begins with them. Guarded paths get that here, too. Pure.

import type { PathRewrite, RouteEntry, RouteMatch, RouteRule } from '../../model/routes.ts';

export class PathEntries {
  readonly entries: RouteEntry[] = [];
  readonly inEverySpelling: RouteEntry[] = [];
  /** By rule: its rewriting for a path in every spelling. */
  readonly rewrites = new Map<RouteRule, PathRewrite>();

  add(entry: RouteEntry): void {
    this.entries.push(entry);
    this.inEverySpelling.push(entry);
  }

  /** Beside the entry that was added last, with the rule that its requests get. */
  addSpelling(match: RouteMatch, rule: RouteRule): void {
    this.inEverySpelling.push({ match, rule });
  }
}

/** Stands beside the entry before it, for the same path. */
export function isSpelling({ path: { kind, length } }: RouteMatch): boolean {
  return kind === 'regex' && length !== undefined;
}

export function withRewrite(rule: RouteRule, path: PathRewrite | undefined): RouteRule {
  const { action } = rule;
  if (path === undefined) return rule;
  // The parts of a redirect's location; one that is given whole has no path.
  if (action.kind === 'redirect' && action.path !== undefined)
    return { ...rule, action: { ...action, path } };
  if (action.kind !== 'forward') return rule;
  return {
    ...rule,
    action: { ...action, rewrite: { hostname: action.rewrite?.hostname ?? '', path } },
  };
}
