// Finds the rule that takes a request, as HAProxy does: by its host, then by the order of the routes. Pure.

import type { Anchoring } from '../../../base/expression/automaton.ts';
import { expressionOf, isMatch } from '../../../base/expression/expression.ts';
import { expressionText, oneSpelling } from '../../../base/one-spelling.ts';
import { quote } from '../../../base/quote.ts';
import { answeringRule } from '../../../model/answering-rule.ts';
import type { HostPattern, HttpRouting, RouteEntry, RouteMatch, ValueMatch } from '../../../model/routes.ts';
import { isStrict } from '../../../model/strict-hosts.ts';
import { valueInWords } from '../route-words.ts';
import type { AskedRequest } from './asked-request.ts';
import { mostSpecific } from './hosts.ts';
import type { ReadPath } from './path-rules.ts';

export interface FoundRule {
  /** The Gateway's listener that the host belongs to; undefined: to none. */
  readonly section: HttpRouting['sections'][number] | undefined;
  /** The first that matches for certain. */
  readonly found: { readonly entry: RouteEntry; readonly host: HostPattern } | undefined;
  /** Some of its paths are guarded, and the request's could be read as one of them. */
  readonly strict: HostPattern | undefined;
  /** Rules of the host before it. */
  readonly others: readonly OtherRule[];
}

export interface OtherRule {
  readonly rule: string;
  readonly why: string;
  /** It differs in something else than the path. */
  readonly hasPath: boolean;
  /** Only HAProxy can tell whether it matches. */
  readonly isUnclear: boolean;
}

export function findRule(
  { sections }: HttpRouting,
  request: AskedRequest,
  { path, isAmbiguous }: ReadPath,
): FoundRule {
  const [section] = mostSpecific(sections, request.host, ({ hostname }) => hostname);
  const others: OtherRule[] = [];
  for (const { host, entries } of mostSpecific(section?.hosts ?? [], request.host, (each) => each.host)) {
    if (isAmbiguous && isStrict(entries.map(asServed))) {
      const isFirst = others.every(({ isUnclear }) => !isUnclear);
      return { section, found: undefined, strict: isFirst ? host : undefined, others };
    }
    for (const entry of entries) {
      const { why, isUnclear } = whyNot(entry.match, request, path);
      if (why === '') return { section, found: { entry, host }, strict: undefined, others };
      const hasPath = !isOfOtherPath(entry.match, path);
      others.push({ rule: entry.rule.name, why, hasPath, isUnclear });
    }
  }
  return { section, found: undefined, strict: undefined, others };
}

/** A route whose expression cannot be read answers 500 to all requests that it could be meant for. */
export function asServed(entry: RouteEntry): RouteEntry {
  const { path, headers, query } = entry.match;
  const isReadable =
    (path.kind !== 'regex' || typeof expressionOf(path.value, 'start') !== 'string') &&
    [...headers, ...query].every(
      ({ kind, value }) => kind !== 'regex' || typeof expressionOf(value, 'whole') !== 'string',
    );
  return isReadable ? entry : { ...entry, rule: answeringRule(entry.rule, 500) };
}

export interface WhyNot {
  /** '' if the request matches. */
  readonly why: string;
  readonly isUnclear: boolean;
}

export function whyNot(match: RouteMatch, request: AskedRequest, path: string): WhyNot {
  const { path: asked, method, headers, query } = match;
  const no = (why: string): WhyNot => ({ why, isUnclear: false });
  if (isOfOtherPath(match, path))
    return no(
      asked.kind === 'exact'
        ? `only the path ${quote(asked.value)}`
        : `only paths below ${quote(`${asked.value}/`)}`,
    );
  if (method !== '' && method !== request.method) return no(`only the method ${method}`);
  const unclear: string[] = [];
  if (asked.kind === 'regex') {
    const why = `only if the path matches the regular expression ${quote(asked.value)}`;
    const isMet = isExpressionMet(asked.value, 'start', expressionText(path));
    if (isMet === false) return no(why);
    if (isMet === undefined) unclear.push(why);
  }
  const judge = (what: string, each: ValueMatch, given: readonly string[] | undefined): boolean => {
    const why = `only if ${what} ${valueInWords(each)}`;
    const isMet = given && hasValue(each, given);
    if (isMet === undefined) unclear.push(why);
    else if (!isMet) refusal = why;
    return isMet !== false;
  };
  let refusal = '';
  for (const each of headers) {
    const given = request.headers.get(each.name) ?? (request.hasOtherHeaders ? undefined : []);
    if (!judge('header', each, given)) return no(refusal);
  }
  for (const each of query) {
    const value = request.query?.get(each.name);
    const given = value === undefined ? request.query && [] : [value];
    if (!judge('query parameter', each, given)) return no(refusal);
  }
  return { why: unclear[0] ?? '', isUnclear: unclear.length > 0 };
}

/** One of them has it. `given`: bytes as characters. undefined if only HAProxy can tell. */
function hasValue({ kind, value }: ValueMatch, given: readonly string[]): boolean | undefined {
  if (kind === 'exact') return given.includes(Buffer.from(value).toString('latin1'));
  for (const each of given) {
    const isMet = isExpressionMet(value, 'whole', Buffer.from(each, 'latin1').toString('utf8'));
    if (isMet !== false) return isMet;
  }
  return false;
}

/** undefined for an expression that cannot be read: its route answers 500 to requests that it could be meant for. */
export function isExpressionMet(pattern: string, anchoring: Anchoring, text: string): boolean | undefined {
  return typeof expressionOf(pattern, anchoring) === 'string' ? undefined : isMatch(pattern, anchoring, text);
}

/** Certainly another path. */
function isOfOtherPath({ path: { kind, value } }: RouteMatch, path: string): boolean {
  if (kind === 'regex') return false;
  const wanted = oneSpelling(value);
  return kind === 'exact' ? path !== wanted : !`${path}/`.startsWith(`${wanted}/`);
}
