// The error pages that an earlier agent has written for HAProxy: without them each start would reload HAProxy twice. Reads files
// only.

import { checkErrorPages, type ErrorPages } from './error-pages.ts';
import { writtenFiles } from './written-files.ts';

/** As haproxy/config/error-pages.ts names them. */
const PAGE = /^pages_configmap_([a-z0-9-]+)_([a-z0-9.-]+)_([0-9a-f]{32})_(\d{3})\.html$/;

/**
 * By the object: `configmap default/pages`. Pages whose hash is another one, because a file is missing, are left out; of several
 * contents of one object the last one that was written counts.
 */
export function writtenErrorPages(folder: string): ReadonlyMap<string, ErrorPages> {
  const found = new Map<string, { name: string; fingerprint: string; fields: Record<string, string> }>();
  for (const { groups, text } of writtenFiles(folder, PAGE)) {
    const [namespace, object, fingerprint = '', status = ''] = groups;
    const name = `configmap ${namespace}/${object}`;
    const known = found.get(`${name} ${fingerprint}`) ?? { name, fingerprint, fields: {} };
    found.set(`${name} ${fingerprint}`, known);
    known.fields[status] = text;
  }
  const kept = new Map<string, ErrorPages>();
  for (const { name, fingerprint, fields } of found.values()) {
    const pages = checkErrorPages(fields);
    if (typeof pages !== 'string' && pages.fingerprint === fingerprint) kept.set(name, pages);
  }
  return kept;
}
