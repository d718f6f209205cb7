// By which headers and cookies a canary gets a request, or gets it never, in ingress-nginx's order. Pure.

import { expressionOf } from '../../base/expression/expression.ts';
import type { RouteMatch } from '../../model/routes.ts';
import { HEADER, matching, rule } from '../routes/annotation-values.ts';
import type { OptionsOf } from '../routes/route-annotations.ts';

export interface CanaryChoice {
  readonly headers: RouteMatch['headers'];
  /** False: the canary never gets such a request, whatever its weight. */
  readonly takes: boolean;
}

export const CANARY_CHOICES = {
  'canary-by-header': rule(
    matching(HEADER),
    'the name of a header',
    'Requests with the value `always` go to it, and none with `never`; with `canary-by-header-value` those with that value.',
  ),
  'canary-by-header-value': rule(
    matching(/^[\x21-\x7e]{1,256}$/),
    'a text without blanks',
    'The value of `canary-by-header`.',
  ),
  'canary-by-header-pattern': rule(
    (text) => (typeof expressionOf(within(text), 'whole') === 'string' ? undefined : text),
    'a regular expression',
    'What the value of `canary-by-header` has; without effect beside `canary-by-header-value`.',
  ),
  'canary-by-cookie': rule(
    matching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/),
    'the name of a cookie',
    'Requests with the value `always` go to it, and none with `never`, after what `canary-by-header` says.',
  ),
} as const;

export function canaryChoices(options: OptionsOf<typeof CANARY_CHOICES>): readonly CanaryChoice[] {
  const header = options['canary-by-header']?.toLowerCase();
  const cookie = options['canary-by-cookie'];
  return [
    ...(header === undefined ? [] : byHeader(header, options)),
    ...(cookie === undefined ? [] : [byCookie(cookie, true), byCookie(cookie, false)]),
  ];
}

function byHeader(name: string, options: OptionsOf<typeof CANARY_CHOICES>): readonly CanaryChoice[] {
  const { 'canary-by-header-value': value, 'canary-by-header-pattern': pattern } = options;
  const exact = (text: string, takes: boolean): CanaryChoice => ({
    headers: [{ name, kind: 'exact', value: text }],
    takes,
  });
  if (value !== undefined) return [exact(value, true)];
  if (pattern !== undefined)
    return [{ headers: [{ name, kind: 'regex', value: within(pattern) }], takes: true }];
  return [exact('always', true), exact('never', false)];
}

/** A header has all cookies. */
function byCookie(name: string, takes: boolean): CanaryChoice {
  const escaped = name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const value = `(?:.*; *)?${escaped}=${takes ? 'always' : 'never'}(?: *;.*)?`;
  return { headers: [{ name: 'cookie', kind: 'regex', value }], takes };
}

function within(pattern: string): string {
  return `.*(?:${pattern}).*`;
}
