import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { DaemonLog, logSince, logSize, readLog } from '../../../agent/host/daemon-output.ts';

function folder(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-log-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

function trim(t: ExecutionContext, path: string, maxBytes: number, pid?: number): void {
  const log = new DaemonLog(path, maxBytes);
  t.teardown(() => log.close());
  log.trim(pid);
}

test('logSince() reads what was added, and DaemonLog empties a log that is too long', async (t) => {
  const log = join(folder(t), 'log');
  t.deepEqual([await logSize(log), await logSince(log, 0)], [0, '']);
  writeFileSync(log, 'before\n');
  const from = await logSize(log);
  appendFileSync(log, 'after\n');
  t.deepEqual(await readLog(log, from), { text: 'after\n', end: 13 });
  trim(t, log, 13);
  t.is(await logSize(log), 13);
  trim(t, log, 12);
  t.is(await logSize(log), 0);
  trim(t, join(log, 'nowhere'), 0);
});

test('DaemonLog empties the file that a daemon of the same user writes to, also if it was renamed or removed before', async (t) => {
  const log = join(folder(t), 'log');
  writeFileSync(log, 'long\n');
  const file = openSync(log, 'a');
  const daemon = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', file] });
  t.teardown(() => {
    daemon.kill();
    closeSync(file);
  });
  await once(daemon, 'spawn');
  renameSync(log, `${log}.1`);
  trim(t, log, 5, daemon.pid);
  t.is(fstatSync(file).size, 5);
  trim(t, log, 4, daemon.pid);
  t.is(fstatSync(file).size, 0);
  appendFileSync(`${log}.1`, 'long again\n');
  unlinkSync(`${log}.1`);
  trim(t, log, 4, daemon.pid);
  t.is(fstatSync(file).size, 0);
});

test('DaemonLog empties the file that a daemon of another user writes to, also if it was renamed or removed since', async (t) => {
  const path = join(folder(t), 'log');
  writeFileSync(path, 'short');
  const log = new DaemonLog(path, 5);
  t.teardown(() => log.close());
  log.trim();
  const file = openSync(path, 'a');
  t.teardown(() => closeSync(file));
  const size = () => fstatSync(file).size;
  renameSync(path, `${path}.1`);
  writeFileSync(path, 'a file in its place');
  appendFileSync(file, ' and long');
  log.trim();
  t.deepEqual([size(), await logSize(path)], [0, 0]);
  unlinkSync(`${path}.1`);
  appendFileSync(file, 'long again');
  log.trim();
  t.is(size(), 0);
});

test('A link or a pipe that replaced the log is not read, emptied or waited for', async (t) => {
  const directory = folder(t);
  const [other, link, pipe] = ['other', 'link', 'pipe'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(other, 'a secret');
  symlinkSync(other, link);
  execFileSync('mkfifo', [pipe]);
  t.is(await logSince(link, 0), '');
  trim(t, link, 0);
  t.is(readFileSync(other, 'utf8'), 'a secret');
  t.is(await logSince(pipe, 0), '');
  trim(t, pipe, -1);
});
