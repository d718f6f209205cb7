// A pushed text: Octavia's own renderer writes it, a real HAProxy runs it, and members come and go without a reload.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import ava from 'ava';
import type { HeadgateError } from '../../agent/base/errors.ts';
import { masterPid } from '../../agent/haproxy/instance/process.ts';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { haproxyVersion } from '../../agent/haproxy/socket/version.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { pushedHost, VIP_PORT } from '../support/octavia/pushed-host.ts';
import { SAMPLE_BACKEND, SAMPLE_LISTENER } from '../support/octavia/render-haproxy.ts';
import { connectTo } from '../support/traffic/sockets.ts';

const test = requires(ava, { haproxy: true, root: true, programs: ['octavia-worker'] });

test.serial('A push with nothing changed but the order of members does nothing', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const [one = '', two = ''] = await host.texts([
    [host.member(11), host.member(12)],
    [host.member(12), host.member(11)],
  ]);
  t.is(await host.haproxy.run(one), 'reload');
  const pid = await host.workerPid();
  t.is(await host.haproxy.run(one), 'none');
  t.is(await host.haproxy.run(two), 'none');
  t.is(await host.workerPid(), pid);
  t.like(host.haproxy.status(), { isRunning: true, cause: 'HAProxy did not run', fault: '' });
  t.deepEqual(await host.answers(4), [host.address(11), host.address(12)]);
});

test.serial(
  'Members come, change, are disabled, return and go without a reload, and traffic follows',
  async (t) => {
    const host = await pushedHost(t);
    const { member, address } = host;
    await host.startMembers(11, 12, 13);
    const pools = [
      [member(11)],
      [member(11), member(12)],
      [member(11), member(12, { enabled: false }), member(13)],
      [member(11, { weight: 0 }), member(12), member(13)],
      [member(12), member(13, { enabled: false })],
      [member(11), member(13)],
      [],
      [member(12)],
    ];
    const expected = [[11], [11, 12], [11, 13], [12, 13], [12], [11, 13], undefined, [12]];
    const texts = await host.texts(pools);
    await host.haproxy.run(texts[0] ?? '');
    const pid = await host.workerPid();
    for (const [at, text] of texts.entries()) {
      t.is(await host.haproxy.run(text), at === 0 ? 'none' : 'runtime', `push ${at}`);
      const lasts = expected[at];
      t.deepEqual(await host.answers(6), lasts === undefined ? ['503'] : lasts.map(address), `push ${at}`);
      const rows = (await host.haproxy.stats()) ?? [];
      const servers = rows.filter(
        (row) => row.get('pxname') === SAMPLE_BACKEND && row.get('svname') !== 'BACKEND',
      );
      t.deepEqual(
        servers.map((row) => row.get('svname')).sort(),
        (pools[at] ?? []).map(({ id }) => id).sort(),
        `push ${at}`,
      );
      const pool = rows.find(
        (row) => row.get('svname') === 'BACKEND' && row.get('pxname') === SAMPLE_BACKEND,
      );
      t.is(pool?.get('status'), 'UP', `push ${at}`);
    }
    t.is(await host.workerPid(), pid);
    t.is(rowsOfListener(await host.haproxy.stats()), 1);
  },
);

function rowsOfListener(
  rows: Awaited<ReturnType<Awaited<ReturnType<typeof pushedHost>>['haproxy']['stats']>>,
) {
  return rows?.filter((row) => row.get('pxname') === SAMPLE_LISTENER && row.get('svname') === 'FRONTEND')
    .length;
}

test.serial('A removed member finishes its connection, and HAProxy forgets it afterwards', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const listener = { persistence: false, monitor: false, proto: 'TCP', timeout_member_connect: 100 };
  const both = [host.member(11), host.member(12)];
  const [one = '', two = '', three = ''] = await host.texts([[host.member(12)], [host.member(11)], both], {
    listener,
  });
  await host.haproxy.run(one);
  const socket = await connectTo(host.address(1), VIP_PORT);
  t.teardown(() => socket.destroy());
  const isListed = async () => (await host.serversState()).includes('member-12');
  const ask = async () => {
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    return String((await once(socket, 'data'))[0]);
  };
  t.true((await ask()).includes(host.address(12)));
  t.is(await host.haproxy.run(two), 'runtime');
  t.deepEqual(await host.answers(2), [host.address(11)]);
  t.true((await ask()).includes(host.address(12)));
  t.true(await isListed());
  socket.destroy();
  await until('the server is deleted', async () => !(await isListed()));
  t.is(await host.haproxy.run(three), 'runtime');
  t.deepEqual(await host.answers(4), [host.address(11), host.address(12)]);
});

