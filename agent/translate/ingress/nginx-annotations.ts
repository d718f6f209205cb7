// Annotations of Ingresses: those of ingress-nginx that mean something here, each also with the agent's own prefix. What they
// ask for and cannot have is named once for each Ingress. Pure.

import { expressionOf } from '../../base/expression/expression.ts';
import { quote } from '../../base/quote.ts';
import {
  isMissing,
  NGINX_PREFIX,
  OWN_PREFIX,
  protection,
  SERVE_WITHOUT,
} from '../../protection/judge-names.ts';
import {
  BOOL,
  bool,
  HEADER,
  HOSTS,
  list,
  listRule,
  location,
  matching,
  number,
  oneOf,
  PATH,
  pathWithVariables,
  rule,
  SECRET,
  seconds,
} from '../routes/annotation-values.ts';
import {
  type OptionsOf,
  type ReadOptions,
  ROUTE_ANNOTATIONS,
  readOptions,
} from '../routes/route-annotations.ts';
import { CANARY_CHOICES } from './canary-choices.ts';
import { CUSTOM_ERRORS_ANNOTATIONS } from './custom-errors.ts';
import { EXTERNAL_AUTH_ANNOTATIONS } from './external-auth-annotations.ts';
import { RETRY_ANNOTATIONS } from './next-upstream.ts';
import { PROXY_SSL_ANNOTATIONS } from './proxy-ssl.ts';
import { rewriteTarget } from './rewrite-target.ts';
import { COOKIE_ANNOTATIONS } from './session-cookie.ts';

const HASH_BY =
  /^(?=.*\$)(?:\$(?:(?:binary_)?remote_addr|request_uri|uri|host|(?:http|arg|cookie)_[A-Za-z0-9_]{1,64})(?![A-Za-z0-9_])|[A-Za-z0-9._/:|-]){1,128}$/;
const VARIABLES = '$host, $scheme, $uri, $request_uri, $is_args and $args in it';
const LOCATION = `an http or https URL; ${VARIABLES} are those of the request`;

function certificateName(text: string): string | undefined {
  if (!/^CN=\P{Cc}{1,250}$/u.test(text)) return undefined;
  return typeof expressionOf(text, 'start') === 'string' ? undefined : text;
}

const consentRule = listRule(
  (text) => (isMissing(text) || OTHERS.has(text) ? text : undefined),
  'the name of an annotation that protects and that Headgate does not have, or that names an authorization server or TLS to members',
  'Names, with commas between them, of annotations in the list below, those of other controllers with their prefix: the Ingress is served without what they protect by, and an Event says so. Also on an IngressClass, for all its Ingresses.',
);

