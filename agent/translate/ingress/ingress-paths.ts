// The paths of an Ingress as matches of the model, with the rewriting that ingress-nginx's annotations ask for. Pure.

import { Expressions, expressionOf, inAnyCase, literalStart } from '../../base/expression/expression.ts';
import { groupProgram, referencesIn } from '../../base/expression/groups.ts';
import { expressionText, oneSpelling, pathPattern } from '../../base/one-spelling.ts';
import { quote } from '../../base/quote.ts';
import type { IngressPath } from '../../kubernetes/ingress/ingress-objects.ts';
import type { PathRewrite, RouteMatch } from '../../model/routes.ts';
import type { IngressOptions } from './nginx-annotations.ts';
import { targetOf } from './rewrite-target.ts';

export interface ReadPath {
  /** Expressions match in any case, as in ingress-nginx; a prefix that is written as one does not. */
  readonly match: RouteMatch;
  readonly rewrite: PathRewrite | undefined;
  /** Why it cannot be served as it is meant, a phrase; '' if it can. The match is then as wide as the path, or wider. */
  readonly fault: string;
}

/** `/shop(/|$)(.*)` and `/shop/(.*)`: the path, and the rest in the second, or first, group. */
const WITH_REST = /^((?:\/[^()[\]{}*+?|\\^$]*)?)(?:\(\/\|\$\)\(\.\*\)|\/\(\.\*\))$/;
/** `/(shop/.*)`: the whole path in the first group. */
const WHOLE = /^\/\(([^()[\]{}*+?|\\^$]*)\/\.\*\)$/;
const META = /[()[\]{}*+?|\\^$]/;

/** In ingress-nginx the target makes all paths of the Ingress regular expressions. */
export function hasExpressions(options: IngressOptions): boolean {
  return options['rewrite-target'] !== undefined || options['use-regex'] === true;
}

function isExpression({ path, type }: IngressPath, options: IngressOptions): boolean {
  return type !== 'Exact' && hasExpressions(options) && META.test(path);
}

/** `expressions`: those of the Ingress. */
export function readPath(
  each: IngressPath,
  options: IngressOptions,
  expressions = new Expressions(),
): ReadPath {
  const { path, type } = each;
  const target = pathOfTarget(options);
  if (!isExpression(each, options))
    return read(plainMatch(path, type), target === undefined ? undefined : full(withoutGroups(target)));
  return prefixed(path, target) ?? regex(path, target, expressions);
}

function pathOfTarget({ 'rewrite-target': target }: IngressOptions): string | undefined {
  return target === undefined ? undefined : targetOf(target)?.path;
}

/** Groups of a path that is no expression are empty, as in ingress-nginx. */
function withoutGroups(target: string): string {
  return target.replace(/\$\d/g, '');
}

/** The expression is a plain prefix; undefined if it is not, or if the target has more of it than its rest. */
function prefixed(path: string, target: string | undefined): ReadPath | undefined {
  const [, prefix] = WITH_REST.exec(path) ?? [];
  const [, whole] = WHOLE.exec(path) ?? [];
  if (prefix === undefined && whole === undefined) return undefined;
  const match = withLength(plainMatch(prefix ?? `/${whole}`, 'Prefix'), path);
  if (target === undefined) return read(match, undefined);
  if (referencesIn(target).length === 0) return read(match, full(target));
  const rest = path.endsWith('(/|$)(.*)') ? '2' : '1';
  const [, before, group] = /^(\/[^$]*?)\/?\$(\d)$/.exec(target) ?? [];
  if (before === undefined || group !== rest) return undefined;
  const base = before === '/' ? '' : before;
  if (whole === undefined) return read(match, { kind: 'prefix', value: base });
  return read(match, base === '' ? undefined : { kind: 'prefix', value: `${base}/${whole}` });
}

function read(match: RouteMatch, rewrite: PathRewrite | undefined): ReadPath {
  return { match, rewrite, fault: '' };
}

