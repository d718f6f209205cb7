import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { SecretText } from '../../../../agent/base/secret-text.ts';
import { Heartbeats } from '../../../../agent/octavia/heartbeat/heartbeats.ts';
import type { HeartbeatMessage, RunningText } from '../../../../agent/octavia/heartbeat/message.ts';
import type { Controller } from '../../../../agent/octavia/settings/amphora-settings.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const frontend = (bin: string) =>
  new Map(Object.entries({ pxname: 'web', svname: 'FRONTEND', status: 'OPEN', scur: '0', bin }));
const text = {
  listeners: [{ id: 'web', type: 'HTTP' as const, bind: '' }],
  pools: [],
  files: new Set<string>(),
};

/** Heartbeats whose rounds the test begins. */
async function start(t: ExecutionContext, folder = mkdtempSync(join(tmpdir(), 'headgate-heartbeats-'))) {
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const world = { isWell: true, running: [] as readonly RunningText[], failing: false };
  const sent: { readonly to: Controller; readonly bytes: Buffer; readonly message: HeartbeatMessage }[] = [];
  const controllers = [
    { host: '192.0.2.1', port: 5555 },
    { host: '192.0.2.2', port: 5555 },
  ];
  const heartbeats = new Heartbeats({
    amphoraId: 'amp',
    settings: () => ({ controllers, intervalMs: 10_000, key: new SecretText('k') }),
    folder,
    sources: {
      isWell: async () => world.isWell,
      running: async () => world.running,
      datagrams: async () => [],
    },
    send: async (bytes, to) => {
      if (world.failing) throw new Error('Network is unreachable');
      sent.push({ to, bytes, message: JSON.parse(inflateSync(bytes.subarray(0, -64)).toString()) });
    },
    log: silentLog(),
    clock: new FakeClock(),
  });
  t.teardown(() => heartbeats.close());
  await heartbeats.start();
  await heartbeats.now();
  return { world, sent, heartbeats, folder };
}

test('Heartbeats go to one controller after the other, the first one at once', async (t) => {
  const { sent, heartbeats } = await start(t);
  await heartbeats.now();
  await heartbeats.now();
  t.deepEqual(
    sent.map(({ to, message }) => [to.host, message.seq]),
    [
      ['192.0.2.1', 0],
      ['192.0.2.2', 1],
      ['192.0.2.1', 2],
    ],
  );
});

test('Heartbeats are not sent while keepalived is configured and dead', async (t) => {
  const { world, sent, heartbeats } = await start(t);
  world.isWell = false;
  await heartbeats.now();
  t.is(sent.length, 1);
  t.is(heartbeats.status().fault, 'keepalived is configured, but does not run');
  world.isWell = true;
  await heartbeats.now();
  t.is(sent.length, 2);
  t.is(heartbeats.status().fault, '');
});

test('Heartbeats report what was counted since the last one that was sent, also after a restart of the agent', async (t) => {
  const { world, sent, heartbeats, folder } = await start(t);
  const rx = async (bin: string) => {
    world.running = [{ text, rows: [frontend(bin)] }];
    await heartbeats.now();
    return sent.at(-1)?.message.listeners.web?.stats.rx;
  };
  t.is(await rx('5'), 5);
  t.is(await rx('7'), 2);
  world.failing = true;
  await rx('8');
  world.failing = false;
  t.is(await rx('10'), 3);
  heartbeats.close();
  const next = await start(t, folder);
  next.world.running = [{ text, rows: [frontend('11')] }];
  await next.heartbeats.now();
  t.is(next.sent.at(-1)?.message.listeners.web?.stats.rx, 1);
});

test('Heartbeats leave out members, never listeners, if all would not fit into a datagram', async (t) => {
  const { world, sent, heartbeats } = await start(t);
  const members = Array.from({ length: 4_000 }, () => randomUUID());
  const rows = members.map((id) => new Map(Object.entries({ pxname: 'p:web', svname: id, status: 'UP' })));
  const backend = new Map(Object.entries({ pxname: 'p:web', svname: 'BACKEND', status: 'UP' }));
  const pools = [{ name: 'p:web', pool: 'p', listener: 'web', members }];
  world.running = [{ text: { ...text, pools }, rows: [frontend('0'), backend, ...rows] }];
  await heartbeats.now();
  const { bytes, message } = sent.at(-1) ?? t.fail();
  t.true(bytes.length <= 65_507);
  t.true(bytes.length > 60_000);
  t.deepEqual(Object.keys(message.listeners), ['web']);
});

test('A heartbeat with 2,500 members has no more than 60 kB', async (t) => {
  const { world, sent, heartbeats } = await start(t);
  const members = Array.from({ length: 2_500 }, () => randomUUID());
  const rows = members.map((id) => new Map(Object.entries({ pxname: 'p:web', svname: id, status: 'UP' })));
  const pools = [{ name: 'p:web', pool: 'p', listener: 'web', members }];
  world.running = [
    {
      text: { ...text, pools },
      rows: [
        frontend('0'),
        ...rows,
        new Map(Object.entries({ pxname: 'p:web', svname: 'BACKEND', status: 'UP' })),
      ],
    },
  ];
  await heartbeats.now();
  const { bytes, message } = sent.at(-1) ?? t.fail();
  t.true(bytes.length <= 60_000);
  t.is(Object.keys(message.pools['p:web']?.members ?? {}).length, 2_500);
});
