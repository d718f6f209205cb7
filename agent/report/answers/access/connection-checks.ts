// What is checked before the first request: the connection and its TLS handshake. Pure.

import { quote } from '../../../base/quote.ts';
import { type CheckResult, CLOSED, limited, NO_HANDSHAKE, type Way } from './check.ts';
import { rangesResult } from './ranges.ts';

export function connectionLimit({ listener, atEachHost }: Way): CheckResult | undefined {
  const { connectionLimit: most } = listener;
  return most === 0 ? undefined : limited(`${most} connections at once${atEachHost}`, 'further ones wait');
}

export function namespaceShare({ listener: { engine, labels } }: Way): CheckResult | undefined {
  if (engine === 'kernel') return undefined;
  return limited(`the connections that namespace ${quote(labels.namespace)} may have together`, CLOSED);
}

export function sourceRanges({ listener, client }: Way): CheckResult {
  const { allowedCidrs: allowed, family, engine } = listener;
  const lost = engine === 'kernel' ? 'packets are dropped' : CLOSED;
  return rangesResult({ allowed, denied: [] }, family, client, lost);
}

export function connectionRate({ listener: { rateLimit }, atEachHost }: Way): CheckResult | undefined {
  if (rateLimit === 0) return undefined;
  return limited(`${rateLimit} new connections a second from one address${atEachHost}`, CLOSED);
}

export function handshake({ listener: { tls } }: Way): CheckResult | undefined {
  return tls && limited(`TLS ${tls.minVersion} or later`, NO_HANDSHAKE);
}
