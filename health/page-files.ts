// The files of the status page, read once: whatever stands in page/ under the name that the browser asks for.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';

export interface PageFile {
  readonly contentType: string;
  readonly body: Buffer;
  /** As of the header `ETag`. */
  readonly tag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const directory = new URL('./page/', import.meta.url);

/** By the path that is asked for; `index.html` is `/`. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const name of readdirSync(directory)) {
    const contentType = TYPES[extname(name)];
    if (contentType === undefined) continue;
    const body = readFileSync(new URL(name, directory));
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    files.set(name === 'index.html' ? '/' : `/${name}`, { contentType, body, tag });
  }
  return files;
}
