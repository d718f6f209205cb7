import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { askOnce } from '../../../../agent/haproxy/socket/ask-once.ts';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import { parseAcl } from '../../../../agent/haproxy/socket/readings.ts';
import type { Failure, Reply } from '../../../../agent/haproxy/socket/reply.ts';
import { Runtime } from '../../../../agent/haproxy/socket/runtime.ts';
import { parseServersState, type ServerState } from '../../../../agent/haproxy/socket/servers-state.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { connection, type RunningHaproxy, startHaproxy } from '../../../support/haproxy/haproxy.ts';

const test = requires(ava, { haproxy: true });

const BODY = (directory: string): string => `
frontend fe:tcp:80:v4
  bind unix@${directory}/fe.sock
  acl allowed src -u 12345 10.0.0.0/8 2001:db8::/32
  tcp-request connection accept if allowed
  default_backend be:tcp:80:v4
backend be:tcp:80:v4
  balance roundrobin
  server 127.0.1.1:80 127.0.1.1:80 id 77 weight 100 check
  server 2001:db8::1:80 [2001:db8::1]:80 weight 50 disabled
  server referred 127.0.1.9:80 disabled
backend least
  balance leastconn
  use-server referred if FALSE
  server referred 127.0.1.9:80 disabled
backend hashed
  balance source
  hash-type consistent
backend static
  balance static-rr
`;
const backend = 'be:tcp:80:v4';
const server = '127.0.1.2:81';

test('Every kind of command succeeds on a real HAProxy and has its effect', async (t) => {
  const { runtime } = await started(t);
  const send = sender(runtime);
  const state = () => stateOf(runtime, backend, server);

  t.deepEqual(await send(add({ keywords: ['id', '5', 'weight', '10', 'check', 'inter', '1h'] })), {
    ok: true,
  });
  t.like(await state(), { id: 5, address: '127.0.1.2', port: 81, weight: 10, state: 'maint', check: 'off' });
  t.deepEqual(await send({ kind: 'SetServerState', backend, server, state: 'ready' }), { ok: true });
  t.deepEqual(await send({ kind: 'EnableHealth', backend, server }), { ok: true });
  t.like(await state(), { state: 'ready', operational: 'up', check: 'on' });
  t.deepEqual(await send({ kind: 'SetServerWeight', backend, server, weight: 20 }), { ok: true });
  t.deepEqual(await send({ kind: 'SetServerState', backend, server, state: 'drain' }), { ok: true });
  t.like(await state(), { state: 'drain', weight: 20 });
  t.deepEqual(await send({ kind: 'ShutdownSessions', backend, server }), { ok: true });
  t.deepEqual(await send({ kind: 'SetServerState', backend, server, state: 'maint' }), { ok: true });
  t.deepEqual(await send({ kind: 'DeleteServer', backend, server }), { ok: true });
  t.is(await state(), undefined);

  t.deepEqual(await send({ kind: 'AddCidr', acl: 12_345, cidr: '192.168.0.0/16' }), { ok: true });
  t.deepEqual(parseAcl(await runtime.ask('show acl #12345')), [
    '10.0.0.0/8',
    '2001:db8::/32',
    '192.168.0.0/16',
  ]);
  t.deepEqual(await send({ kind: 'DeleteCidr', acl: 12_345, cidr: '10.0.0.0/8' }), { ok: true });
  t.deepEqual(await send({ kind: 'DeleteCidr', acl: 12_345, cidr: '2001:db8::/32' }), { ok: true });
  t.deepEqual(await send({ kind: 'DeleteCidr', acl: 12_345, cidr: '192.168.0.0/16' }), { ok: true });
  t.deepEqual(parseAcl(await runtime.ask('show acl #12345')), []);
});

