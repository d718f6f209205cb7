// Runs the commands other than `run` and turns errors into messages and exit statuses (usage.ts).

import { HeadgateError, messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { formatOf } from '../host/log.ts';
import { settingsHelp } from '../settings/help.ts';
import { check } from './check.ts';
import { failover, maintenance } from './orders.ts';
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
/** The width of the column of commands in the help. */
const COMMAND_COLUMNS = 38;
const OTHER_NAMES: Readonly<Record<string, string>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
};

export const cli = {
  /** Returns the exit status. */
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

  /** Prints an error of `action` on stderr, and with `asJson` also as JSON on stdout. Returns the exit status. */
  async guarded(action: () => Promise<number>, asJson = false): Promise<number> {
    try {
      return await action();
    } catch (error) {
      const words =
        error instanceof HeadgateError ? `${error.code}: ${inFull(error)}` : (error as Error).stack;
      // journald takes the priority from the beginning of each line.
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

/** A message of several lines, such as a list of invalid settings, keeps its lines. */
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
${usages.map(({ command, purpose }) => `  headgate ${command.padEnd(COMMAND_COLUMNS)}${purpose}`).join('\n')}
  headgate help | version

Exit status: ${Object.entries(exitStatus)
    .map((each) => each.join(' '))
    .join(', ')}.

Flags:
${settingsHelp()}`);
  return 0;
}
