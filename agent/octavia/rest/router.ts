// Finds the route of a request. Pure.

import type { Reply } from './reply.ts';

export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

export interface Call {
  /** The value of `:name` in the pattern. */
  param(name: string): string;
  /** The whole body. Errors: BODY_TOO_LARGE. */
  body(maxBytes: number): Promise<Buffer>;
}

export interface Route {
  readonly method: Method;
  /** Without the version: `loadbalancer/:lb/haproxy`. */
  readonly pattern: string;
  readonly answer: (call: Call) => Promise<Reply>;
}

export type Found =
  | { readonly kind: 'route'; readonly route: Route; readonly params: ReadonlyMap<string, string> }
  | { readonly kind: 'not found' }
  | { readonly kind: 'wrong method' };

export const API_VERSION = '1.0';

/** `url`: of the request. The client asks for the versions at `//`. */
export function findRoute(routes: readonly Route[], method: string, url: string): Found {
  const segments = segmentsOf(url);
  if (segments === undefined) return { kind: 'not found' };
  const wanted = method === 'HEAD' ? 'GET' : method;
  let hasPath = false;
  for (const route of routes) {
    const params = match(route.pattern, segments);
    if (params === undefined) continue;
    if (route.method === wanted) return { kind: 'route', route, params };
    hasPath = true;
  }
  return { kind: hasPath ? 'wrong method' : 'not found' };
}

/** The parts after the version, decoded; none for the list of versions. undefined if the path is none of the API. */
function segmentsOf(url: string): readonly string[] | undefined {
  const [path = ''] = url.split('?', 1);
  if (path === '/' || path === '//') return [];
  const [, version, ...rest] = path.split('/');
  if (version !== API_VERSION || rest.length === 0) return undefined;
  try {
    const decoded = rest.map(decodeURIComponent);
    return decoded.every((segment) => segment !== '' && !/[/\0]/.test(segment)) ? decoded : undefined;
  } catch {
    return undefined;
  }
}

function match(pattern: string, segments: readonly string[]): ReadonlyMap<string, string> | undefined {
  const parts = pattern === '' ? [] : pattern.split('/');
  if (parts.length !== segments.length) return undefined;
  const params = new Map<string, string>();
  for (const [at, part] of parts.entries()) {
    const segment = segments[at] ?? '';
    if (part.startsWith(':')) params.set(part.slice(1), segment);
    else if (part !== segment) return undefined;
  }
  return params;
}