test.serial('A new member of a pool with cookies gets the clients of its cookie', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const both = [host.member(11), host.member(12)];
  const [one = '', two = ''] = await host.texts([[host.member(11)], both], {
    listener: { persistence_type: 'HTTP_COOKIE', monitor: false },
  });
  await host.haproxy.run(one);
  const { major } = await haproxyVersion(haproxyExecutable);
  t.is(await host.haproxy.run(two), major < 3 ? 'reload' : 'runtime');
  const cookies = new Set<string>();
  for (let at = 0; at < 4; at++) {
    const response = await fetch(`http://${host.address(1)}:${VIP_PORT}/`);
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? '';
    cookies.add(cookie);
    const again = await fetch(`http://${host.address(1)}:${VIP_PORT}/`, { headers: { cookie } });
    t.is(await again.text(), await response.text(), cookie);
  }
  t.deepEqual([...cookies].sort(), ['SRV=member-11', 'SRV=member-12']);
});

test.serial(
  'A reload is proved, keeps what checks have found, and hands over the last counters',
  async (t) => {
    const host = await pushedHost(t);
    await host.startMembers(11);
    const spec = {
      listener: { persistence: false, proto: 'TCP', be_proto: 'TCP' },
      monitor: { delay: 1, timeout: 1, fall_threshold: 1, rise_threshold: 9 },
    };
    const members = [host.member(11), host.member(12)];
    const [one = ''] = await host.texts([members], spec);
    const [two = ''] = await host.texts([members], {
      ...spec,
      listener: { ...spec.listener, timeout_client_data: 1234 },
    });
    await host.haproxy.run(one);
    const status = async () =>
      ((await host.haproxy.stats()) ?? []).find((row) => row.get('svname') === 'member-12')?.get('status');
    await until('the member without a process is down', async () => (await status()) === 'DOWN');
    await host.ask();
    const pid = await host.workerPid();
    t.is(await host.haproxy.run(two), 'reload');
    t.not(await host.workerPid(), pid);
    t.is(await status(), 'DOWN');
    t.is(host.haproxy.status().cause, `timeout client of frontend ${SAMPLE_LISTENER} differs`);
    const last = host.replaced[0]?.find((row) => row.get('svname') === 'FRONTEND');
    t.is(last?.get('stot'), '1');
  },
);

test.serial('After commands a reload leads to weights and states of the text', async (t) => {
  const host = await pushedHost(t);
  const [one = '', two = ''] = await host.texts([
    [host.member(11), host.member(12)],
    [host.member(11, { weight: 5 }), host.member(12, { enabled: false })],
  ]);
  const [three = ''] = await host.texts([[host.member(11), host.member(12)]], {
    listener: { persistence: false, monitor: false, timeout_client_data: 7 },
  });
  await host.haproxy.run(one);
  t.is(await host.haproxy.run(two), 'runtime');
  t.is(await host.haproxy.run(three), 'reload');
  const rows = (await host.haproxy.stats()) ?? [];
  for (const name of ['member-11', 'member-12']) {
    const row = rows.find((each) => each.get('svname') === name);
    t.is(row?.get('weight'), '1');
    t.is(row?.get('status'), 'no check');
  }
});

test.serial('A text that HAProxy refuses leaves the last one running and on disk', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11);
  const [good = ''] = await host.texts([[host.member(11)]]);
  await host.haproxy.run(good);
  const bad = good.replace('mode http', 'mode nonsense');
  const refused = await t.throwsAsync<HeadgateError>(host.haproxy.check(bad));
  t.is(refused.code, 'HAPROXY_REJECTED');
  t.regex(refused.message, /unknown proxy mode 'nonsense'/);
  await t.notThrowsAsync(host.haproxy.check(good));
  const pid = await host.workerPid();
  const failed = await t.throwsAsync<HeadgateError>(host.haproxy.run(bad));
  t.is(failed.code, 'HAPROXY_RELOAD');
  t.is(await host.workerPid(), pid);
  t.is(await host.ask(), host.address(11));
  t.not(host.haproxy.status().fault, '');
  t.is(await host.haproxy.run(good), 'none');
  t.is(host.haproxy.status().fault, '');
  process.kill(pid, 'SIGKILL');
  await until('HAProxy is back with the last good text', async () => (await host.ask()) === host.address(11));
});

test.serial('A text that is served is not checked again, unless a file of it has changed', async (t) => {
  const host = await pushedHost(t);
  const [good = ''] = await host.texts([[host.member(11)]]);
  await host.haproxy.check(good);
  t.true(existsSync(host.files.checked));
  await host.haproxy.run(good);
  await rm(host.files.checked);
  await host.haproxy.check(good);
  t.false(existsSync(host.files.checked));
  await host.haproxy.check(good.replace('timeout client 50000', 'timeout client 7'));
  t.true(existsSync(host.files.checked));
});

test.serial('A HAProxy that was killed is started again with the last text', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(12)]]);
  await host.haproxy.run(one);
  t.is(await host.haproxy.run(two), 'runtime');
  // Both are asked for first: a worker ends without its master.
  const [master = 0, worker] = [await masterPid(host.files), await host.workerPid()];
  for (const pid of [worker, master]) process.kill(pid, 'SIGKILL');
  await until('it serves', async () => (await host.ask()) === host.address(12));
  t.is(await host.haproxy.run(two), 'none');
  t.is(host.haproxy.status().cause, 'HAProxy had ended');
});