for (const size of [1, 600]) {
  test(`Runtime sends ${size} commands before a later command, also if writing their text is slow`, async (t) => {
    const { runtime } = await started(t);
    const own = { backend, server: '127.0.1.1:80', kind: 'SetServerWeight' } as const;
    const slow = {
      ...own,
      get weight() {
        for (const end = performance.now() + 20; performance.now() < end; );
        return 10;
      },
    };
    const batch = [slow, ...Array.from({ length: size - 1 }, () => ({ ...own, weight: 11 }))];
    const done: string[] = [];
    await Promise.all([
      runtime.send(batch).then(() => done.push('batch')),
      runtime.send([{ ...own, weight: 20 }]).then(() => done.push('one')),
      runtime.send([{ ...own, weight: 30 }]).then(() => done.push('another')),
    ]);
    t.like(await stateOf(runtime, backend, own.server), { weight: 30 });
    t.deepEqual(done, ['batch', 'one', 'another']);
  });
}

test('Runtime sends a batch after a batch that was refused', async (t) => {
  const { runtime } = await started(t);
  const own = { backend, server: '127.0.1.1:80', kind: 'SetServerWeight' } as const;
  const batch = Array.from({ length: 600 }, () => ({ ...own, weight: 11 }));
  const refused = runtime.send([...batch, { ...own, server: 'a b', weight: 12 }]);
  const after = runtime.send([{ ...own, weight: 20 }]);
  await t.throwsAsync(refused, { code: 'RUNTIME_TOKEN' });
  t.deepEqual(await after, [{ ok: true }]);
  t.like(await stateOf(runtime, backend, own.server), { weight: 20 });
});

test('HAProxy adds a server with an IPv6 address for each balancing algorithm that allows it', async (t) => {
  const { runtime } = await started(t);
  const send = sender(runtime);
  for (const name of [backend, 'least', 'hashed']) {
    const v6 = { backend: name, server: '2001:db8::2:8080' };
    t.deepEqual(await send(add({ ...v6, address: '2001:db8::2', port: 8080 })), { ok: true });
    t.deepEqual(await send({ kind: 'SetServerState', ...v6, state: 'ready' }), { ok: true });
    t.like(await stateOf(runtime, name, v6.server), { address: '2001:db8::2', port: 8080, state: 'ready' });
  }
});

const failures: readonly (readonly [string, Command, Failure])[] = [
  ['adds a server to an unknown backend', add({ backend: 'nope' }), 'missing-backend'],
  ['adds a server that exists', add({ server: '127.0.1.1:80' }), 'exists'],
  [
    'adds a server that exists, with its id',
    add({ server: '127.0.1.1:80', keywords: ['id', '77'] }),
    'exists',
  ],
  ['adds a server with the id of another', add({ keywords: ['id', '77'] }), 'id-taken'],
  ['adds a server with an unknown keyword', add({ keywords: ['bogus'] }), 'refused'],
  ['adds a server to a backend that takes none', add({ backend: 'static' }), 'refused'],
  [
    'sets the state in an unknown backend',
    { kind: 'SetServerState', backend: 'nope', server, state: 'ready' },
    'missing-backend',
  ],
  [
    'sets the state of an unknown server',
    { kind: 'SetServerState', backend, server: 'nope', state: 'ready' },
    'missing-server',
  ],
  [
    'enables the check in an unknown backend',
    { kind: 'EnableHealth', backend: 'nope', server },
    'missing-backend',
  ],
  [
    'enables the check of an unknown server',
    { kind: 'EnableHealth', backend, server: 'nope' },
    'missing-server',
  ],
  [
    'enables a check that is not there',
    { kind: 'EnableHealth', backend, server: '2001:db8::1:80' },
    'refused',
  ],
  [
    'sets the weight in an unknown backend',
    { kind: 'SetServerWeight', backend: 'nope', server, weight: 1 },
    'missing-backend',
  ],
  [
    'sets the weight of an unknown server',
    { kind: 'SetServerWeight', backend, server: 'nope', weight: 1 },
    'missing-server',
  ],
  [
    'shuts down in an unknown backend',
    { kind: 'ShutdownSessions', backend: 'nope', server },
    'missing-backend',
  ],
  ['shuts down an unknown server', { kind: 'ShutdownSessions', backend, server: 'nope' }, 'missing-server'],
  ['deletes in an unknown backend', { kind: 'DeleteServer', backend: 'nope', server }, 'missing-backend'],
  ['deletes a server that is not there', { kind: 'DeleteServer', backend, server: 'nope' }, 'gone'],
  [
    'deletes a server that is not in maintenance',
    { kind: 'DeleteServer', backend, server: '127.0.1.1:80' },
    'not-removable',
  ],
  [
    'deletes a server that the file refers to',
    { kind: 'DeleteServer', backend: 'least', server: 'referred' },
    'not-removable',
  ],
  ['adds to an unknown ACL', { kind: 'AddCidr', acl: 999, cidr: '10.0.0.0/8' }, 'missing-acl'],
  ['deletes from an unknown ACL', { kind: 'DeleteCidr', acl: 999, cidr: '10.0.0.0/8' }, 'missing-acl'],
  ['deletes what an ACL does not have', { kind: 'DeleteCidr', acl: 12_345, cidr: '172.16.0.0/12' }, 'gone'],
];

