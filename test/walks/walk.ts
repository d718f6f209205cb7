// Starts a walk, a program that does what a document says, in network, mount and PID namespaces, with which everything ends.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';

const NAMESPACES = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
/** The walk ends if the test is killed. */
const WITH_THE_TEST = ['--pdeathsig', 'KILL'];
const MAX_OUTPUT_BYTES = 1 << 24;

/**
 * What `NAME.ts` of this folder has printed; its only argument is an empty folder.
 * Errors: it ends with another status than 0; the error has its output.
 */
export async function walk(t: ExecutionContext, name: string): Promise<string> {
  t.timeout(600_000);
  const folder = await mkdtemp(join(tmpdir(), 'headgate-walk-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const program = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const output = await new Promise<string>((resolve, reject) => {
    execFile(
      'setpriv',
      [...WITH_THE_TEST, 'unshare', ...NAMESPACES, process.execPath, program, folder],
      { maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${stdout}\n${stderr}`)),
    );
  });
  t.log(output);
  return output;
}
