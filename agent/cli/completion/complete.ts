// `headgate complete WORD...`: what a shell offers for the last word, one in a line; the others are those before it, without
// `headgate`. Asks the running agent for names, and prints nothing if that fails.

import { agentSocketPath, askAgent } from '../../answer/agent-socket.ts';
import { ownerOf } from '../../model/names.ts';
import type { Settings } from '../../settings/settings.ts';
import { allSettings, flagOf } from '../../settings/table.ts';
import type { Command } from '../command.ts';
import { settingsOf } from '../command-line.ts';

/** Returns the exit status. */
export async function complete(words: readonly string[], all: readonly Command[]): Promise<number> {
  const current = words.at(-1) ?? '';
  const offered = await offersFor(words.slice(0, -1), current, all).catch(() => []);
  const fitting = offered.filter((offer) => offer.startsWith(current));
  if (fitting.length > 0) console.log(fitting.join('\n'));
  return 0;
}

async function offersFor(
  [name, ...before]: readonly string[],
  current: string,
  all: readonly Command[],
): Promise<readonly string[]> {
  if (name === undefined) return all.map((command) => command.name);
  const command = all.find((each) => each.name === name);
  if (command === undefined) return [];
  // A command takes all flags, so that one line of them fits every command, and only those that count are offered.
  const flags = flagsOf({ ...command, settings: 'all' });
  const flag = flagNamed(before.at(-1), flags);
  if (flag !== undefined && flag.placeholder !== '') {
    if (flag.completedBy === undefined) return choicesOf(flag.placeholder);
    return askAgentFor('namespaces', current, settingsOf(command, before.slice(0, -1)));
  }
  if (current.startsWith('-'))
    return flagsOf(command).flatMap(({ names }) => names.filter((each) => each.startsWith('--')));
  const argument = command.arguments?.[positionalsIn(before, flags)];
  if (argument === undefined) return [];
  if (argument.completedBy === 'commands') return all.map((each) => each.name);
  if (argument.completedBy === 'load balancers')
    return loadBalancers(current, namespaceIn(before), settingsOf(command, before));
  return choicesOf(argument.name);
}

interface OfferedFlag {
  /** With dashes. */
  readonly names: readonly string[];
  /** '' for a switch. */
  readonly placeholder: string;
  readonly completedBy?: 'namespaces' | undefined;
}

/** The command's own flags, and those of the settings that count. */
function flagsOf({ flags, settings }: Command): readonly OfferedFlag[] {
  const own = Object.entries(flags).map(([name, { placeholder, short, completedBy }]) => ({
    names: [`--${name}`, ...(short === undefined ? [] : [`-${short}`])],
    ...{ placeholder, completedBy },
  }));
  if (settings === 'none') return own;
  const counting = allSettings().filter(([name]) => settings === 'all' || name === 'runtimeDir');
  const ofSettings = counting.map(([name, { kind }]) => ({
    names: kind.placeholder === '' ? [`--${flagOf(name)}`, `--no-${flagOf(name)}`] : [`--${flagOf(name)}`],
    placeholder: kind.placeholder,
  }));
  return [...own, { names: ['--config'], placeholder: 'FILE' }, ...ofSettings];
}

/** The words of a fixed choice such as `on|off`; none for any other placeholder. */
function choicesOf(placeholder: string): readonly string[] {
  return /^[a-z0-9.-]+(\|[a-z0-9.-]+)+$/.test(placeholder) ? placeholder.split('|') : [];
}

function flagNamed(word: string | undefined, flags: readonly OfferedFlag[]): OfferedFlag | undefined {
  return flags.find(({ names }) => word !== undefined && names.includes(word));
}

/** How many of the words are neither flags nor their values. */
function positionalsIn(words: readonly string[], flags: readonly OfferedFlag[]): number {
  let count = 0;
  for (const [at, word] of words.entries()) {
    const isValue = (flagNamed(words[at - 1], flags)?.placeholder ?? '') !== '';
    if (!isValue && !word.startsWith('-')) count++;
  }
  return count;
}

function namespaceIn(words: readonly string[]): string | undefined {
  const at = words.findLastIndex((word) => word === '-n' || word === '--namespace');
  return at < 0 ? undefined : words[at + 1];
}

/** Names with their namespace, unless there is -n; and those of its namespace, or of "default", without it. */
async function loadBalancers(
  current: string,
  namespace: string | undefined,
  settings: Settings,
): Promise<readonly string[]> {
  const whole = namespace === undefined ? await askAgentFor('names', current, settings) : [];
  if (current.includes('/')) return whole;
  const short = await askAgentFor('names', `${namespace ?? 'default'}/${current}`, settings);
  return [...whole, ...short.map((key) => ownerOf(key).name)];
}

function askAgentFor(
  question: 'names' | 'namespaces',
  beginning: string,
  { runtimeDir }: Settings,
): Promise<readonly string[]> {
  return askAgent(agentSocketPath(runtimeDir), question, { beginning }) as Promise<readonly string[]>;
}