function refused(match: RouteMatch, fault: string): ReadPath {
  return { match, rewrite: undefined, fault };
}

function regex(path: string, target: string | undefined, expressions: Expressions): ReadPath {
  const plain = pathPattern(path);
  const pattern = inAnyCase(plain);
  const expression = expressions.of(pattern, 'start');
  if (typeof expression === 'string') {
    // About the text of the author.
    const own = expressionOf(path, 'start');
    const why = typeof own === 'string' ? own : expression;
    return refused(regexMatch(inAnyCase(literalStart(plain))), `path ${quote(path)} ${why}`);
  }
  const match = regexMatch(pattern);
  if (target === undefined) return read(match, undefined);
  if (referencesIn(target).length === 0) return read(match, full(target));
  const program = groupProgram(plain, target);
  if (typeof program === 'string')
    return refused(
      match,
      `annotation "rewrite-target" cannot be carried out: path ${quote(path)} ${program}`,
    );
  return read(match, { kind: 'groups', value: target, pattern });
}

/**
 * The path as ingress-nginx has it beside expressions of its host: what begins with it, in any case. For a guarded path, because
 * an open one of the host would get the other spellings; undefined if it is matched so anyhow.
 */
export function inEverySpelling(
  each: IngressPath,
  options: IngressOptions,
  { match, fault }: ReadPath,
  expressions: Expressions,
): ReadPath | undefined {
  const { path } = each;
  if (fault !== '' || match.path.kind === 'regex' || path === '/' || path === '') return undefined;
  const own = isExpression(each, options)
    ? regex(path, pathOfTarget(options), expressions)
    : read(regexMatch(inAnyCase(expressionOfLetters(path).pattern)), undefined);
  return { ...own, match: withLength(own.match, path) };
}

/** In the order of routes the text of the Ingress counts. */
function withLength(match: RouteMatch, { length }: string): RouteMatch {
  return { ...match, path: { ...match.path, length } };
}

function regexMatch(value: string): RouteMatch {
  return { ...plainMatch('', 'Prefix'), path: { kind: 'regex', value } };
}

/** `ImplementationSpecific` is a prefix by whole elements, too. */
export function plainMatch(path: string, type: IngressPath['type']): RouteMatch {
  const value = type === 'Exact' ? path : path.replace(/\/+$/, '');
  return { path: { kind: type === 'Exact' ? 'exact' : 'prefix', value }, method: '', headers: [], query: [] };
}

/** An expression has at most 400 states. */
const MOST_LETTERS = 300;

/**
 * Paths that begin with the letters of an ImplementationSpecific one, without being below it: `/admin.php` of `/admin`. In
 * ingress-nginx it has them; undefined for a path that has none. The match of a very long path is wider.
 */
export function lettersBehind(
  { path, type }: IngressPath,
  { path: read }: RouteMatch,
): RouteMatch | undefined {
  if (type !== 'ImplementationSpecific' || read.kind !== 'prefix' || read.value !== path || path === '')
    return undefined;
  const { pattern, isWhole } = expressionOfLetters(path);
  return withLength(regexMatch(isWhole ? `${pattern}[^/]` : pattern), path);
}

/** For what begins with the letters; if they are too many, with the first of them. */
function expressionOfLetters(path: string): { readonly pattern: string; readonly isWhole: boolean } {
  let [pattern, count] = ['', 0];
  for (const each of expressionText(oneSpelling(path))) {
    const encoded = letterText(each);
    count += encoded.length;
    if (count > MOST_LETTERS) return { pattern, isWhole: false };
    pattern += encoded;
  }
  return { pattern, isWhole: true };
}

function letterText(letter: string): string {
  return META.test(letter) || letter === '.' ? `\\${letter}` : letter;
}

function full(value: string): PathRewrite {
  return { kind: 'full', value };
}
