// Another version of Headgate, for tests of a pair whose hosts are not upgraded at once: this one's files in a folder of
// their own, with another version number and other words for its peer.

import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';

const root = fileURLToPath(new URL('../../..', import.meta.url));

export interface OtherVersion {
  readonly version: string;
  /** What it tells its peer, as an expression over `report`, which is what this version tells. */
  readonly tells: string;
}

/** The path of its `bin/headgate`; all of it is gone with the test. */
export async function otherVersion(
  t: ExecutionContext<unknown>,
  { version, tells }: OtherVersion,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['agent', 'bin', 'health', 'templates'])
    await cp(join(root, name), join(folder, name), { recursive: true });
  // Not as a whole: what Node keeps of compiled code stays in the folder.
  await mkdir(join(folder, 'node_modules'));
  for (const name of (await readdir(join(root, 'node_modules'))).filter((each) => !each.startsWith('.')))
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, version }));
  const path = join(folder, 'agent/pair/peers/report.ts');
  const text = await readFile(path, 'utf8');
  const altered = text.replace('JSON.stringify(report)', `JSON.stringify(${tells})`);
  if (altered === text) throw new Error(`${path} does not tell a report in the way that this test knows`);
  await writeFile(path, altered);
  return join(folder, 'bin', 'headgate');
}
