// The versions of HAProxy and keepalived, as packages have them: `2.6.12-1+deb12u4`. The controller splits HAProxy's at its
// dots, and renders its text for the first two numbers.

import { runCommand } from '../../host/run-command.ts';

export interface ProgramVersions {
  readonly haproxy: string;
  /** '' if it is not there. */
  readonly keepalived: string;
}

/** Errors: COMMAND_FAILED if HAProxy cannot be started. */
export async function programVersions(haproxy: string, keepalived: string): Promise<ProgramVersions> {
  const [first, second] = await Promise.all([
    runCommand(haproxy, ['-v'], { timeout: TIMEOUT_MS }),
    // keepalived writes its version to stderr.
    runCommand(keepalived, ['-v'], { timeout: TIMEOUT_MS }).catch(() => undefined),
  ]);
  return {
    haproxy: versionIn(first.stdout),
    keepalived: versionIn(`${second?.stdout}${second?.stderr}`),
  };
}

const TIMEOUT_MS = 10_000;

/** The first word that begins with numbers; '' if there is none. */
export function versionIn(text: string): string {
  return /\bv?(\d+\.\d+[\w.+~-]*)/.exec(text)?.[1] ?? '';
}
