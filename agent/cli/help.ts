// `headgate help`: the commands, or all about one of them. The texts come from the commands themselves.

import { version } from '../base/version.ts';
import { settingsHelp, wrapped } from '../settings/help.ts';
import { type Command, usageOf } from './command.ts';
import { namedCommand } from './named-command.ts';

export const help: Command = {
  name: 'help',
  purpose: 'show the commands, or all about one of them',
  arguments: [{ name: '[COMMAND]', completedBy: 'commands' }],
  flags: {},
  settings: 'none',
  exits: { 0: 'shown' },
  examples: [
    { line: 'headgate help why', doc: 'all about the command why; why --help shows the same' },
    { line: 'headgate help run', doc: 'with all settings' },
  ],
  run: ({ positionals: [name] }, all) => {
    console.log(name === undefined ? overview(all) : helpOf(namedCommand(name, all)));
    return 0;
  },
};

/** What each exit status means, for every command. */
export const EXIT_STATUS: Readonly<Record<number, string>> = {
  0: 'success',
  1: 'problem found or failure',
  2: 'invalid command line or settings',
  3: 'no agent answers',
};

function overview(all: readonly Command[]): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  return `headgate ${version}: a load-balancer agent for Kubernetes Services, Gateways and Ingresses,
with HAProxy, nftables and keepalived

Usage: headgate COMMAND [FLAGS]

Commands:
${all.map(({ name, purpose }) => `  ${name.padEnd(width)}  ${purpose}`).join('\n')}

Exit status: ${statuses(EXIT_STATUS)}.

headgate help COMMAND shows the flags of a command with examples; headgate help run has all settings.`;
}

/** For a terminal. */
export function helpOf(command: Command): string {
  const { name, purpose, details = [], exits, examples, settings } = command;
  const parts = [
    `headgate ${name}: ${purpose}`,
    `Usage: headgate ${usageOf(command)}`,
    ...(details.length > 0 ? [wrapped(details.join(' '), '').join('\n')] : []),
    ...(examples.length > 0
      ? [['Examples:', ...examples.flatMap(({ line, doc }) => [`  ${line}`, `      ${doc}`])].join('\n')]
      : []),
    ...flagLines(command),
    `Exit status: ${statuses({ ...exits, 2: exits[2] ?? (EXIT_STATUS[2] as string) })}.`,
  ];
  return [
    ...parts,
    ...(settings === 'all' && command.run === undefined ? [settingsHelp().trimEnd()] : []),
  ].join('\n\n');
}

function flagLines(command: Command): readonly string[] {
  const lines = Object.entries(command.flags).flatMap(([flag, { placeholder, doc, short }]) => {
    const letter = short === undefined ? '' : `-${short}, `;
    return [`  ${`${letter}--${flag} ${placeholder}`.trimEnd()}`, ...wrapped(doc)];
  });
  if (command.settings === 'place')
    lines.push(
      '  --runtime-dir DIR',
      ...wrapped('the runtimeDir of the agent to ask, if it is not the default one'),
      '  --config FILE',
      ...wrapped('a settings file that has the runtimeDir'),
    );
  if (command.settings === 'all' && command.run !== undefined)
    lines.push(
      '  --config FILE and a flag for each setting',
      ...wrapped('as of headgate run: headgate help run'),
    );
  return lines.length === 0 ? [] : [['Flags:', ...lines].join('\n')];
}

function statuses(exits: Readonly<Record<number, string>>): string {
  return Object.entries(exits)
    .map(([status, meaning]) => `${status} ${meaning}`)
    .join(', ');
}
