import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { CheckScript, checkedText } from '../../../../agent/octavia/vrrp/check-script.ts';
import { vrrpPaths } from '../../../../agent/octavia/vrrp/paths.ts';
import { requires } from '../../../support/basics/requirements.ts';

const test = requires(ava, {});

interface Case {
  readonly script: CheckScript;
  /** Serves a socket; `answer` undefined: it accepts connections and says nothing. */
  readonly serve: (answer: string | undefined) => Promise<string>;
  readonly exitCode: () => Promise<number>;
}

async function start(t: ExecutionContext<unknown>): Promise<Case> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-check-'));
  const paths = vrrpPaths(folder, folder);
  const script = new CheckScript(paths);
  await script.keep();
  const servers: Server[] = [];
  t.teardown(async () => {
    for (const server of servers) server.close();
    await rm(folder, { recursive: true });
  });
  return {
    script,
    serve: async (answer) => {
      const path = join(folder, `${servers.length}.sock`);
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        if (answer === undefined) socket.unref();
        else socket.on('data', () => socket.end(answer));
      });
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(path, resolve));
      return path;
    },
    exitCode: async () => (await runCommand(paths.script, [], { timeout: 30_000 })).exitCode,
  };
}

const INFO = 'Name: HAProxy\nPid: 123\nUptime: 0d\n';

test('The check script fails without a list, and with an empty one', async (t) => {
  const { script, exitCode } = await start(t);
  t.is(await exitCode(), 1);
  await script.check({ sockets: [], hasDatagrams: false });
  t.is(await exitCode(), 1);
});

test('The check script succeeds if each HAProxy answers', async (t) => {
  const { script, serve, exitCode } = await start(t);
  const [one, two] = [await serve(INFO), await serve(INFO)];
  await script.check({ sockets: [one, two], hasDatagrams: true });
  t.is(await exitCode(), 0);
  await script.check({ sockets: [one, `${two}.gone`], hasDatagrams: true });
  t.is(await exitCode(), 1);
});

test('The check script succeeds with listeners of the kernel alone', async (t) => {
  const { script, exitCode } = await start(t);
  await script.check({ sockets: [], hasDatagrams: true });
  t.is(await exitCode(), 0);
});

test('The check script fails if a HAProxy hangs or does not say what it is', async (t) => {
  const { script, serve, exitCode } = await start(t);
  await script.check({ sockets: [await serve('Permission denied\n')], hasDatagrams: false });
  t.is(await exitCode(), 1);
  await script.check({ sockets: [await serve(undefined)], hasDatagrams: false });
  t.is(await exitCode(), 1);
});

test('checkedText() refuses a path that would be several lines', (t) => {
  t.is(checkedText({ sockets: ['/b', '/a'], hasDatagrams: true }), '/a\n/b\ndatagrams\n');
  for (const path of ['/a\n/b', 'a', '/a b'])
    t.throws(() => checkedText({ sockets: [path], hasDatagrams: false }), { code: 'RUNTIME_TOKEN' });
});