/** By the name after the prefix. */
export const INGRESS_ANNOTATIONS = {
  ...ROUTE_ANNOTATIONS,
  'ssl-redirect': rule(
    bool,
    BOOL,
    'Off: a host with TLS is served on port 80 as well. On: it never is, even before its certificate is there. Default: clients are sent to https as soon as it is there.',
  ),
  'force-ssl-redirect': rule(
    bool,
    BOOL,
    'Clients of port 80 are sent to https, also of a host without TLS here.',
  ),
  'ssl-passthrough': rule(
    bool,
    BOOL,
    'TLS of its hosts is passed through to the Service of their path /, by the name in the handshake; clients of port 80 are sent to https. Beside what protects by requests or certificates it closes, and on a host of which an older Ingress ends TLS.',
  ),
  'rewrite-target': rule(
    rewriteTarget,
    'a path, or an http or https URL without a query; $1 to $9 in its path are capture groups of the path of the Ingress',
    'The path that members get. A URL: clients are sent there, with status 302 and their query.',
  ),
  'use-regex': rule(
    bool,
    BOOL,
    'The paths of type ImplementationSpecific are regular expressions, anchored at the beginning.',
  ),
  'app-root': rule(
    pathWithVariables,
    `a path, with a query or without; ${VARIABLES} are those of the request`,
    'Clients that ask for / are sent there.',
  ),
  'permanent-redirect': rule(location, LOCATION, 'All requests are sent there, with status 301.'),
  'permanent-redirect-code': rule(
    oneOf('301', '302', '303', '307', '308'),
    '301, 302, 303, 307 or 308',
    'The status of `permanent-redirect`.',
  ),
  'temporal-redirect': rule(location, LOCATION, 'All requests are sent there, with status 302.'),
  'temporal-redirect-code': rule(
    oneOf('301', '302', '303', '307', '308'),
    '301, 302, 303, 307 or 308',
    'The status of `temporal-redirect`.',
  ),
  'from-to-www-redirect': rule(
    bool,
    BOOL,
    'Clients of www.HOST are sent to HOST, or the other way for a host with www.',
  ),
  'server-alias': rule(
    list(matching(HOSTS)),
    'a list of host names, separated by commas',
    'Further hosts with the same paths.',
  ),
  'backend-protocol': rule(
    (text) => oneOf('HTTP', 'HTTPS', 'GRPC', 'GRPCS')(text.toUpperCase()),
    'HTTP, HTTPS, GRPC or GRPCS',
    'What members speak. HTTPS and GRPCS verify them only with `proxy-ssl-verify`.',
  ),
  ...PROXY_SSL_ANNOTATIONS,
  'proxy-read-timeout': rule(seconds, 'seconds', 'How long a member may be silent.'),
  'proxy-send-timeout': rule(seconds, 'seconds', 'The longer one of this and `proxy-read-timeout` counts.'),
  'default-backend': rule(
    matching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
    'NAME of a Service of the same namespace',
    'This Service gets the requests, at its first port, while no member of the Service of their path takes connections; `X-Code` is 503 then, and the other headers of `custom-http-errors` are there.',
  ),
  ...CUSTOM_ERRORS_ANNOTATIONS,
  ...RETRY_ANNOTATIONS,
  'enable-cors': rule(bool, BOOL, 'Cross-origin requests are answered.'),
  'cors-allow-origin': listRule(
    matching(/^(?:\*|https?:\/\/(?:\*\.)?[A-Za-z0-9.:[\]-]{1,253})$/),
    'an origin, or *',
    'The origins that may read answers, a list; `https://*.example.org` is one label more. Default: *.',
  ),
  'cors-allow-methods': rule(
    list(matching(HEADER)),
    'a list of methods',
    'Default: GET, PUT, POST, DELETE, PATCH, OPTIONS.',
  ),
  'cors-allow-headers': rule(
    list(matching(HEADER)),
    'a list of header names',
    'Default: those that ingress-nginx has.',
  ),
  'cors-expose-headers': rule(list(matching(HEADER)), 'a list of header names', 'Default: none.'),
  'cors-allow-credentials': rule(
    bool,
    BOOL,
    'With cookies and passwords; only for origins that are named, never for `*`. Default: true.',
  ),
  'cors-max-age': rule(number(0, 86_400 * 365), 'seconds', 'Default: 1728000.'),
  canary: rule(
    bool,
    BOOL,
    'The Ingress takes a part of the requests of another one with the same hosts and paths, whose ranges, limits and users hold for it, too; one that asks for more gets none by weight.',
  ),
  'canary-weight': rule(number(0, 1_000_000), 'a number', 'Its part of `canary-weight-total`.'),
  'canary-weight-total': rule(number(1, 1_000_000), 'a number', 'Default: 100.'),
  ...CANARY_CHOICES,
  affinity: rule(
    oneOf('cookie'),
    'cookie',
    'A client keeps its member by a cookie, which is the same on both hosts of a pair.',
  ),
  ...COOKIE_ANNOTATIONS,
  'upstream-hash-by': rule(
    matching(HASH_BY),
    'a text with $remote_addr, $request_uri, $uri, $host, $http_NAME, $arg_NAME or $cookie_NAME',
    'Requests with the same text go to the same member while the members stay the same, from both hosts of a pair.',
  ),
  'upstream-vhost': rule(matching(HOSTS), 'a host name', 'The `Host` that members get.'),
  'x-forwarded-prefix': rule(matching(PATH), 'a path', 'The header `X-Forwarded-Prefix` that members get.'),
  'auth-tls-secret': rule(
    matching(SECRET),
    'NAMESPACE/NAME of a Secret with ca.crt',
    "Clients need a certificate of this authority. The Secret is in the Ingress' namespace.",
  ),
  'auth-tls-verify-client': rule(
    oneOf('on', 'off', 'optional'),
    'on, off or optional',
    'It needs `auth-tls-secret`. Default: on.',
  ),
  'auth-tls-verify-depth': rule(
    number(0, 99),
    'a number, at most 99',
    "How many intermediate certificates may stand between a client's certificate and that of the authority. It needs `auth-tls-secret`. Default: any number, in ingress-nginx 1.",
  ),
  'auth-tls-match-cn': rule(
    certificateName,
    'CN= and a regular expression',
    'Requests to hosts of the Ingress need a certificate in whose subject a name begins so; others get 403. `CN=shop` is also `CN=shop-test`: end it with `(,|$)`. It needs `auth-tls-secret`.',
  ),
  'auth-tls-error-page': rule(
    location,
    LOCATION,
    'Clients without a certificate of the authority are sent there, with status 302, instead of ending in the handshake.',
  ),
  'auth-tls-pass-certificate-to-upstream': rule(
    bool,
    BOOL,
    "Members get the client's certificate in the header `ssl-client-cert`, in PEM and percent-encoded. What they get besides: `ssl-client-verify`, `ssl-client-subject-dn` and `ssl-client-issuer-dn`.",
  ),
  ...EXTERNAL_AUTH_ANNOTATIONS,
  'enable-global-auth': rule(
    bool,
    BOOL,
    'Off: the authorization server of the class (`headgate.io/global-auth-url`) is not asked. Default: it is, if the Ingress has no `auth-url`.',
  ),
  [SERVE_WITHOUT]: consentRule,
} as const;

