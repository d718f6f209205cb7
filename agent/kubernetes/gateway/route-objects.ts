// The routes of the Gateway API as flat values with the API's defaults filled in.
// route-schemas.ts makes them; the fields have the names of the API (gateway.networking.k8s.io/v1).

import type { DatedObject, ObjectReference } from './object-reference.ts';

export type Route = HttpRoute | GrpcRoute | TlsRoute | TcpRoute | UdpRoute;
export type RouteKind = Route['kind'];

interface RouteObject extends DatedObject {
  readonly annotations: Readonly<Record<string, string>>;
  readonly parents: readonly ParentReference[];
}

export interface ParentReference extends ObjectReference {
  /** '' and 0: not written. */
  readonly sectionName: string;
  readonly port: number;
}

export interface HttpRoute extends RouteObject {
  readonly kind: 'HTTPRoute';
  /** Empty: those of the listener. `*.example.org` for a wildcard. */
  readonly hostnames: readonly string[];
  readonly rules: readonly HttpRule[];
}

export interface HttpRule {
  /** '' for none. */
  readonly name: string;
  /** Not empty. */
  readonly matches: readonly HttpMatch[];
  readonly filters: readonly RouteFilter[];
  readonly backends: readonly HttpBackend[];
  readonly timeouts: RouteTimeouts;
  readonly retry: RouteRetry | undefined;
  readonly sessionPersistence: SessionPersistence | undefined;
}

export interface HttpMatch {
  readonly path: { readonly type: 'Exact' | 'PathPrefix' | 'RegularExpression'; readonly value: string };
  readonly headers: readonly TextMatch[];
  readonly query: readonly TextMatch[];
  /** '' for any. */
  readonly method: string;
}

export interface TextMatch {
  readonly type: 'Exact' | 'RegularExpression';
  /** As written: names of headers are equal without regard to case. */
  readonly name: string;
  readonly value: string;
}

/** Milliseconds; 0: no time-out; undefined: not written. */
export interface RouteTimeouts {
  readonly request: number | undefined;
  readonly backendRequest: number | undefined;
}

export interface RouteRetry {
  /** Status codes from 400 to 599. */
  readonly codes: readonly number[];
  /** 0: not written. */
  readonly attempts: number;
  /** Milliseconds; 0: not written. */
  readonly backoff: number;
}

export interface SessionPersistence {
  /** '' for none. */
  readonly sessionName: string;
  readonly type: 'Cookie' | 'Header';
  readonly lifetime: 'Session' | 'Permanent';
  /** Milliseconds; 0: not written. */
  readonly absoluteTimeout: number;
}

export interface BackendReference extends ObjectReference {
  /** 0: not written. */
  readonly port: number;
  readonly weight: number;
}

export interface HttpBackend extends BackendReference {
  readonly filters: readonly RouteFilter[];
}

export type RouteFilter =
  | { readonly kind: 'requestHeaders'; readonly changes: HeaderFilter }
  | { readonly kind: 'responseHeaders'; readonly changes: HeaderFilter }
  | { readonly kind: 'redirect'; readonly redirect: RedirectFilter }
  | { readonly kind: 'rewrite'; readonly rewrite: RewriteFilter }
  | { readonly kind: 'mirror'; readonly mirror: MirrorFilter }
  | { readonly kind: 'cors'; readonly cors: CorsFilter }
  | { readonly kind: 'externalAuth'; readonly auth: ExternalAuthFilter }
  | UnknownFilter;

/** One that the agent does not know: an extension, or of a later version of the API. */
export interface UnknownFilter {
  readonly kind: 'unknown';
  readonly type: string;
}

export interface HeaderFilter {
  readonly set: readonly { readonly name: string; readonly value: string }[];
  readonly add: readonly { readonly name: string; readonly value: string }[];
  readonly remove: readonly string[];
}

export interface RedirectFilter {
  /** '' and 0: not written. */
  readonly scheme: '' | 'http' | 'https';
  readonly hostname: string;
  readonly path: PathModifier | undefined;
  readonly port: number;
  readonly statusCode: 301 | 302 | 303 | 307 | 308;
}

export interface RewriteFilter {
  readonly hostname: string;
  readonly path: PathModifier | undefined;
}

export interface PathModifier {
  readonly type: 'ReplaceFullPath' | 'ReplacePrefixMatch';
  readonly value: string;
}

export interface MirrorFilter {
  readonly backend: Omit<BackendReference, 'weight'>;
  /** `numerator` of `denominator` requests. */
  readonly numerator: number;
  readonly denominator: number;
}

export interface CorsFilter {
  readonly allowOrigins: readonly string[];
  readonly allowCredentials: boolean;
  readonly allowMethods: readonly string[];
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
  /** Seconds. */
  readonly maxAge: number;
}

/** Asks a service whether a request is let in. */
export interface ExternalAuthFilter {
  readonly protocol: 'HTTP' | 'GRPC';
  readonly backend: Omit<BackendReference, 'weight'>;
  /** In front of the request's path; '' for nothing. */
  readonly path: string;
  /** Headers of the request that it gets besides `Authorization`. */
  readonly allowedHeaders: readonly string[];
  /** Headers of its answer that members get; empty: all. */
  readonly allowedResponseHeaders: readonly string[];
  /** Bytes of the body that it wants; 0: none. */
  readonly bodyBytes: number;
}

export interface GrpcRoute extends RouteObject {
  readonly kind: 'GRPCRoute';
  readonly hostnames: readonly string[];
  readonly rules: readonly GrpcRule[];
}

export interface GrpcRule {
  readonly name: string;
  /** Not empty. */
  readonly matches: readonly GrpcMatch[];
  readonly filters: readonly RouteFilter[];
  readonly backends: readonly HttpBackend[];
  readonly sessionPersistence: SessionPersistence | undefined;
}

export interface GrpcMatch {
  readonly type: 'Exact' | 'RegularExpression';
  /** '' for any. */
  readonly service: string;
  readonly method: string;
  readonly headers: readonly TextMatch[];
}

export interface TlsRoute extends RouteObject {
  readonly kind: 'TLSRoute';
  readonly hostnames: readonly string[];
  readonly rules: readonly ConnectionRule[];
}

export interface TcpRoute extends RouteObject {
  readonly kind: 'TCPRoute';
  readonly rules: readonly ConnectionRule[];
}

export interface UdpRoute extends RouteObject {
  readonly kind: 'UDPRoute';
  readonly rules: readonly ConnectionRule[];
}

export interface ConnectionRule {
  readonly name: string;
  readonly backends: readonly BackendReference[];
}
