// Routes: how a listener chooses the pool of a request or connection by its host, path and headers, in the order of the
// Gateway API. Values only; imports nothing of a dataplane.
//
// A pool of routes is a load balancer of its own (owner kind `Pool`), so that routes of many Gateways and Ingresses share it,
// and a change of its endpoints translates it alone. Routes name it by its listener's name, which is its backend's.

/** Chooses by request (`http`), by the name in the TLS handshake (`tls`: passed through), or by weight alone (`tcp`). */
export type Routing = HttpRouting | TlsRouting | TcpRouting;

export interface HttpRouting {
  readonly kind: 'http';
  /**
   * The Gateway's listeners on this port. A request belongs to the one with the most specific hostname, and never gets a
   * route of another.
   */
  readonly sections: readonly RouteSection[];
  /** Answer 421 to a request whose `Host` belongs to another section than the name of its TLS handshake. */
  readonly detectMisdirected: boolean;
}

/** One listener of a Gateway, or all of an Ingress class; unique name within its listener. */
export interface RouteSection {
  readonly name: string;
  readonly hostname: HostPattern;
  /** One for each hostname that routes have here, unordered. A hostname without routes has none. */
  readonly hosts: readonly HostRoutes[];
}

export interface HostPattern {
  /** Lower case. `api.example.org`; of a wildcard what follows `*.`; '' for any host. */
  readonly suffix: string;
  /** `one-label` and `labels` are wildcards over one, and over any number of labels. */
  readonly kind: 'exact' | 'one-label' | 'labels' | 'any';
}

/** The routes of one hostname. Keeps its identity while none of them changes. */
export interface HostRoutes {
  readonly host: HostPattern;
  /** In the order of precedence: the first that matches is taken. */
  readonly entries: readonly RouteEntry[];
}

/** One match of a rule. */
export interface RouteEntry {
  readonly match: RouteMatch;
  readonly rule: RouteRule;
}

export interface RouteMatch {
  /**
   * `prefix` by whole elements, without a slash at the end (`/` is ''); `regex` is RE2-like, anchored at the start. `length`: of
   * the text that its author wrote, in the order of routes by length; of an expression only if it stands beside a path.
   */
  readonly path: {
    readonly kind: 'exact' | 'prefix' | 'regex';
    readonly value: string;
    readonly length?: number;
  };
  /** '' for any. */
  readonly method: string;
  /** Lower-case names. */
  readonly headers: readonly ValueMatch[];
  readonly query: readonly ValueMatch[];
}

export interface ValueMatch {
  readonly name: string;
  readonly kind: 'exact' | 'regex';
  readonly value: string;
}

/** What is done with a request; one value for all matches of a rule. */
export interface RouteRule {
  /** Unique: `HTTPRoute default/api#0`, for `why` and metrics. */
  readonly name: string;
  /** The route's own object, for labels: `HTTPRoute default/api`. */
  readonly route: string;
  readonly action: ForwardAction | RedirectAction | AnswerAction;
  readonly cors: Cors | undefined;
  readonly responseHeaders: HeaderChanges | undefined;
  readonly limits: RouteLimits | undefined;
  /**
   * A regular expression such as `CN=shop`, by which one of the names in the subject of a client's certificate must begin (RFC 2253).
   * Absent: any certificate, or none.
   */
  readonly certificateName?: string | undefined;
  /** Absent: clients need no password. */
  readonly auth?: RouteAuth | undefined;
  /** Absent: clients need no token. */
  readonly jwt?: RouteJwt | undefined;
  /** Absent: no service is asked. */
  readonly externalAuth?: ExternalAuth | undefined;
}

