import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { requires } from './support/basics/requirements.ts';

const test = requires(ava, { programs: ['octavia-worker', 'ip', 'openssl'], haproxy: true, root: true });
const root = fileURLToPath(new URL('..', import.meta.url));

test('make demo-octavia: no change of members fails a request, reloads HAProxy or moves a client, where Octavia’s own agent does', async (t) => {
  const { status, output } = await new Promise<{ status: number; output: string }>((resolve) => {
    execFile(
      process.execPath,
      ['examples/demo-octavia.ts'],
      { cwd: root, timeout: 280_000 },
      (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    );
  });
  t.is(status, 0, output);
  const rows = [...output.matchAll(/ Headgate +([\d,]+) +(\d+) +[\d.]+ +[\d.]+ +(\d+)/g)];
  t.is(rows.length, 5, output);
  for (const [, requests = '', failed, reloads] of rows) {
    t.true(Number(requests.replace(',', '')) > 50, output);
    t.deepEqual([failed, reloads], ['0', '0'], output);
  }
  t.regex(output, /^Headgate: 0 of 20 clients .*; 1 worker of HAProxy after ten pushes/m);
  t.regex(output, /^Octavia: ([1-9]|1\d|20) of 20 clients .*; ([2-9]|1\d) workers of HAProxy/m);
});
