// The pages of a listener in HAProxy's file: what HAProxy answers with, and what its rules return. Pure.

import { join } from 'node:path';
import type { View } from '../../base/template.ts';
import type { ErrorPages, Listener } from '../../model/load-balancer.ts';
import { fileName } from './tls-config.ts';

/** The answers of rules without a page of the status. */
const OWN_ANSWERS = {
  noPath: ['400', 'no path'],
  badHost: ['400', 'not one host'],
  dots: ['400', 'path with dot segments'],
  ambiguous: ['400', 'path that can be read in several ways'],
  password: ['401', 'password needed'],
  stranger: ['401', 'not authorized'],
  token: ['401', 'token needed'],
  forbidden: ['403', 'client not allowed'],
  noRoute: ['404', 'no route'],
  body: ['413', 'body too large'],
  longUrl: ['414', 'URL too long'],
  rate: ['429', 'too many requests'],
  guesses: ['429', 'too many wrong passwords'],
  largeHeaders: ['431', 'headers too large'],
  unasked: ['503', 'no answer of the authorization server'],
} as const;

/** Named by its content. */
export function pageFile(folder: string, { name, fingerprint }: ErrorPages, status: string): string {
  return join(folder, `${fileName(`pages_${name.replace(/[ /]/g, '_')}`)}_${fingerprint}_${status}.html`);
}

/** Lines `http-error`. */
export function errorPageViews(
  { errorPages }: Pick<Listener, 'errorPages'>,
  folder: string,
): readonly View[] {
  return (errorPages?.statuses ?? []).map((status) => ({
    status,
    page: pageWords(folder, errorPages, status),
  }));
}

/** What the rules of routes return: the words behind `http-request return`. */
export function answerWords({ errorPages }: Pick<Listener, 'errorPages'>, folder: string): View {
  return Object.fromEntries(
    Object.entries(OWN_ANSWERS).map(([name, [status, text]]) => {
      const page = pageWords(folder, errorPages, status);
      return [`${name}Answer`, `status ${status}${page || ` content-type text/plain string "${text}\\n"`}`];
    }),
  );
}

/** The words behind a status, with a blank before each; '' without a page. */
export function pageWords(folder: string, pages: ErrorPages | undefined, status: string): string {
  if (pages === undefined || !pages.statuses.includes(status)) return '';
  return ` content-type "text/html; charset=utf-8" file ${pageFile(folder, pages, status)} hdr cache-control no-cache`;
}
