// The agent as its systemd unit runs it: its notifications to systemd, and a HAProxy of another user.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { NotifySocket } from '../support/host/notify-socket.ts';
import { startMembers } from '../support/traffic/members.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['systemd-notify', 'python3', 'setpriv'],
});

const AGENT = 64_101;
const HAPROXY = 64_102;

test.serial(
  'An agent and a HAProxy of two users share only a group, and systemd receives READY=1 only when traffic is served',
  async (t) => {
    const socket = await NotifySocket.open(t);
    const host = await TestHost.create(t, {
      uid: AGENT,
      flags: ['--haproxy-supervisor', 'external', '--haproxy-access', 'group'],
      env: { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '600000' },
    });
    await chmod(dirname(socket.path), 0o755);
    await startMembers(t, host, 2);
    const { paths } = host;
    // As headgate.tmpfiles has them.
    for (const [folder, mode] of [
      [dirname(paths.config), 0o2750],
      [dirname(paths.adminSocket), 0o2770],
    ] as const) {
      await mkdir(folder);
      await chown(folder, AGENT, AGENT);
      await chmod(folder, mode);
    }
    await host.serve();
    const agent = await host.launch();
    await socket.until('it says what it waits for', () =>
      socket.told().includes('STATUS=HAProxy is not running'),
    );
    t.false(socket.told().includes('READY=1'));
    t.true(socket.told().some((line) => line.startsWith('EXTEND_TIMEOUT_USEC=')));

    await host.until('the file is written', () => exists(paths.config));
    t.is((await stat(paths.config)).mode & 0o7777, 0o640);
    const words = ['-Ws', '-S', `${paths.masterSocket},mode,660`, '-p', paths.pidFile, '-f', paths.config];
    const identity = [`--reuid=${HAPROXY}`, `--regid=${AGENT}`, '--clear-groups', '--bounding-set=-all'];
    const haproxy = spawn('setpriv', [...identity, '--inh-caps=-all', host.haproxyProgram, ...words], {
      stdio: 'ignore',
    });
    t.teardown(() => haproxy.kill('SIGKILL'));
    await socket.until('it is ready', () => socket.told().includes('READY=1'));
    t.true(await host.answers());
    for (const path of [paths.adminSocket, paths.masterSocket, paths.peersSocket]) {
      const { mode, uid, gid } = await stat(path);
      t.deepEqual([mode & 0o777, uid, gid], [0o660, HAPROXY, AGENT], path);
    }

    // Runtime commands and reloads both work across the two users.
    await host.serve({ members: [host.address(12)] });
    await host.until('the member is another', async () => (await host.config()).includes(host.address(12)));
    t.is(await host.reloads(), 0);
    await host.serve({ name: 'more', address: host.address(2) });
    await host.until('the new Service answers', () => host.answers(2));
    t.is(await host.reloads(), 1);
    await socket.until('the status follows', () => socket.told().includes('STATUS=Serving 2 load balancers'));

    const from = socket.messages.length;
    await socket.until(
      'it beats',
      () => socket.told(from).filter((line) => line === 'WATCHDOG=1').length > 1,
    );
    agent.child.kill('SIGTERM');
    await socket.until('it says that it stops', () => socket.told(from).includes('STOPPING=1'));
    t.is(await agent.exited, 0);
    t.true(await host.answers());
    haproxy.kill('SIGTERM');
    await once(haproxy, 'exit');
  },
);

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
