import { execFileSync } from 'node:child_process';
import ava from 'ava';
import { commands, nameOf } from '../../agent/cli/cli.ts';
import { allSettings, flagOf } from '../../agent/settings/table.ts';
import { bashCompletion } from '../../scripts/bash-completion.ts';
import { commandPage, settingsPage } from '../../scripts/man-pages.ts';
import { requires } from '../support/basics/requirements.ts';

const test = requires(ava, { programs: ['bash'] });

const RELEASE = { version: '1.2.3', date: '2026-11-20' };

test('headgate(8) has every command and every flag, headgate.yaml(5) every setting', (t) => {
  const [page, settings] = [commandPage(RELEASE), settingsPage(RELEASE)];
  for (const { usage } of commands) t.true(page.includes(`\n.B ${escaped(usage)}\n`), usage);
  for (const [name] of allSettings()) {
    t.true(page.includes(escaped(`${flagOf(name)}`)), name);
    t.true(settings.includes(`\n.TP\n.B ${name}\n`), name);
  }
});

test('No line of a page is an unknown roff request or contains Markdown', (t) => {
  for (const line of `${commandPage(RELEASE)}${settingsPage(RELEASE)}`.split('\n')) {
    if (/^[.']/.test(line)) t.regex(line, /^\.(TH|SH|TP|PP|IP|B|BR|br)( |$)/);
    t.notRegex(line, /`|\]\(/);
  }
});

test('bash completes commands, flags and the values of a fixed choice', (t) => {
  t.deepEqual(completed('headgate', 'st'), ['status']);
  t.deepEqual(completed('headgate', 'maintenance', ''), ['on', 'off']);
  t.deepEqual(completed('headgate', 'run', '--haproxy-sup'), ['--haproxy-supervisor']);
  t.deepEqual(completed('/usr/bin/headgate', 'wh'), ['why']);
  t.deepEqual(completed('headgate', 'run', '--haproxy-supervisor', 'e'), ['external']);
  t.deepEqual(completed('headgate', 'run', '--no-in'), ['--no-in-cluster']);
});

test('bash completes for each command the flags that it has, and leaves files to itself', (t) => {
  for (const { usage } of commands)
    for (const flag of usage.match(/--[a-z]+/g) ?? [])
      t.deepEqual(completed('headgate', nameOf(usage), flag.slice(0, -1)), [flag], usage);
  for (const { usage } of commands.filter((each) => !each.usage.startsWith('run ')))
    t.deepEqual(completed('headgate', nameOf(usage), '--js'), ['--json'], usage);
  t.deepEqual(completed('headgate', 'status', '--r'), ['--runtime-dir']);
  t.deepEqual(completed('headgate', 'render', '--o'), ['--output', '--old-worker-memory']);
  t.deepEqual(completed('headgate', 'run', '--manifests', ''), ['']);
  t.deepEqual(completed('headgate', 'why', ''), ['']);
});

function completed(...words: readonly string[]): readonly string[] {
  const script = `${bashCompletion()}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _headgate; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['--norc', '-c', script, 'bash', ...words], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

function escaped(text: string): string {
  return text.replaceAll('-', '\\-');
}
