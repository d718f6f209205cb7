// The cookie of an Ingress with `affinity: cookie`, as ingress-nginx's annotations describe it. Pure.

import type { SessionCookie } from '../../model/routes.ts';
import { BOOL, bool, matching, number, oneOf, rule } from '../routes/annotation-values.ts';
import type { OptionsOf } from '../routes/route-annotations.ts';

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** Neither ends the attribute or the field of a row nor is a reference of a replacement. */
const PATH = /^\/[^\s\p{Cc}"'\\;,%|]{0,255}$/u;
const DOMAIN = /^\.?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const MAX_AGE = 86_400 * 365 * 10;

export const COOKIE_ANNOTATIONS = {
  'session-cookie-name': rule(
    matching(NAME),
    'letters, digits, _ and -, at most 64',
    'The name of the cookie of `affinity`. Default: INGRESSCOOKIE.',
  ),
  'session-cookie-path': rule(matching(PATH), 'a path', 'Its path. Default: /.'),
  'session-cookie-domain': rule(matching(DOMAIN), 'a domain', 'Its domain. Default: the host alone.'),
  'session-cookie-max-age': rule(number(0, MAX_AGE), 'seconds', 'Default: until the browser is closed.'),
  'session-cookie-expires': rule(number(0, MAX_AGE), 'seconds', 'As `session-cookie-max-age`.'),
  'session-cookie-samesite': rule(oneOf('None', 'Lax', 'Strict'), 'None, Lax or Strict', 'Default: Lax.'),
  'session-cookie-secure': rule(bool, BOOL, 'Default: by https.'),
} as const;

/** undefined: without affinity. */
export function sessionCookieOf(
  options: OptionsOf<typeof COOKIE_ANNOTATIONS> & { readonly affinity?: 'cookie' },
): SessionCookie | undefined {
  if (options.affinity === undefined) return undefined;
  const domain = options['session-cookie-domain'];
  const maxAge = options['session-cookie-max-age'] ?? options['session-cookie-expires'];
  const secure = options['session-cookie-secure'];
  return {
    name: options['session-cookie-name'] ?? 'INGRESSCOOKIE',
    secure: secure === undefined ? 'https' : secure ? 'always' : 'never',
    attributes: [
      `Path=${options['session-cookie-path'] ?? '/'}`,
      ...(domain === undefined ? [] : [`Domain=${domain}`]),
      ...(maxAge === undefined ? [] : [`Max-Age=${maxAge}`]),
      'HttpOnly',
      `SameSite=${options['session-cookie-samesite'] ?? 'Lax'}`,
    ],
  };
}