export type IngressOptions = OptionsOf<typeof INGRESS_ANNOTATIONS>;

/** `ofClass`: names of protections that the IngressClass consents to miss. */
export function readIngressOptions(
  annotations: Readonly<Record<string, string>>,
  ofClass: ReadonlySet<string> = NONE,
): ReadOptions<typeof INGRESS_ANNOTATIONS> {
  const consent = new Set([...consentOf(annotations), ...ofClass]);
  const given = Object.entries(annotations);
  const missing = given.filter(([full]) => isOther(full) && consent.has(nameOf(full)));
  if (missing.length === 0) return readOptions(INGRESS_ANNOTATIONS, 'Ingress', annotations, consent);
  const others = Object.fromEntries(given.filter((each) => !missing.includes(each)));
  const read = readOptions(INGRESS_ANNOTATIONS, 'Ingress', others, consent);
  const without = missing.map(
    ([full]) =>
      `Serves without ${quote(full)}, as annotation "${OWN_PREFIX}${SERVE_WITHOUT}" allows: it protects by ${protection(nameOf(full))?.by}`,
  );
  return { ...read, without: [...read.without, ...without] };
}

function nameOf(full: string): string {
  return full.slice(full.indexOf('/') + 1);
}

/** It names what may be missing here: an authorization server, or a Secret. */
function isOther(full: string): boolean {
  return [OWN_PREFIX, NGINX_PREFIX].some((prefix) => full.startsWith(prefix)) && OTHERS.has(nameOf(full));
}

const OTHERS: ReadonlySet<string> = new Set([
  ...['auth-url', 'auth-signin', 'auth-method', 'auth-response-headers', 'enable-global-auth'],
  ...['proxy-ssl-verify', 'proxy-ssl-secret', 'proxy-ssl-ciphers', 'proxy-ssl-protocols'],
]);

const NONE: ReadonlySet<string> = new Set();

/** What `serve-without` names; a wrong name consents to nothing. */
export function consentOf(annotations: Readonly<Record<string, string>>): ReadonlySet<string> {
  const text = annotations[`${OWN_PREFIX}${SERVE_WITHOUT}`] ?? '';
  return new Set(text.split(',').map((each) => each.trim()));
}

/** With any value, also one that is not allowed. */
export function isAnnotated(
  { annotations }: { readonly annotations: Readonly<Record<string, string>> },
  name: keyof typeof INGRESS_ANNOTATIONS,
): boolean {
  return [OWN_PREFIX, NGINX_PREFIX].some((prefix) => Object.hasOwn(annotations, `${prefix}${name}`));
}
