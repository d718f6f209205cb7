// The answers to cross-origin requests that the annotations of an Ingress ask for, with the defaults of ingress-nginx. Pure.

import type { Cors } from '../../model/routes.ts';
import type { IngressOptions } from './nginx-annotations.ts';

const CORS_METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'];
const CORS_HEADERS =
  'DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization';
const CORS_MAX_AGE_SECONDS = 1_728_000;

export interface ReadCors {
  readonly cors: Cors | undefined;
  /** A sentence; '' if there is none. */
  readonly fault: string;
}

const NONE: ReadCors = { cors: undefined, fault: '' };

export function corsOf(options: IngressOptions): ReadCors {
  if (options['enable-cors'] !== true) return NONE;
  const origins = options['cors-allow-origin'] ?? ['*'];
  const isForAll = origins.includes('*');
  const cors: Cors = {
    origins,
    oneLabel: true,
    methods: options['cors-allow-methods'] ?? CORS_METHODS,
    allowHeaders: options['cors-allow-headers'] ?? CORS_HEADERS.split(','),
    exposeHeaders: options['cors-expose-headers'] ?? [],
    maxAge: options['cors-max-age'] ?? CORS_MAX_AGE_SECONDS,
    // Else any site could read what the user of a browser may read.
    credentials: !isForAll && (options['cors-allow-credentials'] ?? true),
  };
  const isRefused = isForAll && options['cors-allow-credentials'] === true;
  return { cors, fault: isRefused ? NO_CREDENTIALS : '' };
}

const NO_CREDENTIALS =
  'Annotation "cors-allow-credentials" is ignored: origin "*" gets no credentials; name the origins in "cors-allow-origin"';