test('Runtime returns the kind of every failure of a real HAProxy', async (t) => {
  const { runtime } = await started(t);
  const replies = await runtime.send(failures.map(([, command]) => command));
  for (const [at, [title, , kind]] of failures.entries()) {
    const reply = replies[at];
    t.like(reply, { ok: false, kind }, `${title}: ${JSON.stringify(reply)}`);
  }
});

test('A server with a connection is busy until its sessions are shut down', async (t) => {
  const { haproxy, runtime } = await started(t);
  const send = sender(runtime);
  const { member, own } = await onlyMember(t, runtime);
  const served = once(member, 'connection');
  const client = await connection(join(haproxy.directory, 'fe.sock'));
  t.teardown(() => client.destroy());
  await served;
  await send({ kind: 'SetServerState', ...own, state: 'maint' });
  t.like(await send({ kind: 'DeleteServer', ...own }), { ok: false, kind: 'busy' });
  t.deepEqual(await send({ kind: 'ShutdownSessions', ...own }), { ok: true });
  await eventually(
    () => send({ kind: 'DeleteServer', ...own }),
    (reply) => reply?.ok === true,
  );
  t.like(await send({ kind: 'DeleteServer', ...own }), { ok: false, kind: 'gone' });
});

test('A server that a disabled line of the file made ready counts as ready', async (t) => {
  const { runtime } = await started(t);
  const disabled = { backend, server: '2001:db8::1:80' };
  t.like(await stateOf(runtime, backend, disabled.server), { state: 'maint', operational: 'down' });
  await sender(runtime)({ kind: 'SetServerState', ...disabled, state: 'ready' });
  t.like(await stateOf(runtime, backend, disabled.server), { state: 'ready', operational: 'up', weight: 50 });
});

test('Runtime.connect() reads the worker and its description', async (t) => {
  const { haproxy, runtime } = await started(t, 'generation 7 > a prompt');
  t.like(runtime.worker, {
    pid: haproxy.workerPid,
    description: 'generation 7 > a prompt',
    stopping: false,
    via: 'admin',
  });
  t.is(runtime.worker.version.text, haproxy.version.text);
});

