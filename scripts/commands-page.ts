// The table of docs/operations.md about the commands, made from their definitions. Pure.

import { type Command, usageOf } from '../agent/cli/command.ts';

/** The lines between which the table stands. */
const BEGINNING = '<!-- Written by scripts/write-command-docs.ts from agent/cli/. -->';
const END = '<!-- The end of what is written. -->';

/** `page`: the document as it is. */
export function commandsPage(page: string, commands: readonly Command[]): string {
  const [before = '', rest = ''] = page.split(BEGINNING);
  const rows = commands.map((command) => {
    const exits = Object.entries(command.exits).map(([status, meaning]) => `${status} ${meaning}`);
    const text = [sentence(command.purpose), ...(command.details ?? [])].join(' ');
    return `| \`headgate ${cell(usageOf(command))}\` | ${cell(text)} | ${cell(exits.join('; '))} |`;
  });
  const table = `| command | what it does | exit status |\n|---|---|---|\n${rows.join('\n')}`;
  return `${before}${BEGINNING}\n\n${table}\n\n${rest.slice(rest.indexOf(END))}`;
}

function sentence(purpose: string): string {
  return `${purpose.slice(0, 1).toUpperCase()}${purpose.slice(1)}.`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
