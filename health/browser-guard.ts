// Keeps pages of other origins away from the agent: their scripts run in the operator's browser, which can reach the
// agent. Pure.

import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** Headers of every response: the page loads and runs nothing from other origins, and no other page can frame or read it. */
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
 * Why a browser's request is refused; '' if it is accepted. `localAddress`: the address on which it arrived.
 *
 * A foreign name that resolves to loopback gives its page the same origin (DNS rebinding). So a request on loopback must
 * name an IP address, `localhost` or this host.
 */
export function whyRefused(headers: IncomingHttpHeaders, localAddress: string, ownName: string): string {
  const site = headers['sec-fetch-site'];
  const isVisit = headers['sec-fetch-dest'] === 'document';
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isVisit)
    return 'Requests from pages of other sites are refused';
  if (headers.host === undefined || !isLoopback(localAddress)) return '';
  const name = hostOf(headers.host);
  const isOwn = isIP(name) !== 0 || ['localhost', ownName.toLowerCase()].includes(name);
  return isOwn ? '' : `The host must be an IP address, "localhost" or "${ownName}"`;
}

function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\./.test(address) || address === '::1';
}

/** The host of a Host header, without port and brackets. */
function hostOf(header: string): string {
  const [, v6, other] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header.toLowerCase()) ?? [];
  return (v6 ?? other ?? '').replace(/\.$/, '');
}