export interface ForwardAction {
  readonly kind: 'forward';
  /** With weight 0 it gets no request. Empty, or all weights 0: `failure` for all. */
  readonly backends: readonly WeightedBackend[];
  /** The answer for the share of backends that do not exist: 500, and 503 for gRPC. */
  readonly failure: 500 | 503;
  readonly requestHeaders: HeaderChanges | undefined;
  readonly rewrite: Rewrite | undefined;
  readonly mirrors: readonly Mirror[];
  /** Milliseconds; 0: the pool's. */
  readonly timeout: number;
  /** Members get the client's certificate, in PEM and percent-encoded, in the header `ssl-client-cert`. */
  readonly passesCertificate?: true;
  /** The pool that gets requests while no member of the others takes connections. */
  readonly fallback?: string;
  /** Which answers of members are replaced, and what that pool is told of a request. */
  readonly customErrors?: CustomErrors;
  /** In pools that choose a member by a key: `$request_uri$host` and the like, with variables of nginx. */
  readonly hashBy?: string;
  /** In pools that retry: only methods that can be repeated (RFC 9110, section 9.2.2). */
  readonly retriesIdempotentOnly?: true;
  /** How clients keep their member in pools with affinity by a cookie; absent: `HEADGATE`, for the session. */
  readonly cookie?: SessionCookie;
}

export interface CustomErrors {
  /** Statuses of members; empty: none is replaced. */
  readonly codes: readonly number[];
  readonly namespace: string;
  readonly ingress: string;
  /** The Service of the path, and its port. */
  readonly service: string;
  readonly port: number;
}

/** How clients see the cookie by which they keep their member. */
export interface SessionCookie {
  readonly name: string;
  /** `https`: only of ports that end TLS. */
  readonly secure: 'always' | 'never' | 'https';
  /** Such as `Path=/` and `Max-Age=3600`. */
  readonly attributes: readonly string[];
}

export interface WeightedBackend {
  /** The name of the pool's listener and backend; undefined: the reference is invalid. */
  readonly pool: string | undefined;
  /** 0 to 1,000,000. */
  readonly weight: number;
  readonly requestHeaders: HeaderChanges | undefined;
  readonly responseHeaders: HeaderChanges | undefined;
}

export interface RedirectAction {
  readonly kind: 'redirect';
  readonly status: 301 | 302 | 303 | 307 | 308;
  /** '' keeps that of the request. */
  readonly scheme: '' | 'http' | 'https';
  readonly hostname: string;
  /** 0: none in the location. */
  readonly port: number;
  readonly path: PathRewrite | undefined;
  /**
   * The whole location instead of its parts, without the query of the request: an http or https URL, with `$host`, `$scheme`, `$uri`,
   * `$request_uri`, `$is_args` and `$args` for those of the request.
   */
  readonly location?: string;
}

/** A fixed answer, such as that of a backend of an unknown kind. */
export interface AnswerAction {
  readonly kind: 'answer';
  readonly status: 403 | 404 | 500 | 503;
}

export interface Rewrite {
  /** '' keeps that of the request. */
  readonly hostname: string;
  readonly path: PathRewrite | undefined;
}

export interface PathRewrite {
  /** `groups`: `$1` to `$9` in the value are what groups of `pattern`, by which the path matches, take of it. */
  readonly kind: 'full' | 'prefix' | 'groups';
  /** A prefix has no slash at the end. */
  readonly value: string;
  readonly pattern?: string;
}

/** Applied in this order; each name at most once. Values are the author's: encoded before they reach a dataplane. */
export interface HeaderChanges {
  readonly set: readonly Header[];
  readonly add: readonly Header[];
  readonly remove: readonly string[];
}

export interface Header {
  readonly name: string;
  readonly value: string;
}

export interface Cors {
  /** `https://example.org`, `https://*.example.org`, `*`. */
  readonly origins: readonly string[];
  /** A wildcard is one label, not any number of them. */
  readonly oneLabel?: true;
  readonly methods: readonly string[];
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
  /** Seconds. */
  readonly maxAge: number;
  readonly credentials: boolean;
}

export interface Mirror {
  readonly pool: string;
  /** `numerator` of `denominator` requests. */
  readonly numerator: number;
  readonly denominator: number;
}

/** Basic authentication (RFC 7617). */
export interface RouteAuth {
  /** With the users: `default/users`; '' if none can be used, so that no client is let in. */
  readonly secret: string;
  readonly realm: string;
  /** Members do not get the password. */
  readonly removesHeader: boolean;
}

/** Seconds by which clocks may differ, if a route does not say. */
export const DEFAULT_LEEWAY_S = 30;

