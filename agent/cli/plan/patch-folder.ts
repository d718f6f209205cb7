// Applies a unified diff, such as git prints, to the files of a folder.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { applyPatch, parsePatch } from 'diff';
import { messageOf } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { usageError } from '../command-line.ts';

const NO_FILE = '/dev/null';

/** Errors: USAGE if a file is not in the folder, or its text is another than the patch expects. */
export function patchFolder(folder: string, text: string): void {
  for (const patch of parsed(text)) {
    const { oldFileName: old = NO_FILE, newFileName: now = NO_FILE } = patch;
    const isNew = old === NO_FILE;
    const path = isNew ? join(folder, newPath(folder, now)) : existing(folder, old);
    const before = isNew ? '' : readFileSync(path, 'utf8');
    const after = applyPatch(before, patch);
    if (after === false)
      throw usageError(
        `Cannot apply the patch to ${quote(relative(folder, path))}: its text is not the one that the patch changes`,
      );
    if (now === NO_FILE) rmSync(path);
    else {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, after);
    }
  }
}

function parsed(text: string): ReturnType<typeof parsePatch> {
  let patches: ReturnType<typeof parsePatch>;
  try {
    patches = parsePatch(text);
  } catch (error) {
    throw usageError(`Cannot read the patch: ${messageOf(error)}`);
  }
  const changing = patches.filter(({ hunks }) => hunks.length > 0);
  if (changing.length === 0)
    throw usageError('Cannot read the patch: standard input has no unified diff, as "git diff" prints');
  return changing;
}

/** The file of the folder whose path ends the name in the patch, which may begin elsewhere: `a/deploy/shop.yaml`. */
function existing(folder: string, name: string): string {
  const files = filesBelow(folder).filter((path) => `/${name}`.endsWith(`/${relative(folder, path)}`));
  const [found] = files.sort((a, b) => b.length - a.length);
  if (found === undefined) throw usageError(`Cannot apply the patch: the folder has no file ${quote(name)}`);
  return found;
}

/** Below the folder: what follows the longest folder that is there. */
function newPath(folder: string, name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw usageError(`Cannot apply the patch: ${quote(name)} is outside the folder`);
  for (let at = 0; at < parts.length - 1; at++)
    if (existsSync(join(folder, ...parts.slice(at, -1)))) return join(...parts.slice(at));
  return parts.at(-1) ?? '';
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
