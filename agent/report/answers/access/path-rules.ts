// What HAProxy does with a request's path before it looks for a route (templates/haproxy/routes.mustache, routes.lua). Pure.

import { oneSpelling } from '../../../base/one-spelling.ts';

/** The setting: what happens to paths with `.` or `..` between slashes. */
export type DotSegments = 'reject' | 'normalize' | 'pass';
/** The setting: where paths are refused that members read in different ways. */
export type AmbiguousPaths = 'reject-where-guarded' | 'reject' | 'pass';

const AMBIGUOUS = /\/\/|;|%2f|%3b|%5c|\\|%0|%1|%7f/i;
const DOTS = /(\/|%2f)(\.|%2e){1,2}(\/|%2f|;|$)/i;

export interface ReadPath {
  /** By which the route is looked for, in its one spelling. */
  readonly path: string;
  /** It is refused on hosts some of whose paths are guarded. */
  readonly isAmbiguous: boolean;
  /** Why the request is refused, in words; '' if it is not. */
  readonly refused: string;
}

/** The settings that say which paths are refused. */
export interface PathSettings {
  readonly dotSegments: DotSegments;
  readonly ambiguousPaths: AmbiguousPaths;
}

export function readPath(given: string, { dotSegments, ambiguousPaths }: PathSettings): ReadPath {
  const hasDots = DOTS.test(given);
  const sent = hasDots && dotSegments === 'normalize' ? withoutDots(given) : given;
  const isAmbiguous = AMBIGUOUS.test(sent);
  const faults = [
    ...(hasDots && dotSegments === 'reject' ? ['it has dot segments (setting dotSegments)'] : []),
    ...(isAmbiguous && ambiguousPaths === 'reject'
      ? ['it can be read in several ways (setting ambiguousPaths)']
      : []),
  ];
  return {
    path: oneSpelling(sent),
    isAmbiguous: isAmbiguous && ambiguousPaths === 'reject-where-guarded',
    refused: faults[0] ?? '',
  };
}

/** RFC 3986, section 5.2.4; encoded slashes and dots count as others. */
function withoutDots(text: string): string {
  const path = text.replace(/%2f/gi, '/');
  const kept: string[] = [];
  for (const segment of path.split('/').slice(1)) {
    const name = segment.replace(/%2e/gi, '.').replace(/;.*/, '');
    if (name === '..') kept.pop();
    else if (name !== '.') kept.push(segment);
  }
  const resolved = `/${kept.join('/')}`;
  const isFolder = /\/\.\.?$/.test(path.replace(/%2e/gi, '.').replace(/;[^/]*$/, ''));
  return isFolder && !resolved.endsWith('/') ? `${resolved}/` : resolved;
}
