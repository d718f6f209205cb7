// The commands other than `run`: which there are, what they print, and their exit status:
// 0 well, 1 the answer is bad news, 2 the question was wrong, 3 no agent answers.

import { HeadgateError, messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { formatOf } from '../host/log.ts';
import { settingsHelp } from '../settings/help.ts';
import { check } from './check.ts';
import { failover } from './failover.ts';
import { maintenance } from './maintenance.ts';
import { render } from './render.ts';
import { status } from './status.ts';
import { exitStatus, usages } from './usage.ts';
import { why } from './why.ts';

type Command = (argv: readonly string[]) => Promise<number> | number;

const COMMANDS: Readonly<Record<string, Command>> = {
  render,
  check,
  status,
  why,
  failover,
  maintenance,
  help,
  version: printVersion,
};
/** Where the purposes of commands begin. */
const COLUMN = 38;
const OTHER_NAMES: Readonly<Record<string, string>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
};

export const cli = {
  /** Runs a command by its name and returns the exit status. */
  command(name: string, argv: readonly string[]): Promise<number> {
    const command = COMMANDS[OTHER_NAMES[name] ?? name];
    if (command === undefined) {
      console.error(
        `headgate: Unknown command ${JSON.stringify(name)}: the commands are run, ${Object.keys(COMMANDS).join(', ')}`,
      );
      return Promise.resolve(2);
    }
    if (argv.includes('--help')) return Promise.resolve(help());
    return cli.guarded(async () => command(argv), argv.includes('--json'));
  },

  /** Turns what is thrown into a message, as JSON besides where that is asked for, and an exit status. */
  async guarded(action: () => Promise<number>, asJson = false): Promise<number> {
    try {
      return await action();
    } catch (error) {
      const words =
        error instanceof HeadgateError ? `${error.code}: ${inFull(error)}` : (error as Error).stack;
      // Where journald reads it, each line has its priority.
      const priority = formatOf(2) === 'journal' ? '<3>' : '';
      console.error(`headgate: ${words}`.replaceAll(/^/gm, priority));
      if (asJson) console.log(JSON.stringify({ ok: false, error: asData(error) }, undefined, 2));
      return exitStatusOf(error);
    }
  },
};

function exitStatusOf(error: unknown): number {
  if (!(error instanceof HeadgateError)) return 1;
  if (error.code === 'SETTINGS_INVALID' || error.code === 'USAGE') return 2;
  return error.code === 'AGENT_UNREACHABLE' ? 3 : 1;
}

function asData(error: unknown): { readonly code?: string; readonly message: string } {
  return { ...(error instanceof HeadgateError ? { code: error.code } : {}), message: inFull(error) };
}

/** Keeps the lines of a message of several. */
function inFull(error: unknown): string {
  return error instanceof HeadgateError && error.message.includes('\n') ? error.message : messageOf(error);
}

function printVersion(): number {
  console.log(`headgate ${version}`);
  return 0;
}

function help(): number {
  console.log(`headgate ${version}: a load-balancer agent for Kubernetes Services

Usage:
${usages.map(({ command, purpose }) => `  headgate ${command.padEnd(COLUMN)}${purpose}`).join('\n')}
  headgate help | version

Exit status: ${Object.entries(exitStatus)
    .map((each) => each.join(' '))
    .join(', ')}.

Flags:
${settingsHelp()}`);
  return 0;
}
