// What Octavia's own health manager makes of the agent's heartbeats.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { envelope } from '../../../../agent/octavia/heartbeat/envelope.ts';
import { composeMessage, type RunningText } from '../../../../agent/octavia/heartbeat/message.ts';
import type { DatagramListener } from '../../../../agent/octavia/parts.ts';
import { requires } from '../../../support/basics/requirements.ts';

const test = requires(ava, { programs: ['octavia-worker'] });

const AMPHORA = '3f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';
const LB = '11111111-0000-0000-0000-000000000000';
const id = (name: string) =>
  `${Buffer.from(name).toString('hex').padEnd(8, '0').slice(0, 8)}-0000-0000-0000-000000000000`;
const [WEB, UDP, POOL, UDP_POOL] = ['web', 'udp', 'pool', 'udpp'].map(id) as [string, string, string, string];
const KEY = 'a#b';

interface Judgement {
  readonly counted: boolean;
  readonly loadBalancer: string;
  readonly listeners: Readonly<Record<string, string>>;
  readonly pools: Readonly<Record<string, string>>;
  readonly members: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/** Judges messages about a load balancer with these members. */
async function manager(members: readonly string[]) {
  const script = fileURLToPath(new URL('../../../support/octavia/health_database.py', import.meta.url));
  const child = spawn('/usr/bin/python3', [script, KEY], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const next = async () => JSON.parse(((await once(lines, 'line')) as [string])[0]) as Judgement;
  const ready = next();
  child.stdin.write(
    `${JSON.stringify({
      amphora: AMPHORA,
      id: LB,
      listeners: [{ id: WEB }, { id: UDP, protocol: 'UDP' }],
      pools: [
        { id: POOL, members: members.map(id) },
        { id: UDP_POOL, members: [id('u')] },
      ],
    })}\n`,
  );
  await ready;
  const judge = async (bytes: Buffer): Promise<Judgement> => {
    const answer = next();
    child.stdin.write(`${bytes.toString('hex')}\n`);
    return await answer;
  };
  return { judge, close: () => child.kill() };
}

const statuses = {
  ...{
    up: 'UP',
    rise: 'UP 1/3',
    down: 'DOWN',
    fall: 'DOWN 1/2',
    maint: 'MAINT',
    none: 'no check',
    zero: 'UP',
  },
};
let judge: Awaited<ReturnType<typeof manager>>['judge'];
let close: () => void = () => undefined;

// Octavia takes seconds to start.
test.before(async () => {
  ({ judge, close } = await manager([...Object.keys(statuses), 'gone', 'one']));
});
test.after.always(() => close());

/** `members`: status and weight by name. */
function running(members: Readonly<Record<string, string>>, pool = 'UP'): RunningText {
  const row = (columns: Record<string, string>) => new Map(Object.entries(columns));
  const name = `${POOL}:${WEB}`;
  return {
    text: {
      listeners: [{ id: WEB, type: 'HTTP', bind: '' }],
      pools: [{ name, pool: POOL, listener: WEB, members: Object.keys(members).map(id) }],
      files: new Set(),
    },
    rows: [
      row({ pxname: WEB, svname: 'FRONTEND', status: 'OPEN', scur: '1' }),
      row({ pxname: name, svname: 'BACKEND', status: pool }),
      ...Object.entries(members).map(([member, status]) =>
        row({ pxname: name, svname: id(member), status, weight: member === 'zero' ? '0' : '1' }),
      ),
    ],
  };
}

const datagrams: readonly DatagramListener[] = [
  {
    id: UDP,
    stats: { tx: 1, rx: 2, conns: 3, totconns: 4 },
    pool: { id: UDP_POOL, status: 'UP', members: new Map([[id('u'), 'UP']]) },
  },
];

const beat = (texts: readonly RunningText[], udp = datagrams) =>
  envelope(JSON.stringify(composeMessage({ id: AMPHORA, seq: 1 }, texts, udp, new Map())), KEY);

test.serial('The health manager reads every status of a heartbeat', async (t) => {
  const judged = await judge(beat([running(statuses)]));
  t.deepEqual(judged.warnings, []);
  t.true(judged.counted);
  t.is(judged.loadBalancer, 'DEGRADED');
  t.deepEqual(judged.listeners, { [WEB]: 'ONLINE', [UDP]: 'ONLINE' });
  t.deepEqual(judged.pools, { [POOL]: 'DEGRADED', [UDP_POOL]: 'ONLINE' });
  t.deepEqual(judged.members, {
    [id('up')]: 'ONLINE',
    [id('rise')]: 'ONLINE',
    [id('down')]: 'ERROR',
    [id('fall')]: 'ERROR',
    [id('maint')]: 'OFFLINE',
    [id('none')]: 'NO_MONITOR',
    [id('zero')]: 'DRAINING',
    [id('gone')]: 'OFFLINE',
    [id('one')]: 'OFFLINE',
    [id('u')]: 'ONLINE',
  });
});

test.serial('The health manager sees a pool that is down as an error of the load balancer', async (t) => {
  const judged = await judge(beat([running({ one: 'DOWN' }, 'DOWN')]));
  t.is(judged.loadBalancer, 'ERROR');
  t.is(judged.pools[POOL], 'ERROR');
  t.deepEqual((await judge(beat([running({ one: 'UP' })]))).loadBalancer, 'ONLINE');
});

test.serial('A heartbeat without the listeners of a HAProxy that does not run does not count', async (t) => {
  const judged = await judge(beat([]));
  t.false(judged.counted);
  t.is(judged.warnings.length, 1);
  t.is(judged.listeners[WEB], 'ERROR');
  t.true((await judge(beat([running({ one: 'UP' })]))).counted);
  t.false((await judge(beat([running({ one: 'UP' })], []))).counted);
});
