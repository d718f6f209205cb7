// The units as systemd reads them, and what they must have in common with the agent and with one another.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { haproxyVariables } from '../../agent/haproxy/process/haproxy-variables.ts';
import { haproxyDescriptors, haproxyPaths } from '../../agent/haproxy/process/process.ts';
import { readVariables } from '../../agent/settings/sources.ts';
import { loweredBy } from '../../agent/vips/keepalived/vrrp.ts';
import { instanceUnit, instantiated } from '../../scripts/instance-units.ts';
import { requires } from '../support/basics/requirements.ts';
import { shortestSlice, sliceIn } from '../support/measure/slices.ts';

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

test('The unit of HAProxy starts it with what the agent starts it with', async (t) => {
  const { root, start } = await startOfHaproxy(t, 'env');
  for (const device of ['without-reporting', 'with-reporting'])
    await mkdir(join(root, device, 'virtio0'), { recursive: true });
  await writeFile(join(root, 'without-reporting/virtio0/features'), '0110000110\n');
  await writeFile(join(root, 'with-reporting/virtio0/features'), '0110010110\n');

  const text = read('headgate-haproxy.service');
  const given = Object.fromEntries(
    [...text.matchAll(/^Environment=(\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]),
  );
  const environment = async (balloons: string, own: NodeJS.ProcessEnv = {}) => {
    const command = start.replace('/sys/bus/virtio/drivers/virtio_balloon', balloons);
    const env = { PATH: process.env.PATH, ...given, ...own };
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command], { env });
    return Object.fromEntries(
      stdout.split('\n').flatMap((line) => (/^(HAPROXY|GLIBC)/.test(line) ? [line.split(/=(.*)/, 2)] : [])),
    );
  };
  for (const device of ['no-device', 'without-reporting', 'with-reporting']) {
    const balloons = join(root, device);
    t.deepEqual(await environment(balloons), haproxyVariables(balloons), device);
    const own = { GLIBC_TUNABLES: 'glibc.malloc.arena_max=1' };
    t.deepEqual(await environment(balloons, own), { ...haproxyVariables(balloons), ...own }, device);
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

test('The unit of HAProxy starts it with as much room for descriptors as the agent does', (t) => {
  const highest = /^ExecStart=.* (\d+)<\/dev\/null'$/m.exec(read('headgate-haproxy.service'))?.[1];
  t.is(Number(highest), haproxyDescriptors - 1);
});

test('The unit of HAProxy gives it the shortest slice, as the agent does', async (t) => {
  const { start } = await startOfHaproxy(t, 'cat /proc/$$/sched');
  const { exitCode, output } = await run('/bin/sh', ['-c', start]);
  t.is(exitCode, 0, output);
  t.is(sliceIn(output), shortestSlice());
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
      .replace('/usr/lib/headgate', home)
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
