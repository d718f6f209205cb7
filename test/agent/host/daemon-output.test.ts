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
import { logSince, logSize, readLog, trimLog } from '../../../agent/host/daemon-output.ts';

function folder(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-log-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('logSince() reads what was added, and trimLog() empties a log that is too long', async (t) => {
  const log = join(folder(t), 'log');
  t.deepEqual([await logSize(log), await logSince(log, 0)], [0, '']);
  writeFileSync(log, 'before\n');
  const from = await logSize(log);
  appendFileSync(log, 'after\n');
  t.deepEqual(await readLog(log, from), { text: 'after\n', end: 13 });
  await trimLog(log, 13);
  t.is(await logSize(log), 13);
  await trimLog(log, 12);
  t.is(await logSize(log), 0);
  await trimLog(join(log, 'nowhere'), 0);
});

test('trimLog() empties the file that a daemon writes to, also after the file was renamed or removed', async (t) => {
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
  await trimLog(log, 5, daemon.pid);
  t.is(fstatSync(file).size, 5);
  await trimLog(log, 4, daemon.pid);
  t.is(fstatSync(file).size, 0);
  appendFileSync(`${log}.1`, 'long again\n');
  unlinkSync(`${log}.1`);
  await trimLog(log, 4, daemon.pid);
  t.is(fstatSync(file).size, 0);
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
  await trimLog(link, 0);
  t.is(readFileSync(other, 'utf8'), 'a secret');
  t.is(await logSince(pipe, 0), '');
  await trimLog(pipe, -1);
});
