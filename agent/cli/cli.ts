// Runs a command of `headgate`, and turns its errors into messages and exit statuses.

import { HeadgateError, messageOf } from '../base/errors.ts';
import { formatOf } from '../host/log.ts';
import { readArguments } from './command-line.ts';
import { commands } from './commands.ts';
import { complete } from './completion/complete.ts';
import { helpOf } from './help.ts';
import { namedCommand } from './named-command.ts';

/** Carries out the command line; `agent` is the command `run`. Returns the exit status. */
export async function cli(
  [word = 'help', ...argv]: readonly string[],
  agent: (argv: readonly string[]) => Promise<number>,
): Promise<number> {
  // The completion scripts ask for it at each key; it must not print errors.
  if (word === 'complete') return complete(argv, commands);
  return guarded(argv.includes('--json'), async () => {
    const command = namedCommand(ALIASES.get(word) ?? word, commands);
    if (argv.some((flag) => flag === '--help' || flag === '-h')) {
      console.log(helpOf(command));
      return 0;
    }
    if (command.run === undefined) return agent(argv);
    return command.run(readArguments(command, argv), commands);
  });
}

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
]);

/** Prints an error of `action` on stderr, and with `asJson` also as JSON on stdout. */
async function guarded(asJson: boolean, action: () => Promise<number>): Promise<number> {
  try {
    return await action();
  } catch (error) {
    const words = error instanceof HeadgateError ? `${error.code}: ${inFull(error)}` : (error as Error).stack;
    // journald takes the priority from the beginning of each line.
    const priority = formatOf(2) === 'journal' ? '<3>' : '';
    console.error(`headgate: ${words}`.replaceAll(/^/gm, priority));
    if (asJson) console.log(JSON.stringify({ ok: false, error: asData(error) }, undefined, 2));
    return exitStatusOf(error);
  }
}

function exitStatusOf(error: unknown): number {
  if (!(error instanceof HeadgateError)) return 1;
  if (error.code === 'SETTINGS_INVALID' || error.code === 'USAGE') return 2;
  return error.code === 'AGENT_UNREACHABLE' ? 3 : 1;
}

function asData(error: unknown): { readonly code?: string; readonly message: string } {
  return { ...(error instanceof HeadgateError ? { code: error.code } : {}), message: inFull(error) };
}

/** A message of several lines, such as a list of invalid settings, keeps its lines. */
function inFull(error: unknown): string {
  return error instanceof HeadgateError && error.message.includes('\n') ? error.message : messageOf(error);
}
