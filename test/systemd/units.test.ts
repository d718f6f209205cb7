// The units as systemd reads them, and what they must have in common with the agent and with one another.

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
import { instanceUnit, instantiated } from '../../scripts/instance-units.ts';
import { requires } from '../support/basics/requirements.ts';

const test = requires(ava, { programs: ['systemd-analyze', 'systemd-tmpfiles', 'systemd-sysusers'] });

const home = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(home, 'systemd');
const units = readdirSync(folder).filter((name) => name.endsWith('.service'));
const { log: haproxyLog } = haproxyPaths('/var/lib/headgate', '/run/headgate');
/** What an exposure may be at most, times ten: the least that their work allows. */
const EXPOSURE: Readonly<Record<string, number>> = {
  headgate: 22,
  'headgate-haproxy': 17,
  'headgate-keepalived': 25,
  'headgate-prepare': 25,
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

test('The units of instances are those of the one load balancer, in other folders and a network namespace', (t) => {
  for (const name of instantiated) t.is(read(`${name}@.service`), instanceUnit(read(`${name}.service`)));
  for (const name of instantiated) {
    const text = read(`${name}@.service`);
    t.notRegex(text, /\/(run|var\/lib)\/headgate(?!@%i)/, name);
    t.regex(text, /^NetworkNamespacePath=\/run\/netns\/%i$/m);
    t.regex(text, /^Requires=headgate-prepare@%i\.service$/m);
  }
});

test('A process that is ended for lack of memory takes nobody else of its unit along', (t) => {
  for (const name of ['headgate', 'headgate-haproxy'])
    t.regex(read(`${name}.service`), /^OOMPolicy=continue$/m, name);
});

test('HAProxy writes its messages where the agent reads them and keeps them small', async (t) => {
  t.true(read('headgate.tmpfiles').includes(`\nf ${haproxyLog} 0660 haproxy haproxy -\n`));
  const { root, start } = await startOfHaproxy(t, 'echo said >&2; umask');
  const log = join(root, 'haproxy.log');
  const command = `umask 27; exec ${start}`;
  for (const messages of ['said\n', 'said\nsaid\n']) {
    t.deepEqual(await run('/bin/sh', ['-c', command]), { exitCode: 0, output: '0027\n' });
    t.is(readFileSync(log, 'utf8'), messages);
    // The agent, which is in the group, empties it.
    t.is(statSync(log).mode & 0o777, 0o660);
  }
});

test('HAProxy starts where its messages cannot be written, and says both to the journal', async (t) => {
  const { root, start } = await startOfHaproxy(t, 'echo said >&2');
  await mkdir(join(root, 'haproxy.log'));
  const { exitCode, output } = await run('/bin/sh', ['-c', start]);
  t.is(exitCode, 0);
  t.regex(output, /haproxy\.log: Is a directory\nsaid\n$/);
});

test('systemd, which is root, opens no file in a folder that HAProxy may write', (t) => {
  for (const unit of units) t.notRegex(read(unit), /^Standard\w+=(append|truncate|file):/m, unit);
});

test('The unit of HAProxy starts it with a table of 8,192 descriptors, of which hardly any is taken', async (t) => {
  const { start } = await startOfHaproxy(t, 'grep FDSize /proc/$$/status; ls /proc/$$/fd | wc -l');
  const { exitCode, output } = await run('/bin/sh', ['-c', start]);
  t.is(exitCode, 0, output);
  const [, size, open] = /^FDSize:\s+(\d+)\n(\d+)\n$/.exec(output) ?? [];
  t.is(Number(size), 8_192);
  t.true(Number(open) < 10, output);
});

test('What the units say to the agent are settings that it has', (t) => {
  const variables = [...read('headgate.service').matchAll(/HEADGATE_\w+=\S+/g)].map(([text]) =>
    text.split('='),
  );
  t.true(variables.length >= 6);
  t.deepEqual(readVariables(Object.fromEntries(variables)).errors, []);
});

test('Agent and HAProxy may open as many files, because one computes from it what the other may have', (t) => {
  const limits = ['headgate', 'headgate-haproxy'].map(
    (name) => /^LimitNOFILE=(\d+)$/m.exec(read(`${name}.service`))?.[1],
  );
  t.truthy(limits[0]);
  t.is(limits[0], limits[1]);
});

test('Before the agent has said anything, a host stands as one whose HAProxy does not answer', (t) => {
  const lowest = loweredBy(['haproxy']);
  t.regex(read('headgate.tmpfiles'), new RegExp(`/standing 0600 headgate headgate - ${lowest}$`, 'm'));
  t.regex(read('headgate-prepare@.service'), new RegExp(`echo ${lowest} \\|`));
});

test('systemd-tmpfiles and systemd-sysusers take the files', async (t) => {
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

/** In a folder of its own, how the unit starts HAProxy, which is a script there and writes its messages there. */
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
