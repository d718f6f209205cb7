import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { requires } from './support/basics/requirements.ts';
import { until } from './support/basics/until.ts';

const test = requires(ava, {
  programs: ['bird', 'ip', 'mount', 'nft', 'nsenter', 'openssl', 'setpriv', 'ss', 'sysctl', 'unshare'],
  haproxy: true,
  root: true,
});
const root = fileURLToPath(new URL('..', import.meta.url));

test.serial(
  'make demo-bgp: a planned change breaks no connection, and a host that dies only its own',
  async (t) => {
    const { child, output, left } = startDemo();
    const [status] = await once(child, 'close');
    t.is(status, 0, output());
    const rows = [...output().matchAll(/^(\S.*?) +([\d,]+) +(\d+) +(?:([\d.]+) s +)?200 +(\d+)$/gm)];
    t.deepEqual(
      rows.map(([, name]) => name),
      ['nothing changes', 'lb2 goes into maintenance', 'lb2 comes back', 'lb4 joins', 'lb3 loses its power'],
      output(),
    );
    for (const [, , opened = ''] of rows) t.true(Number(opened.replace(',', '')) > 50, output());
    for (const [, , , failed, , broken] of rows.slice(0, -1))
      t.deepEqual([failed, broken], ['0', '0'], output());
    const [, , , , lasted = '0', broken] = rows.at(-1) ?? [];
    t.true(Number(lasted) <= 0.5, output());
    t.true(Number(broken) > 0 && Number(broken) < 150, output());
    await until('nothing is left', () => left().length === 0, { seen: left });
  },
);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const)
  test.serial(`make demo-bgp leaves nothing behind on a ${signal} under load`, async (t) => {
    const { child, output, left } = startDemo();
    await until('it runs under load', () => output().includes('nothing changes'), { seen: output });
    t.true(left().length > 10);
    child.kill(signal);
    const [status] = await once(child, 'exit');
    t.not(status, 0);
    await until('nothing is left', () => left().length === 0, { seen: left });
  });

/** `left`: command lines of its processes that run. */
function startDemo(): {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly left: () => string[];
} {
  const mark = `DEMO_MARK=${randomBytes(8).toString('hex')}`;
  const env = { ...process.env, DEMO_MARK: mark.slice('DEMO_MARK='.length) };
  const words = ['--pdeathsig', 'KILL', process.execPath, 'examples/demo-bgp.ts'];
  const child = spawn('setpriv', words, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return { child, output: () => text, left: () => marked(mark) };
}

function marked(mark: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const isOurs = readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
        return isOurs ? [readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')] : [];
      } catch {
        return [];
      }
    });
}
