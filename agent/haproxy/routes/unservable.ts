// Routes that do not fit into rows of maps: they answer 500, so that no wider route serves what they are meant for, and are
// reported to their author. Pure.

import { expressionOf, literalStart } from '../../base/expression/expression.ts';
import { memoByIdentity } from '../../base/memo.ts';
import { expressionText, oneSpelling } from '../../base/one-spelling.ts';
import { answeringRule } from '../../model/answering-rule.ts';
import type { HostRoutes, RouteEntry, RouteMatch, RouteRule, ValueMatch } from '../../model/routes.ts';
import { conditionsText, pathText, patternText } from './encode.ts';
import { replacesPrefix, ruleTarget } from './rule-rows.ts';

/** HAProxy's buffer has 16 KB for a command, and for a line of a file. */
const MAX_PATH = 4_000;
const MAX_TEXT = 6_000;
/** The most of a hostname: with texts of a hundred characters they take half of the steps of a request (routes.lua). */
const MOST_EXPRESSIONS = 500;
/** Bytes of a text that is too long that an expression can have, escaped. */
const MAX_START = 250;
/** The rules have a line for each number (templates/haproxy/routes.mustache). */
export const MAX_ELEMENTS = 9;

/** Why HAProxy cannot serve the route, a phrase without a full stop; undefined if it can. */
export function faultOf({ match, rule }: RouteEntry): string | undefined {
  if (match.method === 'CONNECT') return 'it matches CONNECT, whose tunnel would lead past all rules';
  const path = pathText(match.path.value).length;
  if (path > MAX_PATH) return `its path has ${path} bytes: at most ${MAX_PATH} are allowed`;
  const conditions = conditionsText(match).length;
  if (conditions > MAX_TEXT)
    return `its conditions have ${conditions} bytes: at most ${MAX_TEXT} are allowed`;
  const expression = unreadable(match);
  if (expression !== undefined) return `its regular expression ${expression}`;
  const elements = match.path.value.split('/').length - 1;
  if (match.path.kind === 'prefix' && replacesPrefix(rule) && elements > MAX_ELEMENTS)
    return `it replaces a prefix of ${elements} elements: at most ${MAX_ELEMENTS} are allowed`;
  return faultOfRule(rule);
}

const faultOfRule = memoByIdentity((rule: RouteRule): string | undefined => {
  const long = ruleTarget(rule, '', '').rows.find(({ key, value }) => key.length + value.length > MAX_TEXT);
  return long && `its "${long.map}" has ${long.value.length} bytes: at most ${MAX_TEXT} are allowed`;
});

/** The route itself, or an answer to all requests that it could be meant for. */
export function servable(entry: RouteEntry): RouteEntry {
  if (faultOf(entry) === undefined) return entry;
  return { match: shortened(entry.match), rule: answeringRule(entry.rule, 500) };
}

function unreadable({ path, headers, query }: RouteMatch): string | undefined {
  const found = [
    ...(path.kind === 'regex' ? [expressionOf(path.value, 'start')] : []),
    ...[...headers, ...query].flatMap(({ kind, value }) =>
      kind === 'regex' ? [expressionOf(value, 'whole')] : [],
    ),
  ];
  return found.find((each) => typeof each === 'string');
}

/** Matches what the match does, and more if it does not fit. */
function shortened(match: RouteMatch): RouteMatch {
  let { path, headers, query } = match;
  const any = (each: ValueMatch): ValueMatch =>
    each.kind === 'regex' && typeof expressionOf(each.value, 'whole') === 'string'
      ? { ...each, value: '.*' }
      : each;
  headers = headers.map(any);
  query = query.map(any);
  const isUnreadable = path.kind === 'regex' && typeof expressionOf(path.value, 'start') === 'string';
  if (isUnreadable || pathText(path.value).length > MAX_PATH) {
    const start = path.kind === 'regex' ? literalStart(path.value) : textOf(path.value).slice(0, MAX_START);
    path = { kind: 'regex', value: escaped(start) };
  }
  const isTooLong = (): boolean => conditionsText({ ...match, path, headers, query }).length > MAX_TEXT;
  if (isTooLong()) [headers, query] = [headers.map(startOf), query.map(startOf)];
  while (isTooLong() && headers.length + query.length > 0)
    if (headers.length > 0) headers = headers.slice(0, -1);
    else query = query.slice(0, -1);
  return { ...match, path, headers, query };
}

function textOf(path: string): string {
  return expressionText(oneSpelling(path));
}

/** All values that begin as this one. */
function startOf(match: ValueMatch): ValueMatch {
  if (match.kind === 'regex' || match.value.length <= MAX_START) return match;
  const start = Buffer.from(match.value).subarray(0, MAX_START).toString();
  // A character may have been cut.
  return { ...match, kind: 'regex', value: `${escaped(start.replace(/\uFFFD+$/, ''))}.*` };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** The routes of a hostname that cannot be served: a sentence about each. */
export const faultsOf = memoByIdentity(({ host, entries }: HostRoutes): readonly string[] => {
  const faults = entries.flatMap((entry) => {
    const fault = faultOf(entry);
    return fault === undefined ? [] : [`HAProxy cannot serve ${entry.rule.name}: ${fault}`];
  });
  const expressions = entries.reduce((sum, { match }) => sum + expressionsIn(match), 0);
  if (expressions <= MOST_EXPRESSIONS) return faults;
  const last = entries.findLast(({ match }) => expressionsIn(match) > 0)?.rule.name;
  return [
    ...faults,
    `HAProxy cannot serve all requests to ${patternText(host)}: its routes, such as ${last}, have ${expressions} regular expressions, and a request that needs more than 100000 steps is answered with 500; at most ${MOST_EXPRESSIONS} are advisable`,
  ];
});

function expressionsIn({ path, headers, query }: RouteMatch): number {
  return [path, ...headers, ...query].filter(({ kind }) => kind === 'regex').length;
}
