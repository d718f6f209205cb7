// Digests of the files that a pushed text names, because a certificate can change under one name.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { filesInList, filesOf } from './text/named-files.ts';

/** MD5 by path, of the files in lists of certificates as well; '' for a file that cannot be read. */
export async function fileDigests(text: string): Promise<ReadonlyMap<string, string>> {
  const { files, lists } = filesOf(text);
  const digests = new Map<string, string>();
  const add = async (path: string): Promise<void> => {
    if (digests.has(path)) return;
    digests.set(path, '');
    const content = await readFile(path).catch(() => undefined);
    if (content === undefined) return;
    digests.set(path, md5(content));
    if (lists.has(path)) await Promise.all(filesInList(content.toString('latin1')).map(add));
  };
  await Promise.all([...files].map(add));
  return digests;
}

export function md5(content: string | Buffer): string {
  return createHash('md5').update(content).digest('hex');
}