/** JSON Web Tokens (RFC 7519), signed with a private key. */
export interface RouteJwt {
  /** Where the public keys are: `configmap default/keys`, `secret default/keys`, `jwks https://…`; '': no client is let in. */
  readonly keys: string;
  readonly issuer: string;
  /** The claim `aud` has one of them; empty: it is not looked at. */
  readonly audiences: readonly string[];
  readonly from: TokenPlace;
  /** Seconds by which clocks may differ. */
  readonly leeway: number;
  /** Claims that a token must have, each with one of these values; without values: with any. */
  readonly required: readonly { readonly claim: string; readonly values: readonly string[] }[];
  /** Headers that members get, never the client's. A claim is a name, or a JSON pointer (RFC 6901) that begins with a slash. */
  readonly headers: readonly { readonly name: string; readonly claim: string }[];
  /** Members do not get the token. */
  readonly isRemoved?: true;
}

/** `bearer` and `header` by the name of a header, `cookie` by its own; only a `bearer` has the scheme `Bearer` before the token. */
export interface TokenPlace {
  readonly kind: 'bearer' | 'header' | 'cookie';
  readonly name: string;
}

/**
 * A service that is asked whether a request is let in: HTTPRoute's filter `ExternalAuth`, and `auth-url` of ingress-nginx. It
 * gets the request without its body. Texts with variables have `$host`, `$http_host`, `$request_uri`, `$escaped_request_uri`,
 * `$scheme`, `$uri`, `$args`, `$request_method` and `$remote_addr` for those of the request.
 */
export interface ExternalAuth {
  /** The name of the service's pool; '': it cannot be asked, so that no client is let in. */
  readonly pool: string;
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'of-request';
  /** The `Host` that it gets; '' for that of the request. */
  readonly host: string;
  /** With variables in its query only. */
  readonly path: string;
  /** The path and query of the request follow. */
  readonly isPrefix: boolean;
  /** The statuses that let a request in. */
  readonly letsIn: '200' | '2xx';
  /** Headers of the request that it gets, in lower case, besides those that say what is asked for; undefined: all. */
  readonly requestHeaders: readonly string[] | undefined;
  /** Headers of its answer that members get, never the client's; undefined: all. */
  readonly responseHeaders: readonly string[] | undefined;
  /** What clients get that are not let in. */
  readonly refusal: AuthRefusal;
  /** Its answers count for a time; absent: it is asked about each request. */
  readonly cache?: AuthCache;
}

/** `auth-cache-key` and `auth-cache-duration` of ingress-nginx. */
export interface AuthCache {
  /** Requests of a rule with the same values of these variables of nginx have the same answer; without the `$`. */
  readonly variables: readonly string[];
  /** By which of them clients are known: a request that has none of these is always asked about. */
  readonly credentials: readonly string[];
  /** For how many seconds an answer with the status counts; the service is asked for others each time. */
  readonly seconds: readonly (readonly [status: number, seconds: number])[];
}

export interface AuthRefusal {
  /** The URL to which clients are sent instead of status 401, with variables; '' for none. */
  readonly signIn: string;
  /** The header `X-Auth-Request-Redirect` of the question, with variables; '' for none. */
  readonly redirect: string;
  /** Redirects of the service reach the client, too. */
  readonly passesRedirects: boolean;
  /** Cookies of the service reach the client with every answer, not only with those below 400. */
  readonly alwaysSetsCookies: boolean;
}

/** What a route allows its clients. */
export interface RouteLimits {
  /** Canonical CIDRs; empty: all clients. */
  readonly allowedCidrs: readonly string[];
  readonly deniedCidrs: readonly string[];
  /** Requests per second from one source address; 0: no limit. */
  readonly requestRate: number;
  /** The same per minute; absent: no limit. */
  readonly minuteRate?: number;
  /** Requests at once from one source address; absent: no limit. */
  readonly requestsAtOnce?: number;
  /** Bytes; 0: no limit. */
  readonly bodyBytes: number;
}

/** TLS passed through by the name in the handshake; a name without a route: the connection is closed. */
export interface TlsRouting {
  readonly kind: 'tls';
  readonly hosts: readonly TlsHost[];
}

export interface TlsHost {
  readonly host: HostPattern;
  readonly backends: readonly WeightedBackend[];
  /** Only in `dispatch`: it has no backends, because the listener ends its TLS. */
  readonly isEnded?: true;
}

/** The share of backends that do not exist is rejected. */
export interface TcpRouting {
  readonly kind: 'tcp';
  readonly backends: readonly WeightedBackend[];
}
