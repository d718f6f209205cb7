// The settings with which the package's command starts the program.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const SETTINGS = '/etc/headgate/headgate.yaml';
const STATE = '/var/lib/headgate';

/** The variables that `headgate.service` sets. */
const ofUnit = Object.fromEntries(
  [...read('systemd/headgate.service').matchAll(/(HEADGATE_\w+)=(\S+)/g)].map(([, name, value]) => [
    name,
    value,
  ]),
);

// One at a time: a program must not be written while another test forks a process, which would keep it open for writing.
test.serial('check and render use the settings of headgate.service by default', async (t) => {
  const told = await command(t, [SETTINGS, `${STATE}/identity`]);
  for (const words of [['check'], ['check', '--json'], ['render', '--output', '/tmp/x y'], ['release']]) {
    const { args, variables } = await told(words);
    t.deepEqual(args, words);
    t.deepEqual(variables, ofUnit);
  }
});

test.serial('check and render have the same limit of open files as headgate.service', (t) => {
  const [, limit] = /^LimitNOFILE=(\d+)$/m.exec(read('systemd/headgate.service')) ?? [];
  t.regex(read('deploy/deb/headgate.sh'), new RegExp(`^ +ulimit -n ${limit} `, 'm'));
});

test.serial('check and render use a named file without any setting of the unit', async (t) => {
  const told = await command(t, [SETTINGS, `${STATE}/identity`]);
  for (const flags of [['--config', '/other.yaml'], ['--config=/other.yaml']])
    for (const name of ['check', 'render']) t.deepEqual((await told([name, ...flags])).variables, {});
  const own = { HEADGATE_CONFIG: '/other.yaml' };
  t.deepEqual((await told(['check'], own)).variables, own);
});

test.serial("A variable of the user has precedence over the unit's variable", async (t) => {
  const told = await command(t, [SETTINGS, `${STATE}/identity`]);
  const own = { HEADGATE_RUNTIME_DIR: '/run/other', HEADGATE_HAPROXY_SUPERVISOR: 'agent' };
  t.deepEqual((await told(['check'], own)).variables, { ...ofUnit, ...own });
});

test.serial('Other commands, and check and render without a settings file, use the defaults', async (t) => {
  const told = await command(t, [SETTINGS, `${STATE}/identity`]);
  for (const words of [['run'], ['status', '--json'], ['why', 'default/check'], []])
    t.deepEqual((await told(words)).variables, {}, words.join(' '));
  for (const files of [[SETTINGS], [`${STATE}/identity`]])
    t.deepEqual((await (await command(t, files))(['check'])).variables, {}, files.join(' '));
});

test.serial(
  'Commands that ask the agent find that of headgate.service, unless the user names another',
  async (t) => {
    const told = await command(t, ['/run/headgate/agent.sock']);
    for (const name of ['list', 'status', 'why', 'failover', 'maintenance', 'complete'])
      t.deepEqual((await told([name, 'x'])).variables, { HEADGATE_RUNTIME_DIR: '/run/headgate' }, name);
    const own = { HEADGATE_RUNTIME_DIR: '/run/other' };
    t.deepEqual((await told(['status'], own)).variables, own);
    t.deepEqual((await told(['status', '--config', '/other.yaml'])).variables, {});
    t.deepEqual((await told(['run'])).variables, {});
  },
);

type Told = (
  words: readonly string[],
  env?: Readonly<Record<string, string>>,
) => Promise<{ readonly args: readonly string[]; readonly variables: Readonly<Record<string, string>> }>;

/** Runs the command on a host with these files; returns the arguments and variables of the started program. */
async function command(t: ExecutionContext<unknown>, files: readonly string[]): Promise<Told> {
  const root = await mkdtemp(join(tmpdir(), 'hg-command-'));
  t.teardown(() => rm(root, { recursive: true }));
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text, { mode: 0o755 });
  };
  for (const file of files) await put(file, '');
  await put(
    '/usr/lib/headgate/bin/headgate',
    '#!/bin/sh\nprintf "%s\\n" "$@"\nenv | grep ^HEADGATE_\ntrue\n',
  );
  const below = /(?<= |=|-)\/(etc|usr\/lib|var\/lib|run)\/headgate\b/g;
  await put('/usr/bin/headgate', read('deploy/deb/headgate.sh').replaceAll(below, `${root}$&`));
  return async (words, env = {}) => {
    const given = { env: { PATH: process.env.PATH, ...env } };
    const { stdout } = await promisify(execFile)(join(root, '/usr/bin/headgate'), words, given);
    const lines = stdout.replaceAll(root, '').split('\n');
    return {
      args: lines.slice(0, words.length),
      variables: Object.fromEntries(
        lines.slice(words.length).flatMap((line) => {
          const [name = '', value = ''] = line.split(/=(.*)/, 2);
          return name.startsWith('HEADGATE_') ? [[name, value]] : [];
        }),
      ),
    };
  };
}
