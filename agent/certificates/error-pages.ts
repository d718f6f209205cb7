// Checks the pages that HAProxy answers with instead of its own, by status. Each is a file of HAProxy's, never a part of its
// configuration, so that a body may have any text. Pure.

import { createHash } from 'node:crypto';
import { quote } from '../base/quote.ts';
import { SecretText } from '../base/secret-text.ts';
import type { Unusable } from './key-pair.ts';

export interface ErrorPages {
  /** The bodies by status, as haproxy/config/page-files.ts reads them. */
  readonly pem: SecretText;
  /** A hash of `pem`. */
  readonly fingerprint: string;
  readonly expires: number;
  /** Sorted. */
  readonly statuses: readonly string[];
  /** A sentence's end for each page that cannot be used. */
  readonly faults: readonly string[];
}

/** What HAProxy answers itself, once it has read a request. */
export const PAGE_STATUSES = ['400', '401', '403', '404', '413', '429', '500', '502', '503', '504'] as const;

/** HAProxy needs room for headers in its buffer of 16 KiB. */
export const MAX_PAGE_BYTES = 12 * 1024;
const MOST_FAULTS = 5;

/** `fields`: of a ConfigMap. */
export function checkErrorPages(fields: Readonly<Record<string, unknown>>): ErrorPages | Unusable {
  const pages: Record<string, string> = {};
  const faults: string[] = [];
  for (const key of Object.keys(fields).sort()) {
    const body = fields[key];
    const fault = faultOf(key, body);
    if (fault === undefined) pages[key] = String(body);
    else faults.push(fault);
  }
  const statuses = Object.keys(pages).sort();
  if (statuses.length === 0) return faults[0] ?? 'it has no page';
  const text = JSON.stringify(statuses.map((status) => [status, pages[status]]));
  return {
    pem: new SecretText(text),
    fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 32),
    expires: Number.POSITIVE_INFINITY,
    statuses,
    faults: faults.slice(0, MOST_FAULTS),
  };
}

/** True for a ConfigMap that may have pages. */
export function hasErrorPages(fields: unknown): boolean {
  return (
    typeof fields === 'object' && fields !== null && Object.keys(fields).some((key) => /^[45]/.test(key))
  );
}

function faultOf(key: string, body: unknown): string | undefined {
  if (!PAGE_STATUSES.some((status) => status === key))
    return `key ${quote(key)} is not a status that can have a page: ${PAGE_STATUSES.join(', ')}`;
  if (typeof body !== 'string' || body === '') return `the page of "${key}" is no text, or empty`;
  const bytes = Buffer.byteLength(body);
  return bytes > MAX_PAGE_BYTES
    ? `the page of "${key}" has ${bytes} bytes, and at most ${MAX_PAGE_BYTES} are allowed`
    : undefined;
}
