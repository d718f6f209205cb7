// The connection log in a real journal, which runs in a mount namespace of its own and is reached through /proc.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { socketOf } from '../../agent/base/log-target.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask } from '../support/traffic/traffic.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['journalctl', 'unshare', 'nsenter'],
});
const run = promisify(execFile);

test.serial('The journal has each line as a message of its own identifier, with severity info', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  const journal = await startJournal(t, host);
  await host.serve({
    members: [{ address: host.address(11), pod: 'web-0' }],
    annotations: { mode: 'http', log: 'all' },
  });
  // Only root reaches the journal's namespace.
  const user = ['--haproxy-user', 'root', '--haproxy-group', 'root'];
  await host.start([...user, '--connection-log-target', `socket:${journal.socket}`]);
  await ask(host.place());
  await host.soon('the journal has the line', async () => (await journal.messages()).length === 1);
  const [message] = await journal.messages();
  t.like(message, { PRIORITY: '6', SYSLOG_IDENTIFIER: 'headgate-connections' });
  t.like(JSON.parse(message?.MESSAGE ?? ''), { service: 'web', pod: 'web-0', path: '/', status: 200 });
});

async function startJournal(t: ExecutionContext, host: TestHost) {
  const start =
    'mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal && exec /lib/systemd/systemd-journald';
  const words = ['--mount', '--propagation', 'private', 'sh', '-c', start];
  const child = spawn('unshare', words, { stdio: 'ignore' });
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const socket = `/proc/${child.pid}/root${socketOf({ kind: 'journald' })}`;
  await host.until('the journal listens', async () => existsSync(socket));
  const messages = async (): Promise<readonly Readonly<Record<string, string>>[]> => {
    const read = ['journalctl', '-t', 'headgate-connections', '-o', 'json', '--no-pager'];
    const { stdout } = await run('nsenter', ['-t', String(child.pid), '-m', ...read]);
    return stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Readonly<Record<string, string>>);
  };
  return { socket, messages };
}
