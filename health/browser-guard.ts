// What keeps the pages of others away from this one: their scripts run in the operator's browser, which reaches
// what they cannot. Pure.

import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** For every answer: nothing from elsewhere is loaded or run, and nobody else may frame or read it. */
export const guardHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
};

/**
 * Why a browser's request is refused, '' where it is not. `localAddress` is where the request came in.
 *
 * A name of somebody else's that resolves to loopback makes that page one of the same origin (DNS rebinding), so that
 * loopback is only to be asked for by an address or as `localhost`, or by this host's own name.
 */
export function whyRefused(headers: IncomingHttpHeaders, localAddress: string, ownName: string): string {
  const site = headers['sec-fetch-site'];
  const isVisit = headers['sec-fetch-dest'] === 'document';
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isVisit)
    return 'Another site may not ask this agent';
  if (headers.host === undefined || !isLoopback(localAddress)) return '';
  const name = hostOf(headers.host);
  const isOwn = isIP(name) !== 0 || ['localhost', ownName.toLowerCase()].includes(name);
  return isOwn ? '' : 'Ask for this agent by its address, or as localhost';
}

function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\./.test(address) || address === '::1';
}

/** Of a Host header, without port and brackets. */
function hostOf(header: string): string {
  const [, v6, other] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header.toLowerCase()) ?? [];
  return (v6 ?? other ?? '').replace(/\.$/, '');
}
