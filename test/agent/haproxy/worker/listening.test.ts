import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { endianness } from 'node:os';
import ava, { type ExecutionContext } from 'ava';
import { socketText, whyNotListening } from '../../../../agent/haproxy/worker/listening.ts';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { TestNetwork } from '../../../support/host/namespaces.ts';

const asRoot = requires(ava, { root: true, programs: ['ip', 'nsenter'] });
const withLimits = requires(ava, { programs: ['prlimit'] });

/** The port. */
async function listen(t: ExecutionContext, address: string): Promise<number> {
  const server = createServer().listen(0, address);
  t.teardown(() => server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

ava('A socket is written as the kernel writes it', (t) => {
  const [v4, v6] = [
    { address: '127.0.0.1', port: 80 },
    { address: '2001:db8::1:2', port: 65_535 },
  ] as const;
  const isLittle = endianness() === 'LE';
  t.is(socketText(v4), isLittle ? '0100007F:0050' : '7F000001:0050');
  t.is(
    socketText(v6),
    `${isLittle ? 'B80D01200000000000000000' : '20010DB80000000000000000'}${isLittle ? '02000100' : '00010002'}:FFFF`,
  );
});

ava('What listens is found among many, and what does not is not', async (t) => {
  const ports: number[] = [];
  for (let count = 0; count < 100; count++) ports.push(await listen(t, '127.0.0.1'));
  for (const port of ports) t.is(await whyNotListening(process.pid, { address: '127.0.0.1', port }), '');
  const [port = 0] = ports;
  t.regex(
    await whyNotListening(process.pid, { address: '127.0.0.2', port }),
    /^Nothing listens on 127\.0\.0\.2 port \d+$/,
  );
  const own = await listen(t, '::1');
  t.is(await whyNotListening(process.pid, { address: '::1', port: own }), '');
  t.not(await whyNotListening(process.pid, { address: '::2', port: own }), '');
});

ava('One end of a connection does not listen', async (t) => {
  const port = await listen(t, '127.0.0.1');
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  const { localPort = 0 } = socket;
  t.not(await whyNotListening(process.pid, { address: '127.0.0.1', port: localPort }), '');
});

ava('A process that has ended tells nothing', async (t) => {
  t.is(await whyNotListening(0, { address: '127.0.0.1', port: 1 }), '');
});

withLimits('What cannot be looked at for want of descriptors is not taken for gone', async (t) => {
  const { pathname } = new URL('../../../../agent/haproxy/worker/listening.ts', import.meta.url);
  const script = `
    const { openSync } = require('node:fs');
    import('${pathname}').then(async ({ whyNotListening }) => {
      const look = () => whyNotListening(process.pid, { address: '127.0.0.2', port: 1 });
      const before = await look();
      try { for (;;) openSync('/dev/null'); } catch (error) { console.log([before, error.code, await look()].join()); }
    });`;
  const { stdout, stderr } = await runCommand('prlimit', ['--nofile=100', process.execPath, '-e', script], {
    timeout: 60_000,
  });
  t.is(stdout.trim(), 'Nothing listens on 127.0.0.2 port 1,EMFILE,', stderr);
});

asRoot('The network of a process is looked at, not that of the agent', async (t) => {
  const network = await TestNetwork.create(t, ['a']);
  const port = await listen(t, '127.0.0.1');
  const script = `require('net').createServer().listen(${port + 1}, '127.0.0.1', () => console.log())`;
  const child = network.start('a', process.execPath, '-e', script);
  if (child.stdout !== null) await once(child.stdout, 'data');
  const look = (at: number) => whyNotListening(child.pid ?? 0, { address: '127.0.0.1', port: at });
  t.not(await look(port), '');
  t.is(await look(port + 1), '');
});
