// When a request goes to another member, as ingress-nginx's `proxy-next-upstream` says it. Pure.

import type { PoolRetry } from '../../model/load-balancer.ts';
import { number, rule } from '../routes/annotation-values.ts';
import type { OptionsOf } from '../routes/route-annotations.ts';

/** Failures of the connection, which HAProxy does not tell apart. */
const FAILURES = ['error', 'timeout', 'invalid_header'];
const CODES = ['http_403', 'http_404', 'http_500', 'http_502', 'http_503', 'http_504'];
const WORDS = [...FAILURES, ...CODES, 'non_idempotent'];
const MOST_TRIES = 10;
const TRIES = 3;

export const RETRY_ANNOTATIONS = {
  'proxy-next-upstream': rule(
    (text) => {
      const words = text.split(/\s+/);
      return text === 'off' || words.every((each) => WORDS.includes(each)) ? words : undefined;
    },
    'off, or some of error, timeout, invalid_header, non_idempotent, and http_403, _404, _500, _502, _503 and _504',
    'When another member gets the request: after a lost connection, a time-out of `proxy-read-timeout` or an invalid answer, which are one, and after these statuses; POST, PATCH and LOCK only with `non_idempotent`. Default: off. A member that does not accept the connection is always replaced.',
  ),
  'proxy-next-upstream-tries': rule(
    number(0, MOST_TRIES),
    `a number, at most ${MOST_TRIES}`,
    `How many members get the request at most. Default: ${TRIES}; 0: ${MOST_TRIES}.`,
  ),
} as const;

export interface NextUpstream {
  readonly retry: PoolRetry;
  readonly idempotentOnly: boolean;
}

/** undefined: no other member gets a request that one has got. */
export function nextUpstreamOf(options: OptionsOf<typeof RETRY_ANNOTATIONS>): NextUpstream | undefined {
  const words = options['proxy-next-upstream'] ?? ['off'];
  const attempts = ((options['proxy-next-upstream-tries'] ?? TRIES) || MOST_TRIES) - 1;
  if (words.includes('off') || attempts === 0) return undefined;
  const codes = CODES.filter((each) => words.includes(each)).map((each) =>
    Number(each.slice('http_'.length)),
  );
  return { retry: { attempts, codes }, idempotentOnly: !words.includes('non_idempotent') };
}
