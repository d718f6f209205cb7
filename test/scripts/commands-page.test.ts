import test from 'ava';
import { commands } from '../../agent/cli/commands.ts';
import { commandsPage } from '../../scripts/commands-page.ts';

test('commandsPage() has a row for each command, with usage, purpose and exit statuses, and keeps the text around it', (t) => {
  const mark = '<!-- Written by scripts/write-command-docs.ts from agent/cli/. -->';
  const end = '<!-- The end of what is written. -->';
  const page = commandsPage(`Before.\n${mark}\nold\n${end}\nAfter.\n`, commands);
  const rows = page.split('\n').filter((line) => line.startsWith('| `headgate '));
  t.is(rows.length, commands.length);
  t.true(
    rows.some((row) =>
      /^\| `headgate maintenance on\\\|off[^|]*` \| Lock this host.*\| 0 done; 1 not done/.test(row),
    ),
  );
  t.true(page.startsWith('Before.\n') && page.endsWith(`\n\n${end}\nAfter.\n`));
});
