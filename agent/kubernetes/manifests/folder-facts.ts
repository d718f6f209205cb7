// What is asked of a folder of manifests, or of a file in it, without reading content. Synchronous: the page cache
// answers in microseconds.

import { accessSync, constants, readdirSync, type Stats, statfsSync, statSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';

/** What tells that a file has changed without reading it. */
export function stampOf(stat: Stats | string): string {
  return typeof stat === 'string' ? stat : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
}

/** Tells a folder from another one at its path, also after a reboot, which may number the disks anew; '' for none. */
export function lastingIdentity(folder: string): string {
  const stat = statOf(folder);
  return isFolder(stat) ? `${stat.ino} ${stat.birthtimeMs}` : '';
}

/** Why a folder of the settings cannot be read; undefined if it can. */
export function folderFault(path: string): HeadgateError | undefined {
  const retry = 'never';
  try {
    if (statSync(path).isDirectory()) {
      accessSync(path, constants.R_OK | constants.X_OK);
      return undefined;
    }
  } catch (cause) {
    const message = `Cannot read the folder of manifests "${path}"`;
    return new HeadgateError('SETTINGS_INVALID', message, { retry, cause });
  }
  return new HeadgateError('SETTINGS_INVALID', `Cannot read manifests from "${path}": it is not a folder`, {
    retry,
  });
}

/** Nothing is in it but what is passed over by its name. */
export function isBare(folder: string): boolean {
  return entriesIn(folder).every(({ name }) => name.startsWith('.'));
}

/** A text says why there is none. */
export function statOf(path: string): Stats | string {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? 'ENOENT';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'error';
  }
}

export function isFolder(stat: Stats | string): stat is Stats {
  return typeof stat !== 'string' && stat.isDirectory();
}

export function isReadable(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Sorted; none where the folder has gone this very moment, which the next event or look tells. */
export function entriesIn(folder: string): readonly { readonly name: string; readonly isLink: boolean }[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries
      .map((entry) => ({ name: entry.name, isLink: entry.isSymbolicLink() }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** Of ext4, XFS, Btrfs, ZFS, F2FS, tmpfs and overlay, in which nothing changes but through this kernel (statfs(2)). */
const LOCAL = new Set([0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1, 0xf2f52010, 0x01021994, 0x794c7630]);

export function isLocal(folder: string): boolean {
  try {
    return LOCAL.has(statfsSync(folder).type);
  } catch {
    return false;
  }
}

/** Inode numbers are used again, together with the time of birth they are not. */
export function identityOf(stat: Stats): string {
  return `${stat.dev} ${stat.ino} ${stat.birthtimeMs}`;
}
