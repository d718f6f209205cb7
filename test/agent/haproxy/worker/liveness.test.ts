import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { LivenessOptions } from '../../../../agent/dataplane/meter.ts';
import { HaproxyLiveness, probeListener } from '../../../../agent/haproxy/worker/liveness.ts';
import type { Listener, LoadBalancer, Member } from '../../../../agent/model/load-balancer.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { ownNetwork } from '../../../support/host/own-network.ts';

const PORT = 17_080;
/** The network of this process, which ends with the file. */
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
function desiredAt(...lasts: readonly number[]): ReadonlyMap<string, LoadBalancer> {
  return desiredOf(lasts.map((last) => listenerAt(last)));
}

function listenerAt(last: number, members: readonly Partial<Member>[] = [{ state: 'ready' }]): Listener {
  const pool = { members };
  return {
    name: `at-${last}`,
    addresses: [address(last)],
    port: PORT,
    mode: 'tcp',
    pool,
  } as unknown as Listener;
}

function desiredOf(listeners: readonly Listener[]): ReadonlyMap<string, LoadBalancer> {
  return new Map([['default/web', { listeners } as unknown as LoadBalancer]]);
}

function livenessOf(
  desired: ReadonlyMap<string, LoadBalancer>,
  {
    ask = async (): Promise<unknown> => undefined,
    pending = [] as readonly string[],
    netns = '',
    workerPid = process.pid,
  } = {},
): HaproxyLiveness {
  return new HaproxyLiveness({
    ask,
    desired,
    facts: {
      served: (key) => (pending.includes(key) ? 'pending' : desired.get(key)),
      serves: (name) => name !== 'at-99',
    },
    netns,
    workerPid: () => workerPid,
  });
}

const all = (): boolean => true;
const ACTIVE: LivenessOptions = { timeoutMs: 2_000, holds: all };
const STANDBY: LivenessOptions = { timeoutMs: 2_000, holds: undefined };

test('The looks try each listener in turn', async (t) => {
  const taken = [await listen(t, 1), await listen(t, 2), await listen(t, 3)];
  const liveness = livenessOf(desiredAt(1, 2, 3));
  for (let look = 0; look < 6; look++)
    t.deepEqual(await liveness.look(ACTIVE), { control: '', listeners: '' });
  // This process may hear of a connection that is made later at the end that takes it.
  await eventually(
    async () => taken.map((each) => each()).join(),
    (counts) => counts === '2,2,2',
  );
});

test('Three listeners in a row that refuse are a fault of the host, a single one is not', async (t) => {
  await listen(t, 11);
  const some = livenessOf(desiredAt(12, 13, 11));
  t.is((await some.look(ACTIVE)).listeners, '');
  const none = livenessOf(desiredAt(12, 13, 14));
  t.regex((await none.look(ACTIVE)).listeners, /ECONNREFUSED/);
});

test('A listener that accepts at one of its addresses is healthy', async (t) => {
  await listen(t, 51);
  const addresses = [address(52), address(51)];
  const liveness = livenessOf(desiredOf([{ ...listenerAt(52), addresses }]));
  t.is((await liveness.look(ACTIVE)).listeners, '');
  t.regex(
    (await liveness.look({ ...ACTIVE, holds: (one) => one !== address(51) })).listeners,
    /ECONNREFUSED/,
  );
});

test('Pending load balancers are not tried, because HAProxy may not listen there yet', async (t) => {
  const pending = livenessOf(desiredAt(12, 13, 14), { pending: ['default/web'] });
  t.is((await pending.look(ACTIVE)).listeners, '');
});

test('A listener that refuses connections because no member is ready is no fault', async (t) => {
  const lasts = [12, 13, 14];
  const without = lasts.map((last) => listenerAt(last, [{ state: 'drain' }]));
  t.is((await livenessOf(desiredOf(without)).look(ACTIVE)).listeners, '');
  t.is((await livenessOf(desiredOf(without)).look(STANDBY)).listeners, '');
  const http = without.map((listener): Listener => ({ ...listener, mode: 'http' }));
  t.regex((await livenessOf(desiredOf(http)).look(ACTIVE)).listeners, /ECONNREFUSED/);
});

test('Listeners that HAProxy does not serve, and VIPs of the peer, are not tried', async (t) => {
  t.is((await livenessOf(desiredAt(99)).look(ACTIVE)).listeners, '');
  t.is((await livenessOf(desiredAt(12)).look({ ...ACTIVE, holds: () => false })).listeners, '');
  t.is((await livenessOf(new Map()).look(ACTIVE)).listeners, '');
});

test('Only the VIPs that this host holds are tried', async (t) => {
  const taken = await listen(t, 21);
  const liveness = livenessOf(desiredAt(22, 21, 23));
  for (let look = 0; look < 4; look++) {
    t.deepEqual(await liveness.look({ ...ACTIVE, holds: (held) => held === address(21) }), {
      control: '',
      listeners: '',
    });
  }
  await eventually(
    async () => taken(),
    (count) => count === 4,
  );
  t.regex(
    (await liveness.look({ ...ACTIVE, holds: (held) => held === address(23) })).listeners,
    /ECONNREFUSED/,
  );
});

test('A full listener is no fault, a missing listener is', async (t) => {
  const full = await listenFull(t, address(61), PORT);
  const liveness = livenessOf(desiredAt(61));
  const look = { ...ACTIVE, timeoutMs: 200 };
  t.deepEqual(await liveness.look(look), { control: '', listeners: '' });
  await full.end();
  t.regex((await liveness.look(look)).listeners, /ECONNREFUSED/);
});

test("A standby, and an agent outside HAProxy's network namespace, read the kernel's list of sockets at every fourth look", async (t) => {
  await listen(t, 71);
  for (const [netns, options] of [
    ['', STANDBY],
    ['elsewhere', ACTIVE],
  ] as const) {
    const faults = async (last: number): Promise<readonly string[]> => {
      const liveness = livenessOf(desiredAt(last), { netns });
      const found: string[] = [];
      for (let look = 0; look < 2; look++) found.push((await liveness.look(options)).listeners);
      return found;
    };
    t.deepEqual(await faults(71), ['', '']);
    // Once something is wrong every look asks.
    const fault = `Nothing listens on ${address(72)} port ${PORT}`;
    t.deepEqual(await faults(72), [fault, fault]);
  }
});

test('A listener that does not answer is a fault if the kernel does not list it', async (t) => {
  // The address that is reached is not the one that is listened on.
  const { port } = await listenFull(t, '0.0.0.0', 0, address(62));
  t.is(
    await probeListener({ address: address(62), port }, 200),
    `Nothing listens on ${address(62)} port ${port}`,
  );
});

test('The error of a HAProxy that does not answer is reported', async (t) => {
  const silent = async (): Promise<never> => {
    throw new Error('HAProxy does not answer within 1000 ms');
  };
  t.deepEqual(await livenessOf(desiredAt(12), { ask: silent }).look(ACTIVE), {
    control: 'HAProxy does not answer within 1000 ms',
    listeners: '',
  });
});

test('A probe that got no processor time finds an answer that arrived in the meantime', async (t) => {
  await listen(t, 5);
  const answer = probeListener({ address: address(5), port: PORT }, 50);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  t.is(await answer, '');
});
