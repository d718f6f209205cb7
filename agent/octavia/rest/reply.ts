// Answers of the REST API, with the bodies of Octavia's own agent. The client reads codes and some of the words.

import { createHash } from 'node:crypto';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { http } from '../../host/node-http.ts';

export interface Reply {
  readonly status: number;
  readonly type: 'application/json' | 'text/plain; charset=utf-8';
  readonly body: string;
  readonly etag?: string;
  /** The connection is closed after the answer. */
  readonly isLast?: boolean;
}

export function json(status: number, body: unknown, etag?: string): Reply {
  return {
    status,
    type: 'application/json',
    body: JSON.stringify(body),
    ...(etag !== undefined && { etag }),
  };
}

export function ok(status: 200 | 202, details?: string): Reply {
  return json(status, { message: 'OK', ...(details !== undefined && { details }) });
}

/** `content`: what the controller has sent. */
export function stored(status: 200 | 202, content: Buffer): Reply {
  return json(status, { message: 'OK' }, md5(content));
}

export function plain(text: string): Reply {
  return { status: 200, type: 'text/plain; charset=utf-8', body: text, etag: md5(text) };
}

export function md5(content: Buffer | string): string {
  return createHash('md5').update(content).digest('hex');
}

/** An error of the router: a path, a method or a form that the API does not have. */
export function routerError(status: 400 | 404 | 405 | 500, why: string = WHY[status]): Reply {
  return json(status, { error: `${status} ${http.STATUS_CODES[status]}: ${why}`, http_code: status });
}

const WHY = {
  400: 'The browser (or proxy) sent a request that this server could not understand.',
  404: 'The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.',
  405: 'The method is not allowed for the requested URL.',
  500: 'The server encountered an internal error and was unable to complete your request.',
} as const;

export function invalid(details: string): Reply {
  return json(400, { message: 'Invalid request', details });
}

/** The client takes a code that it does not know, such as 413, for success. */
export function tooLarge(limit: number): Reply {
  return { ...invalid(`The body has more than ${limit} bytes`), isLast: true };
}

export function noLoadBalancer(id: string): Reply {
  return json(404, { message: 'Loadbalancer Not Found', details: `No loadbalancer with UUID: ${id}` });
}

/** `failure`: the message if the error has no code of its own. */
export function replyOf(error: unknown, failure: string): Reply {
  const details = messageOf(error);
  switch (error instanceof HeadgateError ? error.code : undefined) {
    case 'HAPROXY_REJECTED':
      // HAProxy's own lines.
      return invalid((error as HeadgateError).message);
    case 'OCTAVIA_INVALID':
      return invalid(details);
    // With exactly these words the client asks again.
    case 'OCTAVIA_NO_INTERFACE':
      return json(404, { details: 'No suitable network interface found' });
    case 'OCTAVIA_EXISTS':
      return json(409, { message: 'Interface already exists' });
    case 'OCTAVIA_NOT_FOUND':
      return json(404, { message: 'Not Found', details });
    default:
      return json(500, { message: failure, details });
  }
}
