import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Listener, LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { knock, Watch } from '../../../../agent/pair/standing/haproxy-watch.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { ownNetwork } from '../../../support/host/own-network.ts';

const PORT = 17_080;
/** Of this process, which ends with the file. */
const network = await ownNetwork({ teardown: () => undefined });
const address = (last: number): string => `${network}.${last}`;

/** Connections that were taken at an address, until the test is over. */
async function listen(t: ExecutionContext, last: number): Promise<() => number> {
  let taken = 0;
  const server = createServer((socket) => {
    taken += 1;
    socket.destroy();
  });
  server.listen(PORT, address(last));
  await once(server, 'listening');
  t.teardown(() => server.close());
  return () => taken;
}

interface Full {
  readonly port: number;
  end(): Promise<void>;
}

/** A listener of another process that accepts nothing, with its queue full. `port` 0: any. */
async function listenFull(t: ExecutionContext, host: string, port: number, reached = host): Promise<Full> {
  const script = `
    const server = require('net').createServer().listen({ port: ${port}, host: '${host}', backlog: 1 }, () => {
      require('fs').writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const sockets: Socket[] = [];
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    for (const socket of sockets) socket.destroy();
    await exited;
  };
  t.teardown(end);
  const taken = Number(String(await once(child.stdout, 'data')));
  for (let isFull = false; !isFull; ) {
    const socket = connect(taken, reached).on('error', () => undefined);
    sockets.push(socket);
    isFull = await Promise.race([once(socket, 'connect').then(() => false), delay(300, true)]);
  }
  return { port: taken, end };
}

/** A load balancer with a listener at each of these addresses. */
function wantedAt(...lasts: readonly number[]): ReadonlyMap<string, LoadBalancer> {
  const listeners = lasts.map(
    (last) => ({ name: `at-${last}`, addresses: [address(last)], port: PORT }) as unknown as Listener,
  );
  return new Map([['default/web', { listeners } as unknown as LoadBalancer]]);
}

function watchOf(
  wanted: ReadonlyMap<string, LoadBalancer>,
  ask: () => Promise<unknown> = async () => undefined,
  pending: readonly string[] = [],
  patience = 2_000,
): Watch {
  return new Watch({
    ask,
    wanted,
    served: (key) => (pending.includes(key) ? 'pending' : wanted.get(key)),
    serves: (name) => name !== 'at-99',
    knock: (place) => knock(place, patience),
  });
}

const all = (): boolean => true;

test('Each listener has its turn', async (t) => {
  const taken = [await listen(t, 1), await listen(t, 2), await listen(t, 3)];
  const watch = watchOf(wantedAt(1, 2, 3));
  for (let look = 0; look < 6; look++) t.deepEqual(await watch.look(all), { haproxy: '', listeners: '' });
  // Of a connection that is made this process may hear later at the end that takes it.
  await eventually(
    async () => taken.map((each) => each()).join(),
    (counts) => counts === '2,2,2',
  );
});

test('One listener that refuses is not the fault of the host, three in a row are', async (t) => {
  await listen(t, 11);
  const some = watchOf(wantedAt(12, 13, 11));
  t.is((await some.look(all)).listeners, '');
  const none = watchOf(wantedAt(12, 13, 14));
  t.regex((await none.look(all)).listeners, /ECONNREFUSED/);
});

test('A listener is well where it takes connections at any of its addresses', async (t) => {
  await listen(t, 51);
  const addresses = [address(52), address(51)];
  const listeners = [{ name: 'two', addresses, port: PORT } as unknown as Listener];
  const watch = watchOf(new Map([['default/web', { listeners } as unknown as LoadBalancer]]));
  t.is((await watch.look(all)).listeners, '');
  t.regex((await watch.look((one) => one !== address(51))).listeners, /ECONNREFUSED/);
});

test('What is still to be done is not tried: HAProxy may not listen there yet', async (t) => {
  const pending = watchOf(wantedAt(12, 13, 14), undefined, ['default/web']);
  t.is((await pending.look(all)).listeners, '');
});

test('What HAProxy does not serve, and VIPs that are elsewhere, are not tried', async (t) => {
  t.is((await watchOf(wantedAt(99)).look(all)).listeners, '');
  t.is((await watchOf(wantedAt(12)).look(undefined)).listeners, '');
  t.is((await watchOf(wantedAt(12)).look(() => false)).listeners, '');
  t.is((await watchOf(new Map()).look(all)).listeners, '');
});

test('Where this host holds some of the VIPs, these are tried', async (t) => {
  const taken = await listen(t, 21);
  const watch = watchOf(wantedAt(22, 21, 23));
  for (let look = 0; look < 4; look++) {
    t.deepEqual(await watch.look((held) => held === address(21)), { haproxy: '', listeners: '' });
  }
  await eventually(
    async () => taken(),
    (count) => count === 4,
  );
  t.regex((await watch.look((held) => held === address(23))).listeners, /ECONNREFUSED/);
});

test('A listener that is full is there: it lowers nobody, but one that is gone does', async (t) => {
  const full = await listenFull(t, address(61), PORT);
  const watch = watchOf(wantedAt(61), undefined, [], 200);
  t.deepEqual(await watch.look(all), { haproxy: '', listeners: '' });
  await full.end();
  t.regex((await watch.look(all)).listeners, /ECONNREFUSED/);
});

test('What does not answer counts as gone where the kernel has no listener there', async (t) => {
  // The address that is reached is not the one that is listened on.
  const { port } = await listenFull(t, '0.0.0.0', 0, address(62));
  t.is(await knock({ address: address(62), port }, 200), `Nothing listens on ${address(62)} port ${port}`);
});

test('A HAProxy that does not answer is reported in its own words', async (t) => {
  const silent = async (): Promise<never> => {
    throw new Error('HAProxy does not answer within 1000 ms');
  };
  t.deepEqual(await watchOf(wantedAt(12), silent).look(all), {
    haproxy: 'HAProxy does not answer within 1000 ms',
    listeners: '',
  });
});

test('A process that had no processor for a while finds what has answered meanwhile', async (t) => {
  await listen(t, 5);
  const answer = knock({ address: address(5), port: PORT }, 50);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  t.is(await answer, '');
});