test('Runtime.connect() reaches a worker without admin socket file through the master', async (t) => {
  const { haproxy } = await started(t);
  await rm(haproxy.adminSocket);
  await t.throwsAsync(Runtime.connect({ socketPath: haproxy.adminSocket }), { code: 'RUNTIME_CONNECT' });
  const runtime = await connected(t, haproxy);
  t.like(runtime.worker, { pid: haproxy.workerPid, via: 'master', description: 'test' });
  const send = sender(runtime);
  t.deepEqual(await send(add({})), { ok: true });
  t.like(await send(add({})), { ok: false, kind: 'exists' });
  t.like(await stateOf(runtime, backend, server), { state: 'maint' });
  const batch = Array.from(
    { length: 2_000 },
    (_, at): Command => ({ kind: 'SetServerWeight', backend, server, weight: at % 257 }),
  );
  t.true((await runtime.send(batch)).every(({ ok }) => ok));
  t.like(await stateOf(runtime, backend, server), { weight: 1_999 % 257 });
  t.regex(await runtime.ask('show servers state', { lane: 'bulk' }), /127\.0\.1\.2:81/);
});

test('Runtime asks a worker through the master if its admin socket is gone, also after a connection during its start', async (t) => {
  const { haproxy } = await started(t);
  const { adminSocket: socketPath, masterSocket: masterSocketPath } = haproxy;
  const runtime = await Runtime.connect({ socketPath, masterSocketPath, isStarting: true });
  t.teardown(() => runtime.close());
  await rm(socketPath);
  t.regex(await runtime.ask('show servers state', { lane: 'bulk' }), /127\.0\.1\.1:80/);
  const another = { socketPath, masterSocketPath, isStarting: true };
  await t.throwsAsync(Runtime.connect(another), { code: 'RUNTIME_CONNECT' });
});

test('Runtime sends 10,000 commands without waiting, and returns their replies in order', async (t) => {
  const { runtime } = await started(t);
  const many = Array.from({ length: 5_000 }, (_, at): readonly Command[] => {
    const own = { backend: 'least', server: `s${at}` };
    return [
      add({ ...own, address: '127.0.2.1', port: 1 + at }),
      at % 10 === 0
        ? { kind: 'SetServerState', backend: 'least', server: 'nope', state: 'ready' }
        : { kind: 'SetServerState', ...own, state: 'ready' },
    ];
  }).flat();
  const replies = await runtime.send(many, { lane: 'bulk' });
  t.is(replies.length, many.length);
  t.true(replies.every(({ ok }, at) => ok === (at % 20 !== 1)));
  const rows = [...parseServersState(await runtime.ask('show servers state least', { lane: 'bulk' }))];
  t.is(rows.filter(({ state }) => state === 'ready').length, 4_500);
});

test('An urgent command overtakes a long bulk batch and a long answer', async (t) => {
  const { runtime } = await started(t);
  await runtime.send(Array.from({ length: 3_000 }, (_, at) => add({ backend: 'least', server: `s${at}` })));
  const finished: string[] = [];
  const note = (name: string) => () => finished.push(name);
  const weights = Array.from(
    { length: 10_000 },
    (_, at): Command => ({ kind: 'SetServerWeight', backend, server: '127.0.1.1:80', weight: at % 257 }),
  );
  const bulk = runtime.send(weights, { lane: 'bulk' }).then(note('bulk'));
  await runtime
    .send([{ kind: 'SetServerState', backend, server: '127.0.1.1:80', state: 'drain' }])
    .then(note('urgent'));
  await bulk;
  t.deepEqual(finished, ['urgent', 'bulk']);
  const questions = Array.from({ length: 30 }, () => runtime.ask('show servers state', { lane: 'bulk' }));
  const long = Promise.all(questions).then(note('long answers'));
  await runtime.ask('show servers state hashed').then(note('short answer'));
  await long;
  t.deepEqual(finished.slice(2), ['short answer', 'long answers']);
});

test('HAProxy accepts many lines of the greatest length at once', async (t) => {
  const { haproxy, runtime } = await started(t);
  const keywords = Array.from({ length: 54 }, () => 'x'.repeat(220));
  const replies = await runtime.send(Array.from({ length: 100 }, () => add({ keywords })));
  t.true(replies.every((reply) => !reply.ok && reply.kind === 'refused' && reply.text.includes('xxx')));
  t.is((await connected(t, haproxy)).worker.pid, haproxy.workerPid);
});

