// The paths of an Ingress as matches of the model, with the rewriting that ingress-nginx's annotations ask for. Pure.

import type { IngressPath } from '../../kubernetes/ingress/ingress-objects.ts';
import type { PathRewrite, RouteMatch } from '../../model/routes.ts';
import type { IngressOptions } from './nginx-annotations.ts';

export interface ReadPath {
  readonly match: RouteMatch;
  readonly rewrite: PathRewrite | undefined;
}

/** HAProxy looks through such paths one by one. */
const MAX_REGEX_CHARACTERS = 256;
/** `/shop(/|$)(.*)` and `/shop/(.*)`: the path, and the rest in the second, or first, group. */
const WITH_REST = /^((?:\/[^()[\]{}*+?|\\^$]*)?)(?:\(\/\|\$\)\(\.\*\)|\/\(\.\*\))$/;
const META = /[()[\]{}*+?|\\^$]/;

/** A sentence if the path cannot be served as it is meant. */
export function readPath({ path, type }: IngressPath, options: IngressOptions): ReadPath | string {
  const target = options['rewrite-target'];
  // In ingress-nginx the target makes all paths of the Ingress regular expressions.
  const isRegex =
    type !== 'Exact' && (target !== undefined || options['use-regex'] === true) && META.test(path);
  const group = target === undefined ? undefined : /\$(\d)/.exec(target)?.[1];
  if (!isRegex) {
    if (group !== undefined)
      return `annotation "rewrite-target" has group $${group}, and path "${path}" has no groups`;
    return { match: plainMatch(path, type), rewrite: target === undefined ? undefined : full(target) };
  }
  const [, prefix] = WITH_REST.exec(path) ?? [];
  if (prefix === undefined) return regex(path, target, group);
  const rest = path.endsWith('(/|$)(.*)') ? '2' : '1';
  const match = plainMatch(prefix, 'Prefix');
  if (target === undefined) return { match, rewrite: undefined };
  if (group === undefined) return { match, rewrite: full(target) };
  const [, base] = /^(\/[^$]*?)\/?\$\d$/.exec(target) ?? [];
  if (base === undefined || group !== rest)
    return `annotation "rewrite-target" may only end in $${rest}, the rest of path "${path}"`;
  return { match, rewrite: { kind: 'prefix', value: base === '/' ? '' : base } };
}

function regex(path: string, target: string | undefined, group: string | undefined): ReadPath | string {
  if (group !== undefined)
    return `annotation "rewrite-target" has group $${group}, which is only possible with a path that ends in (/|$)(.*)`;
  if (path.length > MAX_REGEX_CHARACTERS)
    return `path "${path.slice(0, 40)}…" is a regular expression of more than ${MAX_REGEX_CHARACTERS} characters`;
  if (!isValid(path)) return `path "${path}" is not a regular expression`;
  const match = { ...plainMatch('', 'Prefix'), path: { kind: 'regex' as const, value: path } };
  return { match, rewrite: target === undefined ? undefined : full(target) };
}

function isValid(pattern: string): boolean {
  try {
    return new RegExp(pattern) instanceof RegExp;
  } catch {
    return false;
  }
}

/** `ImplementationSpecific` is a prefix by whole elements, too. */
export function plainMatch(path: string, type: IngressPath['type']): RouteMatch {
  const value = type === 'Exact' ? path : path.replace(/\/+$/, '');
  return { path: { kind: type === 'Exact' ? 'exact' : 'prefix', value }, method: '', headers: [], query: [] };
}

export function full(value: string): PathRewrite {
  return { kind: 'full', value };
}
