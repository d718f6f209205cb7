// What the author of an Ingress makes of the paths of its requests: the path that members get, or an http or https URL, to
// which clients are sent, as in ingress-nginx. Pure.

import type { RedirectAction } from '../../model/routes.ts';
import { PATH } from '../routes/annotation-values.ts';

export interface RewriteTarget {
  /** With `$1` to `$9` for groups. */
  readonly path: string;
  /** Where clients are sent; undefined for a path. */
  readonly to: Pick<RedirectAction, 'scheme' | 'hostname' | 'port'> | undefined;
}

/** No part of a client's path is in the host. */
const URL_TARGET = /^(https?):\/\/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::([1-9]\d{0,4}))?(\/[^?#]*)?$/;

/** The text, if it is a target. */
export function rewriteTarget(text: string): string | undefined {
  return targetOf(text) === undefined ? undefined : text;
}

export function targetOf(text: string): RewriteTarget | undefined {
  if (PATH.test(text)) return { path: text, to: undefined };
  const [, scheme, hostname = '', port = '0', path = '/'] = URL_TARGET.exec(text) ?? [];
  if (scheme === undefined || !PATH.test(path) || Number(port) > 65_535) return undefined;
  return { path, to: { scheme: scheme === 'http' ? 'http' : 'https', hostname, port: Number(port) } };
}
