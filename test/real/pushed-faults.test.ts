// A pushed text when something fails: the agent, the disk, HAProxy, its sockets, a certificate. The last text runs on.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ava from 'ava';
import type { HeadgateError } from '../../agent/base/errors.ts';
import { reload } from '../../agent/haproxy/socket/master.ts';
import { readRecord, writeRecord } from '../../agent/pushed/boot-record.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { pushedHost } from '../support/octavia/pushed-host.ts';
import { certificate } from '../support/traffic/certificate.ts';

const run = promisify(execFile);
const test = requires(ava, { haproxy: true, root: true, programs: ['octavia-worker', 'mount', 'openssl'] });

test.serial('An agent that ended before its commands is followed by one that reloads', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(12)]]);
  await host.haproxy.run(one);
  await writeFile(host.files.config, two);
  const next = host.restarted();
  await next.adopt();
  t.is(next.status().text, '');
  t.is(await host.ask(), host.address(11));
  t.is(await next.run(two), 'reload');
  t.is(await host.ask(), host.address(12));
});

test.serial(
  'An agent that ended in the middle of its commands is followed by one that reloads',
  async (t) => {
    const host = await pushedHost(t);
    await host.startMembers(11, 12, 13);
    const [one = '', half = '', two = ''] = await host.texts([
      [host.member(11)],
      [host.member(11), host.member(12)],
      [host.member(12), host.member(13)],
    ]);
    await host.haproxy.run(one);
    await host.haproxy.run(half);
    await writeFile(host.files.config, two);
    const next = host.restarted();
    t.is(await next.run(two), 'reload');
    t.deepEqual(await host.answers(4), [host.address(12), host.address(13)]);
  },
);

test.serial('An agent that ended before the order to reload is followed by one that reloads', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11);
  const [one = ''] = await host.texts([[host.member(11)]]);
  const two = one.replace('timeout client 50000', 'timeout client 7000');
  await host.haproxy.run(one);
  const record = readRecord(host.files.record);
  if (record === undefined) throw new Error('no record');
  writeRecord(host.files.record, { ...record, mark: `headgate-${randomUUID()}` });
  await writeFile(host.files.config, two);
  const next = host.restarted();
  await next.adopt();
  t.is(next.status().text, '');
  t.is(await next.run(two), 'reload');
  t.is(next.status().cause, 'what the worker has booted from is unknown');
});

test.serial('Sockets that another program has removed cost no traffic, and pushes continue', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(12)]]);
  const three = two.replace('timeout client 50000', 'timeout client 7000');
  await host.haproxy.run(one);
  await rm(host.files.adminSocket);
  t.is(await host.haproxy.run(two), 'runtime');
  await rm(host.files.masterSocket);
  t.is(await host.haproxy.run(three), 'reload');
  t.is(await host.ask(), host.address(12));
  t.is(await host.haproxy.run(three), 'none');
});

test.serial(
  'A worker that another program has replaced is found, and the last text is served again',
  async (t) => {
    const host = await pushedHost(t);
    await host.startMembers(11, 12);
    const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(12)]]);
    await host.haproxy.run(one);
    const replace = async (text: string): Promise<void> => {
      await writeFile(host.files.config, text);
      t.true((await reload(host.files.masterSocket)).ok);
    };
    await replace(two);
    await until('the heartbeat finds it', async () => {
      await host.haproxy.stats();
      return host.haproxy.status().cause.startsWith('the worker differs from the text');
    });
    t.is(await host.ask(), host.address(11));
    await replace(two);
    t.is(await host.haproxy.run(one), 'reload');
    t.is(await host.ask(), host.address(11));
  },
);

test.serial('A HAProxy that hangs counts as none, and serves on when it continues', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(12)]]);
  await host.haproxy.run(one);
  const pid = await host.workerPid();
  process.kill(pid, 'SIGSTOP');
  await until('it is stopped', async () => /^State:\tT/m.test(await readFile(`/proc/${pid}/status`, 'utf8')));
  t.is(await host.haproxy.stats(), undefined);
  process.kill(pid, 'SIGCONT');
  await until('it answers', async () => (await host.haproxy.stats()) !== undefined);
  t.is(await host.haproxy.run(two), 'runtime');
  t.is(await host.ask(), host.address(12));
  t.is(await host.workerPid(), pid);
});

test.serial('A full disk refuses a push, and the last text runs on', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const { folder } = host.files;
  await mkdir(folder, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=711', 'tmpfs', folder]);
  t.teardown(() => run('umount', ['--lazy', folder]));
  const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(12)]]);
  const three = two.replace('timeout client 50000', 'timeout client 7000');
  await host.haproxy.run(one);
  await writeFile(join(folder, 'filler'), Buffer.alloc(1024 * 1024)).catch(() => undefined);
  for (const text of [two, three]) {
    const { code } = await t.throwsAsync<HeadgateError>(host.haproxy.run(text));
    t.true(['FILE_WRITE', 'HAPROXY_RELOAD'].includes(code), code);
    t.is(await host.ask(), host.address(11));
  }
  await rm(join(folder, 'filler'));
  t.is(await host.haproxy.run(three), 'reload');
  t.is(await host.ask(), host.address(12));
});

test.serial('A certificate that is deleted while it is used ends no traffic', async (t) => {
  const host = await pushedHost(t);
  const { path } = await pem(host.base);
  const [plain = ''] = await host.texts([[host.member(11)]]);
  const one = plain.replace(/^( +bind \S+).*$/m, `$1 ssl crt ${path}`);
  await host.haproxy.run(one);
  const pid = await host.workerPid();
  await rename(path, `${path}.away`);
  const { code } = await t.throwsAsync<HeadgateError>(host.haproxy.run(one));
  t.is(code, 'HAPROXY_RELOAD');
  t.is(await host.workerPid(), pid);
  await rename(`${path}.away`, path);
  t.is(await host.haproxy.run(one), 'none');
});

test.serial(
  'A HAProxy that ends while its certificate is missing is started when it is there, and logged once',
  async (t) => {
    const host = await pushedHost(t);
    const { path } = await pem(host.base);
    const [plain = ''] = await host.texts([[host.member(11)]]);
    const text = plain.replace(/^( +bind \S+).*$/m, `$1 ssl crt ${path}`);
    await host.haproxy.run(text);
    await rename(path, `${path}.away`);
    process.kill(await host.workerPid(), 'SIGKILL');
    const tries = async () =>
      ((await readFile(host.files.log, 'utf8')).match(/\[ALERT\].*\.pem/g) ?? []).length;
    await until('it was tried again and again', async () => (await tries()) >= 3);
    t.false(host.haproxy.status().isRunning);
    t.regex(host.haproxy.status().fault, /web\.pem/);
    await rename(`${path}.away`, path);
    const isWell = () => host.haproxy.status().isRunning && host.haproxy.status().fault === '';
    await until('it serves', isWell);
    t.is(host.logged.filter((line) => line.includes('HAProxy does not serve')).length, 1);
  },
);

async function pem(directory: string): Promise<{ readonly path: string }> {
  const made = await certificate(directory, 'web.example');
  const path = join(directory, 'web.pem');
  await writeFile(path, made.cert + made.key);
  return { path };
}
