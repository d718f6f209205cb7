// Keeps in the state folder where the agent that lives off it answers, so that a second one with a runtime folder of its
// own finds it: the two would write the same files against each other, each with a HAProxy of its own on the same VIPs.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError } from '../base/errors.ts';
import { object, string } from '../base/validate.ts';
import { writeAtomically } from '../host/atomic-file.ts';
import { makeFolder } from '../host/make-directory.ts';
import { isAnswered } from './agent-socket.ts';

/** `stateDir`: a folder that was copied speaks of another one. */
const user = object({ stateDir: string(), socket: string() });

/**
 * Names the agent of this socket as the one that uses the folder; where that cannot be written it goes on without.
 * Errors: AGENT_RUNNING where another one that is named there answers.
 */
export async function useStateDir(stateDir: string, socket: string): Promise<void> {
  const path = join(stateDir, 'agent.json');
  const former = await read(path);
  if (former?.stateDir === stateDir && former.socket !== socket && (await isAnswered(former.socket))) {
    const message = `Another agent, which answers at "${former.socket}", uses "${stateDir}": give this one its own stateDir`;
    throw new HeadgateError('AGENT_RUNNING', message, { retry: 'never' });
  }
  try {
    await makeFolder(stateDir, 0o700);
    await writeAtomically(path, [`${JSON.stringify({ stateDir, socket })}\n`]);
  } catch {
    // Said by what has to be kept there.
  }
}

async function read(path: string): Promise<ReturnType<typeof user.parse> | undefined> {
  try {
    return user.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return undefined;
  }
}
