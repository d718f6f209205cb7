// The annotations of Ingresses, and of their class, that have an authorization server asked whether a request is let in, as in
// ingress-nginx. What people write in them passes an allow-list here; anything else closes. Pure.

import { BOOL, bool, HEADER, list, matching, oneOf, type Parse, rule } from '../routes/annotation-values.ts';
import { CACHE_KEY_WORDS, cacheDuration, cacheKey } from './auth-cache.ts';

/** `auth-url`, in its parts. */
export interface AuthUrl {
  readonly scheme: 'http' | 'https';
  /** In lower case; `$host` for the host of the request. */
  readonly host: string;
  readonly port: number;
  /** With its query. */
  readonly path: string;
}

/** Variables of nginx whose values a request has. */
const VARIABLES =
  /\$(?:host|http_host|request_uri|escaped_request_uri|scheme|uri|request_method|remote_addr)(?![A-Za-z0-9_])/g;
/** Another word for the same. */
const ALIASES: readonly (readonly [RegExp, string])[] = [
  [/\$best_http_host(?![A-Za-z0-9_])/g, '$http_host'],
  [/\$pass_access_scheme(?![A-Za-z0-9_])/g, '$scheme'],
];
const UNSAFE = /[\s\p{Cc}"'\\{}|^`<>]|[^\x20-\x7e]/u;
const URL_PARTS =
  /^(https?):\/\/(\$host|\$http_host|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::(\d{1,5}))?(\/[^?#]*)?(\?[^#]*)?$/;
const WELL_KNOWN = { http: 80, https: 443 } as const;
const DOTS = /(?:\/|%2f)(?:\.|%2e){1,2}(?:\/|%2f|$)/i;

function withoutAliases(text: string): string {
  return ALIASES.reduce((known, [alias, name]) => known.replace(alias, name), text);
}

function isSafe(text: string): boolean {
  return text.length <= 1024 && !UNSAFE.test(text) && !text.replace(VARIABLES, '').includes('$');
}

export const authUrl: Parse<AuthUrl> = (text) => {
  const known = withoutAliases(text).replace(/^\$scheme(?=:)/, 'https');
  const [, scheme, host = '', port, path = '/', query = ''] = URL_PARTS.exec(known) ?? [];
  if ((scheme !== 'http' && scheme !== 'https') || !isSafe(known)) return undefined;
  // A variable in the path would let the client choose what is asked.
  if (path.includes('$') || DOTS.test(path) || Number(port ?? 1) > 65_535 || port === '0') return undefined;
  return {
    scheme,
    host: host.startsWith('$') ? '$host' : host.toLowerCase(),
    port: Number(port ?? WELL_KNOWN[scheme]),
    path: path + query,
  };
};

const SIGN_IN = /^(?:https?|\$scheme):\/\/(?:\$host|\$http_host|[A-Za-z0-9.:[\]_-]+)(?:[/?]|$)/;

/** Its host is the author's, or that of the request, never a part of a path. */
const signIn: Parse<string> = (text) => {
  const known = withoutAliases(text);
  return SIGN_IN.test(known) && isSafe(known) && !known.includes('#') ? known : undefined;
};

const redirect: Parse<string> = (text) => {
  const known = withoutAliases(text);
  return known !== '' && isSafe(known) ? known : undefined;
};

/** What belongs to a connection or a body is HAProxy's to say. */
const OWN =
  /^(?:host|connection|keep-alive|content-.*|transfer-encoding|te|trailer|upgrade|expect|proxy-connection)$/i;
const header: Parse<string> = (text) => (OWN.test(text) ? undefined : matching(HEADER)(text));

const VARIABLE_WORDS =
  '$host, $http_host, $scheme, $request_uri, $escaped_request_uri, $uri, $request_method and $remote_addr';

export const EXTERNAL_AUTH_ANNOTATIONS = {
  'auth-url': rule(
    authUrl,
    `an http or https URL: of a Service (\`http://NAME.NAMESPACE.svc.cluster.local:PORT/PATH\`), of $host, or of a host of the same class; variables in its query only: ${VARIABLE_WORDS}`,
    'This service is asked about each request, without its body. Statuses 2xx let it in; 401 and 403 reach the client; all others, and no answer within 5 seconds from each of three attempts, are 503. A Service of another namespace needs the consent of the class, `headgate.io/auth-namespaces`.',
  ),
  'auth-method': rule(
    (text) => oneOf('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')(text.toUpperCase()),
    'GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS',
    'The method of the question. Default: GET.',
  ),
  'auth-signin': rule(
    signIn,
    `an http or https URL with these variables: ${VARIABLE_WORDS}`,
    'Clients are sent there, with status 302, instead of getting 401; a parameter `rd` with what they asked for is added unless the URL has it. Values in its query are escaped.',
  ),
  'auth-signin-redirect-param': rule(
    matching(/^[A-Za-z0-9._~-]{1,64}$/),
    'letters, digits and . _ ~ -',
    'The name of that parameter. Default: rd.',
  ),
  'auth-response-headers': rule(
    list(header),
    'a list of header names, without those of a connection or body',
    "Headers of the service's answer that members get; the client's own, also with `_` for `-`, are removed.",
  ),
  'auth-request-redirect': rule(
    redirect,
    `a URL with these variables: ${VARIABLE_WORDS}`,
    'The header `X-Auth-Request-Redirect` that the service gets. Default: $request_uri.',
  ),
  'auth-always-set-cookie': rule(
    bool,
    BOOL,
    'Cookies of the service reach the client whatever the member answers. Default: with statuses below 400.',
  ),
  'auth-cache-key': rule(
    cacheKey,
    CACHE_KEY_WORDS,
    'The service is not asked again, for a time, about requests of the same path of the Ingress, host and method with the same values of these variables. It always is if a request has none of the named credentials, or the answer sets a cookie, says `no-store`, `no-cache` or `private`, or has a `Vary` that counts.',
  ),
  'auth-cache-duration': rule(
    cacheDuration,
    'statuses with a time of s, m, h or d behind them, as `200 202 10m, 401 1m`; at most one day',
    'For how long answers of `auth-cache-key` count. Default: 200 202 401 5m. Only 2xx, 401 and 403 are kept.',
  ),
} as const;

/** `auth-signin` with the parameter for what the client has asked for, as ingress-nginx makes it. */
export function signInUrl(url: string, parameter = 'rd'): string {
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
  const names = query.split('&').map((each) => each.split('=', 1)[0]);
  if (query !== '' && names.includes(parameter)) return url;
  const joint = query !== '' ? '&' : url.includes('?') ? '' : '?';
  return `${url}${joint}${parameter}=$scheme://$http_host$escaped_request_uri`;
}
