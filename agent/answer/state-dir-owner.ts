// Records in the state folder which agent uses it, so that a second agent with its own runtime folder does not start on
// the same state: the two would overwrite each other's files and each serve the VIPs with its own HAProxy.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError } from '../base/errors.ts';
import { object, string } from '../base/validate.ts';
import { writeAtomically } from '../host/atomic-file.ts';
import { makeFolder } from '../host/make-directory.ts';
import { isAnswered } from './agent-socket.ts';

/** A copied folder contains another `stateDir`: its record does not count. */
const owner = object({ stateDir: string(), socket: string() });

/**
 * Makes the agent of this socket the user of the folder. If the record cannot be written the agent starts all the same.
 * Errors: AGENT_RUNNING if the recorded agent is another one and answers.
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
    // The parts that keep their state in the folder report this.
  }
}

async function read(path: string): Promise<ReturnType<typeof owner.parse> | undefined> {
  try {
    return owner.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return undefined;
  }
}