test('Runtime rejects due batches and resolves closed when the worker ends', async (t) => {
  const { haproxy, runtime } = await started(t);
  await haproxy.stop();
  const error = await runtime.closed;
  t.like(error, { code: 'RUNTIME_CLOSED', retry: 'now' });
  await t.throwsAsync(runtime.ask('show info'), { code: 'RUNTIME_CLOSED' });
  await t.throwsAsync(runtime.ask('show stat', { lane: 'bulk' }), { code: 'RUNTIME_CLOSED' });
  await t.throwsAsync(Runtime.connect({ socketPath: haproxy.adminSocket }), {
    code: 'RUNTIME_CONNECT',
    message: /admin\.sock/,
  });
});

test('close() rejects due batches and resolves closed without an error', async (t) => {
  const { runtime } = await started(t);
  const due = t.throwsAsync(runtime.ask('show info'), { code: 'RUNTIME_CLOSED' });
  runtime.close();
  await due;
  t.is(await runtime.closed, undefined);
});

test('ask() rejects more than one question', async (t) => {
  const { runtime } = await started(t);
  for (const line of [
    '',
    'show info\nshow info',
    'show info;show info',
    'add map x <<',
    'show \\x',
    'show é',
  ]) {
    await t.throwsAsync(runtime.ask(line), { code: 'RUNTIME_TOKEN' }, JSON.stringify(line));
  }
});

test('askOnce() returns the whole of a large answer', async (t) => {
  const { haproxy, runtime } = await started(t);
  await runtime.send(Array.from({ length: 3_000 }, (_, at) => add({ backend: 'least', server: `s${at}` })));
  const rows = [...parseServersState(await askOnce(haproxy.adminSocket, 'show servers state least'))];
  t.is(rows.length, 3_001);
});

async function started(
  t: ExecutionContext,
  description = 'test',
): Promise<{ haproxy: RunningHaproxy; runtime: Runtime }> {
  const haproxy = await startHaproxy(BODY, { description });
  t.teardown(haproxy.stop);
  return { haproxy, runtime: await connected(t, haproxy) };
}

async function connected(
  t: ExecutionContext,
  { adminSocket, masterSocket }: RunningHaproxy,
): Promise<Runtime> {
  const sockets = { socketPath: adminSocket, masterSocketPath: masterSocket };
  // HAProxy on a busy machine may answer later than the agent's timeout.
  const runtime = await Runtime.connect({ ...sockets, timeoutMs: 30_000 });
  t.teardown(() => runtime.close());
  return runtime;
}

function sender(runtime: Runtime): (command: Command) => Promise<Reply | undefined> {
  return async (command) => (await runtime.send([command]))[0];
}

async function stateOf(runtime: Runtime, of: string, name: string): Promise<ServerState | undefined> {
  const rows = parseServersState(await runtime.ask(`show servers state ${of}`));
  return [...rows].find((row) => row.server === name);
}

function add(parts: Partial<Extract<Command, { kind: 'AddServer' }>>): Command {
  return { kind: 'AddServer', backend, server, address: '127.0.1.2', port: 81, keywords: [], ...parts };
}

/** Makes a member that accepts connections and sends nothing the only ready member. */
async function onlyMember(
  t: ExecutionContext,
  runtime: Runtime,
): Promise<{ member: Server; own: { backend: string; server: string } }> {
  const sockets: Socket[] = [];
  const member = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
  }).listen(0, '127.0.0.1');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    member.close();
  });
  await once(member, 'listening');
  const { port } = member.address() as AddressInfo;
  const own = { backend, server: `127.0.0.1:${port}` };
  const replies = await runtime.send([
    add({ ...own, address: '127.0.0.1', port }),
    { kind: 'SetServerState', ...own, state: 'ready' },
    { kind: 'SetServerState', backend, server: '127.0.1.1:80', state: 'maint' },
  ]);
  t.true(replies.every(({ ok }) => ok));
  return { member, own };
}
