// The paths of an Ingress as matches of the model, with the rewriting that ingress-nginx's annotations ask for. Pure.

import { Expressions, literalStart } from '../../base/expression/expression.ts';
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
  const group = target === undefined ? undefined : /\$(\d)/.exec(target)?.[1];
  if (!isRegex) {
    const match = plainMatch(path, type);
    if (group !== undefined)
      return refused(
        match,
        `annotation "rewrite-target" has group $${group}, and path "${path}" has no groups`,
      );
    return read(match, target === undefined ? undefined : full(target));
  }
  const [, prefix] = WITH_REST.exec(path) ?? [];
  if (prefix === undefined) return regex(path, target, group, expressions);
  const rest = path.endsWith('(/|$)(.*)') ? '2' : '1';
  const match = plainMatch(prefix, 'Prefix');
  if (target === undefined) return read(match, undefined);
  if (group === undefined) return read(match, full(target));
  const [, base] = /^(\/[^$]*?)\/?\$\d$/.exec(target) ?? [];
  if (base === undefined || group !== rest)
    return refused(match, `annotation "rewrite-target" may only end in $${rest}, the rest of path "${path}"`);
  return read(match, { kind: 'prefix', value: base === '/' ? '' : base });
}

function read(match: RouteMatch, rewrite: PathRewrite | undefined): ReadPath {
  return { match, rewrite, fault: '' };
}

function refused(match: RouteMatch, fault: string): ReadPath {
  return { match, rewrite: undefined, fault };
}

function regex(
  path: string,
  target: string | undefined,
  group: string | undefined,
  expressions: Expressions,
): ReadPath {
  const expression = expressions.of(path, 'start');
  if (typeof expression === 'string')
    return refused(regexMatch(literalStart(path)), `path ${quote(path)} ${expression}`);
  const match = regexMatch(path);
  if (group !== undefined)
    return refused(
      match,
      `annotation "rewrite-target" has group $${group}, which is only possible with a path that ends in (/|$)(.*)`,
    );
  return read(match, target === undefined ? undefined : full(target));
}

function regexMatch(value: string): RouteMatch {
  return { ...plainMatch('', 'Prefix'), path: { kind: 'regex', value } };
}

/** `ImplementationSpecific` is a prefix by whole elements, too. */
export function plainMatch(path: string, type: IngressPath['type']): RouteMatch {
  const value = type === 'Exact' ? path : path.replace(/\/+$/, '');
  return { path: { kind: type === 'Exact' ? 'exact' : 'prefix', value }, method: '', headers: [], query: [] };
}

function full(value: string): PathRewrite {
  return { kind: 'full', value };
}
