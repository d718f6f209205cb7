// Answers of a default backend, or of the class, instead of members, by annotations of Ingresses: the schema, and what one Ingress asks for. Pure.

import { BOOL, bool, list, number, rule } from '../routes/annotation-values.ts';
import type { OptionsOf } from '../routes/route-annotations.ts';

export const CUSTOM_ERRORS_ANNOTATIONS = {
  'custom-http-errors': rule(
    list(number(400, 599)),
    'statuses from 400 to 599, separated by commas',
    'Answers of members with these statuses are replaced by those of `default-backend`, with its own status; without one, by the page of the class for the status ([`error-pages`](error-pages.md)), or by the status alone. It is asked by `GET /` with `X-Code`, `X-Format`, `X-Original-URI`, `X-Namespace`, `X-Ingress-Name`, `X-Service-Name`, `X-Service-Port` and `X-Request-ID`, without cookies and credentials. If it has no answer within 5 seconds, or one of more than 15 KB, the client gets the status alone.',
  ),
  'disable-proxy-intercept-errors': rule(bool, BOOL, 'On: `custom-http-errors` has no effect.'),
} as const;

type Options = OptionsOf<typeof CUSTOM_ERRORS_ANNOTATIONS> & { readonly 'backend-protocol'?: string };

export interface ReadCustomErrors {
  /** Empty: answers of members pass. */
  readonly codes: readonly number[];
  /** A sentence; '' for none. */
  readonly fault: string;
}

const NONE: ReadCustomErrors = { codes: [], fault: '' };

export function customErrorsOf(options: Options): ReadCustomErrors {
  const codes = options['custom-http-errors'];
  if (codes === undefined || options['disable-proxy-intercept-errors'] === true) return NONE;
  const without = (why: string): ReadCustomErrors => ({
    codes: [],
    fault: `Annotation "custom-http-errors" has no effect: ${why}`,
  });
  if (options['backend-protocol']?.startsWith('GRPC')) return without('members speak gRPC');
  return { codes: [...new Set(codes)].sort((a, b) => a - b), fault: '' };
}
