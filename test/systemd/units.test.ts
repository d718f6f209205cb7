// The units as systemd reads them, and their agreement with the agent and with each other.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava, { type ExecutionContext } from 'ava';
import { haproxyPaths } from '../../agent/haproxy/paths.ts';
import { readVariables } from '../../agent/settings/sources.ts';
import { loweredBy } from '../../agent/vips/vrrp.ts';
import { instanceUnit, instantiated, landingUnit } from '../../scripts/instance-units.ts';
import { requires } from '../support/basics/requirements.ts';

const test = requires(ava, { programs: ['systemd-analyze', 'systemd-tmpfiles', 'systemd-sysusers'] });

const home = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(home, 'systemd');
const units = readdirSync(folder).filter((name) => name.endsWith('.service'));
const { log: haproxyLog } = haproxyPaths('/var/lib/headgate', '/run/headgate');
/** The highest exposure of each unit, times ten: the lowest that its work allows. */
const EXPOSURE: Readonly<Record<string, number>> = {
  headgate: 22,
  'headgate-haproxy': 17,
  'headgate-haproxy-landing': 17,
  'headgate-keepalived': 25,
  'headgate-conntrackd': 19,
  'headgate-bird': 20,
  'headgate-prepare': 25,
  'headgate-rules': 16,
  'headgate-amphora': 58,
};

for (const unit of units) {
  const name = unit.replace(/@?\.service$/, '');
  test(`${unit} exposes no more than its work needs`, async (t) => {
    const words = ['security', '--offline=true', `--threshold=${EXPOSURE[name]}`, '--no-pager'];
    const { exitCode, output } = await run('systemd-analyze', [...words, join(folder, unit)]);
    t.is(exitCode, 0, output);
  });
}

test('Every unit verifies in a root that has its programs', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'hg-units-'));
  t.teardown(() => rm(root, { recursive: true }));
  const place = join(root, 'usr/lib/systemd/system');
  await mkdir(place, { recursive: true });
  for (const unit of units) {
    const text = read(unit);
    await writeFile(join(place, unit), text);
    for (const [, program = ''] of text.matchAll(/^Exec\w+=(\/\S+)/gm)) {
      await mkdir(dirname(join(root, program)), { recursive: true });
      await writeFile(join(root, program), '#!/bin/sh\n', { mode: 0o755 });
    }
  }
  for (const other of ['sysinit', 'basic', 'multi-user', 'shutdown', 'network', 'network-online'])
    await writeFile(join(place, `${other}.target`), '[Unit]\nDescription=Stands for that of systemd\n');
  const instances = units.map((unit) => unit.replace('@.', '@lb1.'));
  const { exitCode, output } = await run('systemd-analyze', [
    'verify',
    '--man=no',
    '--recursive-errors=no',
    `--root=${root}`,
    ...instances,
  ]);
  t.is(output, '');
  t.is(exitCode, 0);
});

test('The template units differ from the other units only in their folders and the network namespace', (t) => {
  for (const name of instantiated) t.is(read(`${name}@.service`), instanceUnit(read(`${name}.service`)));
  for (const name of instantiated) {
    const text = read(`${name}@.service`);
    t.notRegex(text, /\/(run|var\/lib)\/headgate(?!@%i)/, name);
    t.regex(text, /^NetworkNamespacePath=\/run\/netns\/%i$/m);
    t.regex(text, /^Requires=headgate-prepare@%i\.service$/m);
  }
});

test('The unit of the landing is that of HAProxy with other folders', (t) => {
  const text = read('headgate-haproxy-landing.service');
  t.is(text, landingUnit(read('headgate-haproxy.service')));
  t.notRegex(text, /headgate\/haproxy[/ ]/);
  t.regex(text, /^PartOf=headgate-haproxy\.service$/m);
  const landing = haproxyPaths('/var/lib/headgate', '/run/headgate', 'group', 'haproxy-landing');
  for (const path of [landing.config, landing.masterSocket, landing.pidFile, landing.log])
    t.true(text.includes(path), path);
  t.true(read('headgate.tmpfiles').includes(`\nf ${landing.log} 0660 haproxy haproxy -\n`));
});

test('The end of a process for lack of memory does not end other processes of its unit', (t) => {
  for (const name of ['headgate', 'headgate-haproxy'])
    t.regex(read(`${name}.service`), /^OOMPolicy=continue$/m, name);
});

