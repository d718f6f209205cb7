// The program itself, on loopback: the agent's own network namespace.

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import ava, { type ExecutionContext } from 'ava';
import { type Probe, ProbeProgram } from '../../../../agent/nftables/checks/probe-program.ts';
import { REFUSED } from '../../../../agent/nftables/checks/udp-probe.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { freePort } from '../../../support/basics/free-port.ts';
import { requires } from '../../../support/basics/requirements.ts';

const test = ava;

function programOf(t: ExecutionContext<unknown>) {
  const program = new ProbeProgram('');
  t.teardown(() => program.close());
  const probe = (values: Partial<Probe>, timeoutMs = 10_000) =>
    program.probe({ kind: 'tcp', address: '127.0.0.1', port: 9, path: '', ...values }, timeoutMs);
  return { program, probe };
}

async function portOf(t: ExecutionContext<unknown>, server: Server, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

test('A probe by TCP finds a port open, refused or silent', async (t) => {
  const { probe } = programOf(t);
  const port = await portOf(
    t,
    createServer((socket) => socket.destroy()),
  );
  t.is(await probe({ port }), 'open');
  t.deepEqual(await probe({ port: await freePort() }), { failure: 'Connection refused' });
});

test('A probe by HTTP gives the status, and asks for the path', async (t) => {
  const { probe } = programOf(t);
  const asked: string[] = [];
  const http = createHttpServer(({ method, url, headers }, response) => {
    asked.push(`${method} ${url} ${headers.host?.split(':')[0]}`);
    response.writeHead(503).end();
  });
  const port = await portOf(t, http);
  t.deepEqual(await probe({ kind: 'http', port, path: '/a?b=1&amp;c' }), { status: 503 });
  t.deepEqual(asked, ['GET /a?b=1&amp;c 127.0.0.1']);
  const other = await portOf(
    t,
    createServer((socket) => socket.on('error', () => undefined).end('SSH-2.0\r\n')),
  );
  t.deepEqual(await probe({ kind: 'http', port: other, path: '/' }), {
    failure: 'its answer is not of HTTP',
  });
  const silent = await portOf(
    t,
    createServer((socket) => socket.on('error', () => undefined)),
  );
  t.deepEqual(await probe({ kind: 'http', port: silent, path: '/' }, 200), { failure: 'it does not answer' });
});

test('A probe by UDP finds an answer, silence or a closed port', async (t) => {
  const { probe, program } = programOf(t);
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  t.is(await probe({ kind: 'udp', port }, 200), 'silence');
  socket.on('message', (_, { port: from }) => socket.send('yes', from, '127.0.0.1'));
  t.is(await probe({ kind: 'udp', port }), 'data');
  t.is(await program.udp({ address: '127.0.0.1', port: await freePort() }, 10_000), REFUSED);
});

test('Many probes run at the same time, and none waits for a silent one', async (t) => {
  const { probe } = programOf(t);
  const port = await portOf(
    t,
    createServer((socket) => socket.destroy()),
  );
  const silent = await portOf(
    t,
    createServer((socket) => socket.on('error', () => undefined)),
  );
  const order: string[] = [];
  const slow = probe({ kind: 'http', port: silent, path: '/' }, 5_000).then(() => order.push('silent'));
  const answers = await Promise.all(Array.from({ length: 600 }, () => probe({ port })));
  order.push('others');
  t.true(answers.every((answer) => answer === 'open'));
  await slow;
  t.deepEqual(order, ['others', 'silent']);
});

test('A value that would be another line is not sent', async (t) => {
  const { probe, program } = programOf(t);
  t.is(await probe({ kind: 'http', path: '/ \n1 tcp 127.0.0.1 1 1' }), 'unknown');
  t.is(await probe({ address: 'localhost' }), 'unknown');
  t.is(program.fault, '');
});

test('A program that cannot start or that ends makes answers unknown', async (t) => {
  const program = new ProbeProgram('headgate-is-not-there');
  t.is(await program.probe({ kind: 'tcp', address: '127.0.0.1', port: 9, path: '' }, 1_000), 'unknown');
  t.regex(program.fault, /headgate-is-not-there/);
  program.close();
});

const sctp = requires(ava, { root: true, programs: ['python3'] });

/** Answers INIT as a member would, if its checksum is right, on port 9999; with ABORT on port 9998. Then prints what follows. */
const ASSOCIATION = `
import socket, struct, sys
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82f63b78 if crc & 1 else crc >> 1
    return struct.pack('<I', crc ^ 0xffffffff)
assert crc32c(b'123456789') == bytes.fromhex('839206e3')
def packet(source, to, tag, chunk):
    head = struct.pack('!HHI', source, to, tag)
    return head + crc32c(head + bytes(4) + chunk) + chunk
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)
raw.bind(('127.0.0.2', 0))
print('ready', flush=True)
while True:
    data, (peer, _) = raw.recvfrom(65536)
    data = data[20:]
    source, to, tag = struct.unpack('!HHI', data[:8])
    if to not in (9998, 9999): continue
    is_right = crc32c(data[:8] + bytes(4) + data[12:]) == data[8:12]
    kind = data[12]
    print(to, kind, tag, is_right, flush=True)
    if kind != 1: continue
    theirs = struct.unpack('!I', data[16:20])[0]
    if to == 9998: raw.sendto(packet(to, source, theirs, struct.pack('!BBH', 6, 0, 4)), (peer, 0))
    else: raw.sendto(packet(to, source, theirs, struct.pack('!BBHIIHHI', 2, 0, 20, 77, 65535, 1, 1, 1)), (peer, 0))
`;

sctp('A probe by SCTP is an INIT with a right checksum, which an ABORT follows', async (t) => {
  const { probe } = programOf(t);
  const member = spawn('/usr/bin/python3', ['-c', ASSOCIATION], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => void member.kill('SIGKILL'));
  let said = '';
  member.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await eventually(
    async () => said,
    (text) => text.includes('ready'),
  );
  const address = '127.0.0.2';
  t.is(await probe({ kind: 'sctp', address, port: 9_999 }), 'open');
  t.deepEqual(await probe({ kind: 'sctp', address, port: 9_998 }), {
    failure: 'it refuses the association (ABORT)',
  });
  t.deepEqual(await probe({ kind: 'sctp', address, port: 9_997 }, 200), { failure: 'it does not answer' });
  await eventually(
    async () => said,
    (text) => text.includes('9999 6 77 True'),
  );
  t.regex(said, /^9999 1 0 True$/m);
});
