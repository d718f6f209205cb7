import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { serveAgentSocket } from '../../../agent/answer/agent-socket.ts';
import { useStateDir } from '../../../agent/answer/state-dir-owner.ts';

async function folder(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'state-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}

test('useStateDir() refuses a folder while another agent that uses it answers', async (t) => {
  const directory = await folder(t);
  const [state, first, second] = ['s', 'a.sock', 'b.sock'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await useStateDir(state, first);
  const server = await serveAgentSocket(first, {});
  await t.throwsAsync(useStateDir(state, second), { code: 'AGENT_RUNNING', message: /a\.sock/ });
  await useStateDir(state, first);
  await new Promise((resolve) => server.close(resolve));
  await t.notThrowsAsync(useStateDir(state, second));
});

test('useStateDir() accepts a copied folder and a folder whose record is damaged', async (t) => {
  const directory = await folder(t);
  const socket = join(directory, 'a.sock');
  const server = await serveAgentSocket(socket, {});
  t.teardown(() => server.close());
  const file = join(directory, 'agent.json');
  for (const said of [JSON.stringify({ stateDir: '/elsewhere', socket }), '{"stateDir":', 'null', '']) {
    await writeFile(file, said);
    await t.notThrowsAsync(useStateDir(directory, join(directory, 'b.sock')));
  }
});
