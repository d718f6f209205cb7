import { readFileSync } from 'node:fs';
import test from 'ava';
import { usageOf } from '../../agent/cli/command.ts';
import { commands } from '../../agent/cli/commands.ts';
import { help } from '../../agent/cli/help.ts';
import { allSettings, flagOf } from '../../agent/settings/table.ts';
import { commandPage, settingsPage } from '../../scripts/man-pages.ts';

const RELEASE = { version: '1.2.3', date: '2026-11-20' };

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const [page, settings] = [
  commandPage(RELEASE),
  settingsPage(RELEASE, { vrrp: read('docs/high-availability.md'), pools: read('docs/addresses.md') }),
];

test('headgate(8) has every command and every flag, headgate.yaml(5) every setting', (t) => {
  for (const command of commands) t.true(page.includes(`\n.B ${escaped(usageOf(command))}\n`), command.name);
  for (const [name] of allSettings()) {
    t.true(page.includes(escaped(`${flagOf(name)}`)), name);
    t.true(settings.includes(`\n.TP\n.B ${name}\n`), name);
  }
});

test('headgate(8) has the examples of every command, headgate.yaml(5) the keys of vrrp and of pools', (t) => {
  for (const { examples } of commands)
    for (const { line } of examples) t.true(page.includes(`\n.B ${escaped(line)}\n`), line);
  for (const key of ['interface', 'virtualRouterId', 'instances', 'blocks', 'serviceAllocation.namespaces'])
    t.true(settings.includes(`\n.TP\n.B ${key}\n`), key);
  t.true(settings.includes('(/usr/share/doc/headgate/docs/high\\-availability.md)'));
});

test('headgate(8) says where the keys of a flag are', (t) => {
  for (const flag of ['--vrrp YAML', '--pools YAML'])
    t.regex(
      page,
      new RegExp(
        `\\.B ${escaped(flag).replaceAll('\\', '\\\\')}[ .]*\\n.*see headgate\\.yaml\\(5\\) for the keys`,
      ),
      flag,
    );
  t.regex(page, /see \/usr\/share\/doc\/headgate\/docs\/addresses\.md for its input/);
});

test('No line of a page is an unknown roff request or contains Markdown', (t) => {
  for (const line of `${page}${settings}`.split('\n')) {
    if (/^[.']/.test(line)) t.regex(line, /^\.(TH|SH|TP|PP|IP|B|BR|br)( |$)/);
    t.notRegex(line, /`|\]\(/);
  }
});

function escaped(text: string): string {
  return text.replaceAll('-', '\\-');
}

test('The manual and the help name what the agent reads and what it drives', (t) => {
  const said: string[] = [];
  const { log } = console;
  console.log = (text: string) => said.push(text);
  t.teardown(() => {
    console.log = log;
  });
  void help.run?.({ positionals: [] } as never, commands);
  for (const word of ['Services', 'Gateways', 'Ingresses', 'HAProxy', 'nftables', 'keepalived']) {
    t.true(said.join('').includes(word), `${word} in the help`);
    t.true(page.includes(word), `${word} in the manual`);
  }
});