test.serial('An agent after a restart adopts the worker, and continues with commands', async (t) => {
  const host = await pushedHost(t);
  const { member, address } = host;
  await host.startMembers(11, 12, 13);
  const [one = '', two = '', three = ''] = await host.texts([
    [member(11)],
    [member(11), member(12)],
    [member(12), member(13)],
  ]);
  await host.haproxy.run(one);
  await host.haproxy.run(two);
  const pid = await host.workerPid();
  const next = host.restarted();
  await next.adopt();
  t.true(next.status().isRunning);
  t.is(await next.run(two), 'none');
  t.is(await next.run(three), 'runtime');
  t.is(await host.workerPid(), pid);
  t.deepEqual(await host.answers(4), [address(12), address(13)]);
  const last = host.restarted();
  t.is(await last.run(one), 'reload', 'member-11 waits for its deletion, and its line is unknown');
  t.deepEqual(await host.answers(2), [address(11)]);
});

test.serial('A worker that another program has changed is reloaded by the next agent', async (t) => {
  const host = await pushedHost(t);
  const [one = ''] = await host.texts([[host.member(11), host.member(12)]]);
  await host.haproxy.run(one);
  await askOnce(host.files.adminSocket, `set server ${SAMPLE_BACKEND}/member-11 weight 9`);
  const next = host.restarted();
  t.is(await next.run(one), 'reload');
  t.regex(next.status().cause, /^the worker differs from the text: server member-11 .* has weight 9$/);
});

test.serial('A refused command is one reload', async (t) => {
  const host = await pushedHost(t);
  await host.startMembers(11, 12);
  const [one = '', two = ''] = await host.texts([[host.member(11)], [host.member(11), host.member(12)]]);
  await host.haproxy.run(one);
  await askOnce(host.files.adminSocket, `add server ${SAMPLE_BACKEND}/member-12 127.0.0.1:9`);
  t.is(await host.haproxy.run(two), 'reload');
  t.regex(host.haproxy.status().cause, /^HAProxy refused AddServer: Already exists/);
  t.deepEqual(await host.answers(4), [host.address(11), host.address(12)]);
});

test.serial('A push reloads if the content of a file that the text names has changed', async (t) => {
  const host = await pushedHost(t);
  const path = `${host.base}/ping-wrapper.sh`;
  await writeFile(path, '#!/bin/sh\n', { mode: 0o755 });
  const [plain = ''] = await host.texts([[host.member(11)]]);
  const text = plain
    .replace('    maxconn 100\n', '    maxconn 100\n    external-check\n    insecure-fork-wanted\n')
    .replace(
      '    option allbackups\n',
      `    option external-check\n    external-check command ${path}\n    option allbackups\n`,
    );
  await host.haproxy.run(text);
  t.is(await host.haproxy.run(text), 'none');
  await writeFile(path, '#!/bin/sh\nexit 0\n');
  t.is(await host.haproxy.run(text), 'reload');
  t.is(host.haproxy.status().cause, `the content of ${path} differs`);
  t.is(await host.haproxy.run(text.replace('server member-11', 'server member-12')), 'reload');
});

test.serial(
  'HAProxy of a pair knows its own name among the peers of the text, also when it is only checked',
  async (t) => {
    const host = await pushedHost(t, { peer: 'ZfWexrHs1hcNUERHQEPMqVYKgHE' });
    const [plain = ''] = await host.texts([[host.member(11)]], {
      listener: { persistence_type: 'SOURCE_IP', monitor: false, topology: 'ACTIVE_STANDBY' },
    });
    const peers = ['ZfWexrHs1hcNUERHQEPMqVYKgHE', 'other'].map(
      (name, at) => `    peer ${name} ${host.address(1 + at)}:1025\n`,
    );
    const text = plain.replace(/^peers .*\n/m, (line) => line + peers.join(''));
    await t.notThrowsAsync(host.haproxy.check(text));
    t.is(await host.haproxy.run(text), 'reload');
    t.regex(await askOnce(host.files.adminSocket, 'show peers'), /id=ZfWexrHs1hcNUERHQEPMqVYKgHE\(local/);
  },
);

test.serial('stop() ends HAProxy, which is not started again', async (t) => {
  const host = await pushedHost(t);
  const [one = ''] = await host.texts([[host.member(11)]]);
  await host.haproxy.run(one);
  const pid = (await masterPid(host.files)) ?? 0;
  t.true(pid > 0);
  await host.haproxy.stop();
  await until('the master is gone, and whoever started it knows', () => !isAlive(pid));
  t.deepEqual(host.haproxy.status(), { isRunning: false, text: '', since: undefined, cause: '', fault: '' });
  t.is(await host.haproxy.run(one), 'reload');
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
