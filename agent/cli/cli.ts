// The commands of `headgate`, their help and exit statuses. main.ts runs `run` itself.

import { HeadgateError, messageOf } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { formatOf } from '../host/log.ts';
import { settingsHelp } from '../settings/help.ts';
import { check } from './check.ts';
import { failover, maintenance } from './orders.ts';
import { render } from './render.ts';
import { status } from './status.ts';
import { why } from './why.ts';

interface Command {
  /** The command with its arguments and its own flags. */
  readonly usage: string;
  readonly purpose: string;
  /** Returns the exit status. */
  readonly run?: (argv: readonly string[]) => Promise<number> | number;
}

export const commands: readonly Command[] = [
  { usage: 'run [FLAGS]', purpose: 'run the agent until SIGTERM' },
  {
    usage: 'render --output DIR [--json] [FLAGS]',
    purpose: 'write the files that run would write',
    run: render,
  },
  {
    usage: 'check [--json] [FLAGS]',
    purpose: 'check settings, versions, rights, limits, ports and the API server',
    run: check,
  },
  { usage: 'status [--json]', purpose: 'show the state of the running agent', run: status },
  { usage: 'why NAMESPACE/SERVICE [--json]', purpose: 'explain why a Service is served or not', run: why },
  { usage: 'failover [--force] [--json]', purpose: 'hand the traffic over to the peer', run: failover },
  {
    usage: 'maintenance on|off [--json]',
    purpose: 'lock this host, so that its peer gets the traffic, or unlock it',
    run: maintenance,
  },
];

export const exitStatus: Readonly<Record<number, string>> = {
  0: 'success',
  1: 'problem found or failure',
  2: 'invalid command line or settings',
  3: 'no agent answers',
};

/** The width of the column of commands in the help. */
const USAGE_COLUMNS = 38;

export const cli = {
  /** Returns the exit status. */
  async command(name: string, argv: readonly string[]): Promise<number> {
    if (['help', '--help', '-h'].includes(name)) return help();
    const isVersion = name === 'version' || name === '--version';
    const run = isVersion ? printVersion : commands.find(({ usage }) => nameOf(usage) === name)?.run;
    if (run === undefined) {
      const names = [...commands.map(({ usage }) => nameOf(usage)), 'help', 'version'].join(', ');
      console.error(`headgate: Unknown command ${JSON.stringify(name)}: the commands are ${names}`);
      return 2;
    }
    if (argv.includes('--help')) return help();
    return cli.guarded(async () => run(argv), argv.includes('--json'));
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

/** The first word. */
export function nameOf(usage: string): string {
  return usage.split(' ')[0] ?? '';
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

function printVersion(): number {
  console.log(`headgate ${version}`);
  return 0;
}

function help(): number {
  console.log(`headgate ${version}: a load-balancer agent for Kubernetes Services

Usage:
${commands.map(({ usage, purpose }) => `  headgate ${usage.padEnd(USAGE_COLUMNS)}${purpose}`).join('\n')}
  headgate help | version

Exit status: ${Object.entries(exitStatus)
    .map((each) => each.join(' '))
    .join(', ')}.

Flags:
${settingsHelp()}`);
  return 0;
}
