// What a command of `headgate` is. Its arguments, its help, its completion and its part of the manual page follow from it.

import type { Settings } from '../settings/settings.ts';

export interface Command {
  readonly name: string;
  /** What follows `headgate NAME: `, and the subject is the command. */
  readonly purpose: string;
  /** Sentences that the help adds. */
  readonly details?: readonly string[];
  /** Its positional arguments; those in brackets may be left out. */
  readonly arguments?: readonly Argument[];
  /** Its own flags by name, without dashes. */
  readonly flags: Readonly<Record<string, OwnFlag>>;
  /** Which settings count: all, those that locate the running agent, or none. */
  readonly settings: 'all' | 'place' | 'none';
  /** What each exit status means, besides 2 for a wrong command line. */
  readonly exits: Readonly<Record<number, string>>;
  readonly examples: readonly Example[];
  /** Returns the exit status; undefined for `run`, which main.ts carries out. `all`: the commands that there are. */
  readonly run?: (given: Arguments, all: readonly Command[]) => Promise<number> | number;
}

/** What a command was given. */
export interface Arguments {
  /** The defaults for a command that needs no settings. */
  readonly settings: Settings;
  /** The command's own flags. */
  readonly own: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
  readonly positionals: readonly string[];
}

export interface Argument {
  /** As in the help: `NAME`, `on|off`, `[COMMAND]`; the last one may be several, `FILE...`. */
  readonly name: string;
  /** What completes it; a fixed choice (`on|off`) completes itself. */
  readonly completedBy?: 'load balancers' | 'commands';
}

export interface OwnFlag {
  /** Stands for its value; '' for a switch. */
  readonly placeholder: string;
  readonly doc: string;
  /** One letter, without the dash. */
  readonly short?: string;
  readonly completedBy?: 'namespaces';
  /** It may be given several times: its values are a list. */
  readonly isRepeated?: true;
}

export interface Example {
  /** The whole command line. */
  readonly line: string;
  readonly doc: string;
}

/** A flag of every command that prints an answer. */
export const JSON_FLAG: Readonly<Record<string, OwnFlag>> = {
  json: { placeholder: '', doc: 'print the answer as JSON' },
};

/** What commands that ask the running agent mean by status 3. */
export const NO_AGENT = 'no agent answers';

/** The words after `headgate`: `why NAME [--json] [FLAGS]`. */
export function usageOf({ name, arguments: ofCommand = [], flags, settings }: Command): string {
  const own = Object.entries(flags).map(([flag, { placeholder, short, isRepeated }]) => {
    const value = placeholder === '' ? '' : ` ${placeholder}`;
    return `[${short === undefined ? '' : `-${short}|`}--${flag}${value}]${isRepeated ? '...' : ''}`;
  });
  const others = settings === 'all' ? ['[FLAGS]'] : [];
  return [name, ...ofCommand.map((argument) => argument.name), ...own, ...others].join(' ');
}
