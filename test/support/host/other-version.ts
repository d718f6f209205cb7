// Another version of Headgate, for tests of a pair during an upgrade: a copy of this version with another version number
// and other reports to its peer.

import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';

const root = fileURLToPath(new URL('../../..', import.meta.url));

export interface OtherVersion {
  readonly version: string;
  /** The report to its peer, as an expression over `report`, the report of this version. */
  readonly tells: string;
}

/** Resolves with the path of its `bin/headgate`. The copy is removed with the test. */
export async function otherVersion(
  t: ExecutionContext<unknown>,
  { version, tells }: OtherVersion,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['agent', 'bin', 'health', 'templates'])
    await cp(join(root, name), join(folder, name), { recursive: true });
  // Each part separately, because the folder also has the compile cache of Node.
  await mkdir(join(folder, 'node_modules'));
  for (const name of (await readdir(join(root, 'node_modules'))).filter((each) => !each.startsWith('.')))
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, version }));
  const path = join(folder, 'agent/pair/peers/report.ts');
  const text = await readFile(path, 'utf8');
  const altered = text.replace('JSON.stringify(report)', `JSON.stringify(${tells})`);
  if (altered === text) throw new Error(`Cannot find the report to the peer in ${path}`);
  await writeFile(path, altered);
  return join(folder, 'bin', 'headgate');
}
