// Routes that do not fit into rows of maps: they are left out, and their author is told. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import type { HostRoutes, RouteEntry, RouteRule } from '../../model/routes.ts';
import { conditionsText, pathText } from './encode.ts';
import { replacesPrefix, ruleTarget } from './rule-rows.ts';

/** HAProxy's buffer has 16 KB for a command, and for a line of a file. */
const MAX_PATH = 4_000;
const MAX_TEXT = 6_000;
/** The rules have a line for each number (templates/haproxy/routes.mustache). */
export const MAX_ELEMENTS = 9;

/** Why HAProxy cannot serve the route, a phrase without a full stop; undefined if it can. */
export function faultOf({ match, rule }: RouteEntry): string | undefined {
  const path = pathText(match.path.value).length;
  if (path > MAX_PATH) return `its path has ${path} bytes: at most ${MAX_PATH} are allowed`;
  const conditions = conditionsText(match).length;
  if (conditions > MAX_TEXT)
    return `its conditions have ${conditions} bytes: at most ${MAX_TEXT} are allowed`;
  const elements = match.path.value.split('/').length - 1;
  if (match.path.kind === 'prefix' && replacesPrefix(rule) && elements > MAX_ELEMENTS)
    return `it replaces a prefix of ${elements} elements: at most ${MAX_ELEMENTS} are allowed`;
  return faultOfRule(rule);
}

const faultOfRule = memoByIdentity((rule: RouteRule): string | undefined => {
  const long = ruleTarget(rule, '', '').rows.find(({ key, value }) => key.length + value.length > MAX_TEXT);
  return long && `its "${long.map}" has ${long.value.length} bytes: at most ${MAX_TEXT} are allowed`;
});

/** The routes of a hostname that cannot be served: a sentence about each. */
export const faultsOf = memoByIdentity(({ entries }: HostRoutes): readonly string[] =>
  entries.flatMap((entry) => {
    const fault = faultOf(entry);
    return fault === undefined ? [] : [`HAProxy cannot serve ${entry.rule.name}: ${fault}`];
  }),
);
