// The architectures that packages are built for, by Debian's names, and Node for each: that of node_modules for this
// machine's, else the same version from npm, unpacked in .cache.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Architecture {
  /** Debian's name. */
  readonly name: string;
  /** Node's name: process.arch. */
  readonly node: string;
  /** The program of Debian's binutils: `x86_64-linux-gnu-strip`. */
  readonly strip: string;
}

export const ARCHITECTURES: readonly Architecture[] = [
  { name: 'amd64', node: 'x64', strip: 'x86_64-linux-gnu-strip' },
  { name: 'arm64', node: 'arm64', strip: 'aarch64-linux-gnu-strip' },
];

const root = fileURLToPath(new URL('..', import.meta.url));

/** Errors: a name that is not one of Debian's for ARCHITECTURES; with '' that of this machine. */
export function architecture(name: string): Architecture {
  const found = ARCHITECTURES.find((each) => (name === '' ? each.node === process.arch : each.name === name));
  if (found !== undefined) return found;
  const names = ARCHITECTURES.map((each) => each.name).join(' or ');
  throw new Error(`Cannot build for ${name || process.arch}: ARCH must be ${names}`);
}

/** The program and the licence of Node of the version that runs this, for `to`. Errors: npm cannot get it. */
export function nodeFor(to: Architecture): { readonly program: string; readonly licence: string } {
  const own = join(root, 'node_modules/node');
  if (to.node === process.arch)
    return {
      program: join(own, 'bin/node'),
      licence: join(own, `node_modules/node-linux-${to.node}/LICENSE`),
    };
  const folder = join(root, `.cache/node-${process.version}-${to.node}`);
  if (!existsSync(folder)) fetchNode(to, folder);
  return { program: join(folder, 'bin/node'), licence: join(folder, 'LICENSE') };
}

/** npm compares the archive with the checksum of its registry. */
function fetchNode({ node }: Architecture, folder: string): void {
  mkdirSync(join(root, '.cache'), { recursive: true });
  const part = mkdtempSync(`${folder}.part.`);
  try {
    const wanted = `node-linux-${node}@${process.versions.node}`;
    const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', part, wanted], {
      encoding: 'utf8',
    });
    execFileSync('tar', ['-xzf', join(part, packed.trim()), '-C', part]);
    renameSync(join(part, 'package'), folder);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}
