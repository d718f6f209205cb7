// The identity of this host among the agents of a cluster: its name, and random digits that it keeps in the state folder.
// Hosts from one image often have one name, and two hosts of one identity would both hold the Lease.

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAtomically } from '../../host/atomic-file.ts';
import { makeFolder } from '../../host/make-directory.ts';

const MARK = /^[0-9a-f]{12}$/;

/** The same after a restart. If the digits cannot be kept, each start has others, which only delays the leader election. */
export async function hostIdentity(hostname: string, stateDir: string): Promise<string> {
  const path = join(stateDir, 'identity');
  const kept = (await readFile(path, 'utf8').catch(() => '')).trim();
  if (MARK.test(kept)) return `${hostname}_${kept}`;
  const mark = randomBytes(6).toString('hex');
  await makeFolder(stateDir, 0o700).catch(() => undefined);
  await writeAtomically(path, [`${mark}\n`]).catch(() => undefined);
  return `${hostname}_${mark}`;
}
