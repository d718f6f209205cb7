// The paths of an Ingress as matches of the model, with the rewriting that ingress-nginx's annotations ask for. Pure.

import { Expressions, literalStart } from '../../base/expression/expression.ts';
import { groupProgram, referencesIn } from '../../base/expression/groups.ts';
import { quote } from '../../base/quote.ts';
import type { IngressPath } from '../../kubernetes/ingress/ingress-objects.ts';
import type { PathRewrite, RouteMatch } from '../../model/routes.ts';
import type { IngressOptions } from './nginx-annotations.ts';

export interface ReadPath {
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

/** `expressions`: those of the Ingress. */
export function readPath(
  { path, type }: IngressPath,
  options: IngressOptions,
  expressions = new Expressions(),
): ReadPath {
  const target = options['rewrite-target'];
  // In ingress-nginx the target makes all paths of the Ingress regular expressions.
  const isRegex =
    type !== 'Exact' && (target !== undefined || options['use-regex'] === true) && META.test(path);
  const groups = referencesIn(target ?? '');
  if (!isRegex) {
    const match = plainMatch(path, type);
    if (groups.length > 0)
      return refused(
        match,
        `annotation "rewrite-target" has group $${groups[0]}, and path "${path}" has no groups`,
      );
    return read(match, target === undefined ? undefined : full(target));
  }
  return prefixed(path, target) ?? regex(path, target, expressions);
}

/** The expression is a plain prefix; undefined if it is not, or if the target has more of it than its rest. */
function prefixed(path: string, target: string | undefined): ReadPath | undefined {
  const [, prefix] = WITH_REST.exec(path) ?? [];
  const [, whole] = WHOLE.exec(path) ?? [];
  if (prefix === undefined && whole === undefined) return undefined;
  const match = plainMatch(prefix ?? `/${whole}`, 'Prefix');
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
  const expression = expressions.of(path, 'start');
  if (typeof expression === 'string')
    return refused(regexMatch(literalStart(path)), `path ${quote(path)} ${expression}`);
  const match = regexMatch(path);
  if (target === undefined) return read(match, undefined);
  if (referencesIn(target).length === 0) return read(match, full(target));
  const program = groupProgram(path, target);
  if (typeof program === 'string')
    return refused(
      match,
      `annotation "rewrite-target" cannot be carried out: path ${quote(path)} ${program}`,
    );
  return read(match, { kind: 'groups', value: target, pattern: path });
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
  let [letters, count] = ['', 0];
  for (const each of path) {
    const encoded = letterText(each);
    count += encoded.length;
    if (count > MOST_LETTERS) break;
    letters += encoded;
  }
  const match = regexMatch(count > MOST_LETTERS ? letters : `${letters}[^/]`);
  return { ...match, path: { ...match.path, length: path.length } };
}

/** As HAProxy gets it, and as an expression. */
function letterText(letter: string): string {
  if (/^[!-~]$/.test(letter)) return META.test(letter) || letter === '.' ? `\\${letter}` : letter;
  return Array.from(
    Buffer.from(letter),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('');
}

function full(value: string): PathRewrite {
  return { kind: 'full', value };
}
