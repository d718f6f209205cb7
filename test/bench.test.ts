import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ava from 'ava';
import { markedProcesses } from '../scripts/marked-processes.ts';
import { requires } from './support/basics/requirements.ts';
import { until } from './support/basics/until.ts';

const test = requires(ava, { haproxy: true });
const run = promisify(execFile);
/** A process of the second benchmark of the test with signals. */
const SECOND = /isolated-process\.ts|agent\/main|bin\/headgate/;
const root = fileURLToPath(new URL('..', import.meta.url));

async function bench(env: Readonly<Record<string, string>>) {
  const directory = await mkdtemp(join(tmpdir(), 'bench-test-'));
  const results = join(directory, 'results.json');
  try {
    const { stdout } = await run(process.execPath, ['bench/main.ts'], {
      cwd: root,
      env: { ...process.env, BENCH_SCALE: '0.01', BENCH_RESULTS: results, ...env },
      timeout: 270_000,
    });
    return { stdout, results: JSON.parse(await readFile(results, 'utf8')) };
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('A small benchmark prints its row and writes all fields of the row', async (t) => {
  const { stdout, results } = await bench({ ROWS: '^ack-1k$' });
  t.regex(stdout, /^\| `ack-1k` \| [\d.]+ ms \|/m);
  t.deepEqual(Object.keys(results), ['versions', 'machine', 'rows']);
  for (const name of ['headgate', 'node', 'haproxy']) t.regex(results.versions[name], /^\d+\.\d+/);
  t.true(results.machine.cpus > 0);
  t.deepEqual(
    results.rows.map(({ name }: { name: string }) => name),
    ['ack-1k'],
  );
  const [{ value, unit, target, met, reference, ratio, details }] = results.rows;
  t.true(value > 0);
  t.is(unit, 'ms');
  t.is(typeof target, 'string');
  t.is(typeof met, 'boolean');
  t.is(reference.name, 'lower bound, p50');
  t.true(reference.value > 0);
  t.true(Math.abs(ratio - value / reference.value) < 0.05 * ratio);
  t.true(details.p99 >= value);
  t.is(details.samples, 20);
});

test('A pattern without a matching row is an error that names the rows', async (t) => {
  const error = await t.throwsAsync<Error & { code: number; stderr: string }>(bench({ ROWS: 'nothing' }));
  t.is(error?.code, 2);
  t.regex(error?.stderr ?? '', /No row's name matches \/nothing\/: there are ack-1k, .*rss-5k/);
});

for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  test(`A benchmark that gets ${signal} repeatedly keeps the row that has ended, and leaves no process and no file`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'b-'));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const results = join(directory, 'results.json');
    // An isolated one, whose processes have their own namespaces, if the machine allows that.
    const second = process.getuid?.() === 0 ? 'kernel-ack' : 'cpu-per-change';
    const child = spawn(process.execPath, ['bench/main.ts', '--rows', `^(ack-1k|${second})$`], {
      cwd: root,
      env: { ...process.env, BENCH_SCALE: '0.01', BENCH_RESULTS: results, TMPDIR: directory },
      detached: true,
      stdio: 'ignore',
    });
    const exited = once(child, 'exit');
    const files = async () => (await readdir(directory)).filter((name) => name !== 'results.json');
    const mark = async () => `TMPDIR=${join(directory, (await files())[0] ?? 'none')}`;
    const processes = async () => markedProcesses(await mark()).map(({ command }) => command);
    t.teardown(() => child.kill('SIGKILL'));
    await until('the first row is written', async () => (await readdir(directory)).includes('results.json'), {
      seconds: 120,
    });
    // With its own HAProxy, or the process of a namespace.
    await until(
      'the second one runs',
      async () => (await processes()).some((command) => SECOND.test(command)),
      { seconds: 120, seen: () => child.exitCode },
    );
    const before = await mark();
    // A terminal, npm and make send it to the same process, and an impatient user repeats it.
    for (let isOver = false; !isOver; ) {
      process.kill(-(child.pid ?? 0), signal);
      isOver = await Promise.race([exited.then(() => true), delay(20, false)]);
    }
    t.deepEqual(await exited, [status, null]);
    t.deepEqual(markedProcesses(before), []);
    t.deepEqual(await files(), []);
    const { rows } = JSON.parse(await readFile(results, 'utf8'));
    t.deepEqual(
      rows.map(({ name }: { name: string }) => name),
      ['ack-1k'],
    );
  });
}
