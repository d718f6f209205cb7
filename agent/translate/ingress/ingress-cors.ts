// The answers to cross-origin requests that the annotations of an Ingress ask for, with the defaults of ingress-nginx. Pure.

import type { Cors } from '../../model/routes.ts';
import type { IngressOptions } from './nginx-annotations.ts';

const CORS_METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'];
const CORS_HEADERS =
  'DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization';
const CORS_MAX_AGE_SECONDS = 1_728_000;

export function corsOf(options: IngressOptions): Cors | undefined {
  if (options['enable-cors'] !== true) return undefined;
  return {
    origins: options['cors-allow-origin'] ?? ['*'],
    methods: options['cors-allow-methods'] ?? CORS_METHODS,
    allowHeaders: options['cors-allow-headers'] ?? CORS_HEADERS.split(','),
    exposeHeaders: options['cors-expose-headers'] ?? [],
    maxAge: options['cors-max-age'] ?? CORS_MAX_AGE_SECONDS,
    credentials: options['cors-allow-credentials'] ?? true,
  };
}