test('HAProxy writes its messages to the file that the agent reads and empties', async (t) => {
  t.true(read('headgate.tmpfiles').includes(`\nf ${haproxyLog} 0660 haproxy haproxy -\n`));
  const { root, start } = await startOfHaproxy(t, 'echo said >&2; umask');
  const log = join(root, 'haproxy.log');
  const command = `umask 27; exec ${start}`;
  for (const messages of ['said\n', 'said\nsaid\n']) {
    t.deepEqual(await run('/bin/sh', ['-c', command]), { exitCode: 0, output: '0027\n' });
    t.is(readFileSync(log, 'utf8'), messages);
    // The agent is in the group and empties the file.
    t.is(statSync(log).mode & 0o777, 0o660);
  }
});

test('HAProxy starts if its message file cannot be written, and writes to the journal instead', async (t) => {
  const { root, start } = await startOfHaproxy(t, 'echo said >&2');
  await mkdir(join(root, 'haproxy.log'));
  const { exitCode, output } = await run('/bin/sh', ['-c', start]);
  t.is(exitCode, 0);
  t.regex(output, /haproxy\.log: Is a directory\nsaid\n$/);
});

test('systemd opens no file as root in a folder that HAProxy can write', (t) => {
  for (const unit of units) t.notRegex(read(unit), /^Standard\w+=(append|truncate|file):/m, unit);
});

test('The unit starts HAProxy with a table of 8,192 descriptors, almost all of them free', async (t) => {
  const { start } = await startOfHaproxy(t, 'grep FDSize /proc/$$/status; ls /proc/$$/fd | wc -l');
  const { exitCode, output } = await run('/bin/sh', ['-c', start]);
  t.is(exitCode, 0, output);
  const [, size, open] = /^FDSize:\s+(\d+)\n(\d+)\n$/.exec(output) ?? [];
  t.is(Number(size), 8_192);
  t.true(Number(open) < 10, output);
});

test('The units set only existing settings of the agent', (t) => {
  const variables = [...read('headgate.service').matchAll(/HEADGATE_\w+=\S+/g)].map(([text]) =>
    text.split('='),
  );
  t.true(variables.length >= 6);
  t.deepEqual(readVariables(Object.fromEntries(variables)).errors, []);
});

test("The agent and HAProxy have the same limit of open files, from which the agent computes HAProxy's connections", (t) => {
  const limits = ['headgate', 'headgate-haproxy'].map(
    (name) => /^LimitNOFILE=(\d+)$/m.exec(read(`${name}.service`))?.[1],
  );
  t.truthy(limits[0]);
  t.is(limits[0], limits[1]);
});

test('A host has the standing of a silent HAProxy until the agent writes another', (t) => {
  const lowest = loweredBy(['haproxy']);
  t.regex(read('headgate.tmpfiles'), new RegExp(`/standing 0600 headgate headgate - ${lowest}$`, 'm'));
  t.regex(read('headgate-prepare@.service'), new RegExp(`echo ${lowest} \\|`));
});

test('systemd-tmpfiles and systemd-sysusers accept the files', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'hg-root-'));
  t.teardown(() => rm(root, { recursive: true }));
  await mkdir(join(root, 'etc'));
  const users = await run('systemd-sysusers', [`--root=${root}`, join(folder, 'headgate.sysusers')]);
  t.is(users.exitCode, 0, users.output);
  const passwd = readFileSync(join(root, 'etc/passwd'), 'utf8');
  t.regex(passwd, /^headgate:.*:\/usr\/sbin\/nologin$/m);
  t.regex(passwd, /^haproxy:/m);
  const folders = await run('systemd-tmpfiles', [
    '--create',
    `--root=${root}`,
    join(folder, 'headgate.tmpfiles'),
  ]);
  t.is(folders.exitCode, 0, folders.output);
  t.is(readFileSync(join(root, 'run/headgate/keepalived/standing'), 'utf8'), String(loweredBy(['haproxy'])));
  t.is(statSync(join(root, 'etc/credstore')).mode & 0o777, 0o700);
});

/** Runs the start command of HAProxy's unit with a script instead of HAProxy, in its own folder. */
async function startOfHaproxy(
  t: ExecutionContext<unknown>,
  script: string,
): Promise<{ readonly root: string; readonly start: string }> {
  const root = await mkdtemp(join(tmpdir(), 'hg-units-'));
  t.teardown(() => rm(root, { recursive: true }));
  const program = join(root, 'haproxy');
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const [, start = ''] = /^ExecStart=(.*)$/m.exec(read('headgate-haproxy.service')) ?? [];
  return {
    root,
    start: start
      .replaceAll('$$', '$')
      .replace('/usr/sbin/haproxy', program)
      .replaceAll(haproxyLog, join(root, 'haproxy.log')),
  };
}

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8');
}

function run(program: string, args: readonly string[]): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, SYSTEMD_COLORS: '0', SYSTEMD_EMOJI: '0' };
    execFile(program, args, { env }, (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : Number(error.code), output: `${stdout}${stderr}` });
    });
  });
}
