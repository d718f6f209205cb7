// Reads manifests, and the facts about folders and files that show a change without reading content.
// Synchronous: the page cache answers at once, the thread pool much later while it is busy with fsync.

import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  type Stats,
  statfsSync,
  statSync,
} from 'node:fs';
import { HeadgateError, messageOf } from '../../base/errors.ts';

export type ManifestRead =
  | ManifestContent
  | { readonly kind: 'Absent'; readonly stamp: string }
  | { readonly kind: 'Unreadable'; readonly stamp: string; readonly message: string };

export interface ManifestContent {
  readonly kind: 'Content';
  readonly bytes: Buffer;
  readonly stamp: string;
}

const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** ext4, XFS, Btrfs, ZFS, F2FS, tmpfs and overlay, which change only through this kernel (statfs(2)). */
const LOCAL_FILE_SYSTEMS = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1, 0xf2f52010, 0x01021994, 0x794c7630,
]);

/**
 * Anything but a regular file counts as absent: users mask a file by a link to /dev/null. Never waits for a pipe.
 * A link out of `folders` is not followed, because the agent reads files that an author of manifests may not.
 */
export function readManifest(path: string, folders: readonly string[]): ManifestRead {
  let file: number | undefined;
  try {
    const real = realpathSync.native(path);
    if (!folders.some((folder) => isIn(real, folder) || isIn(real, realpathSync.native(folder))))
      return outside(real);
    file = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK);
    // Before the content, so that a change in between changes the stamp.
    const stat = fstatSync(file);
    const stamp = stampOf(stat);
    if (!stat.isFile()) return { kind: 'Absent', stamp };
    if (stat.size > MAX_FILE_BYTES)
      return { kind: 'Unreadable', stamp, message: `The file is larger than ${MAX_FILE_BYTES} bytes` };
    return { kind: 'Content', bytes: readFileSync(file), stamp };
  } catch (error) {
    const stamp = (error as NodeJS.ErrnoException).code ?? 'error';
    if (stamp === 'ENOENT' || stamp === 'ENOTDIR' || stamp === 'ENXIO') return { kind: 'Absent', stamp };
    return { kind: 'Unreadable', stamp, message: `Cannot read the file: ${messageOf(error)}` };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Errors: those of stat(2). */
function outside(real: string): ManifestRead {
  const stat = statSync(real);
  const stamp = stampOf(stat);
  if (!stat.isFile()) return { kind: 'Absent', stamp };
  const message = `The link is not followed, because it leads to ${real}, outside the folders of manifests`;
  return { kind: 'Unreadable', stamp, message };
}

/** Changes with each change of the file. */
export function stampOf(stat: Stats | string): string {
  return typeof stat === 'string' ? stat : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
}

/** Differs from that of another folder at the same path. Inode numbers are reused, with the time of birth they are not. */
export function identityOf(stat: Stats): string {
  return `${stat.dev} ${stat.ino} ${stat.birthtimeMs}`;
}

/** The same over a reboot, which may number the disks differently; '' if there is no folder. */
export function lastingIdentity(folder: string): string {
  const stat = statOf(folder);
  return isFolder(stat) ? `${stat.ino} ${stat.birthtimeMs}` : '';
}

/** Why the agent cannot read a folder or a file of the settings; undefined if it can. */
export function pathFault(path: string): HeadgateError | undefined {
  try {
    const stat = statSync(path);
    if (!stat.isDirectory() && !stat.isFile()) throw new Error('it is neither a folder nor a file');
    accessSync(path, stat.isFile() ? constants.R_OK : constants.R_OK | constants.X_OK);
    return undefined;
  } catch (cause) {
    const message = `Cannot read the manifests "${path}"`;
    return new HeadgateError('SETTINGS_INVALID', message, { retry: 'never', cause });
  }
}

/** True if all entries are ignored because of their names. */
export function isBare(folder: string): boolean {
  return entriesIn(folder).every(({ name }) => name.startsWith('.'));
}

/** The error's code if there is no file. */
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

export function isFile(stat: Stats | string): stat is Stats {
  return typeof stat !== 'string' && stat.isFile();
}

export function isReadable(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Sorted; empty if the folder has just gone, which the next event or look shows. */
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

export function isLocal(folder: string): boolean {
  try {
    return LOCAL_FILE_SYSTEMS.has(statfsSync(folder).type);
  } catch {
    return false;
  }
}

/** True for a path below the folder. */
export function isIn(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
