import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ava from 'ava';
import { requires } from './support/basics/requirements.ts';

const test = requires(ava, { haproxy: true });
const run = promisify(execFile);
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
