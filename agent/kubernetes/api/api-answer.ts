// What an answer of the API server means for the one who asked. Pure.

import { backoffMs } from '../../base/backoff.ts';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { isMapping } from '../../base/validate.ts';
import type { ApiResponse } from './kubernetes-api.ts';

/** The body of a good answer. Errors: API_REFUSED. */
export function accept(response: ApiResponse): unknown {
  if (response.status >= 200 && response.status < 300) return response.body;
  throw new HeadgateError('API_REFUSED', refusalText(response), { retry: 'later' });
}

/** `409 Conflict: the object has been modified`, from the Status object of a refusal. */
export function refusalText({ status, body }: ApiResponse): string {
  const { reason, message } = isMapping(body) ? body : {};
  const named = typeof reason === 'string' && reason !== '' ? `${status} ${reason}` : String(status);
  const text = typeof message === 'string' ? message : typeof body === 'string' ? quote(body) : '';
  return text === '' || text === '""'
    ? `The API server answers ${named}`
    : `The API server answers ${named}: ${text}`;
}

/** What an answer asks for in milliseconds; undefined where it does not say. */
export function waitAsked({ headers }: ApiResponse): number | undefined {
  return retryAfter(headers['retry-after']) || undefined;
}

/** Milliseconds until the next request after `failures` in a row, with jitter as in client-go. `random`: 0 to 1. */
export function apiBackoffMs(failures: number, random: () => number): number {
  return backoffMs(failures, { firstMs: 800, mostMs: 30_000, random });
}

/** An API server that asks for more patience than this is not believed. */
const MOST_RETRY_AFTER_MS = 120_000;

/** What the header Retry-After asks for, in milliseconds (RFC 9110, 10.2.3); 0 if it is absent or no number. */
export function retryAfter(header: string | undefined): number {
  if (header === undefined || !/^\d{1,9}$/.test(header)) return 0;
  return Math.min(MOST_RETRY_AFTER_MS, Number(header) * 1000);
}
