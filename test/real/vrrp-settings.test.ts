// Settings of VRRP that change while the real keepalived runs, on one host after the other, as an operator changes them.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import {
  ANCHOR,
  createPair,
  type Pair,
  type PairHost,
  startPair,
  until,
  vip,
  vips,
} from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

const ANCHORS = [ANCHOR, 'fd09::1'];
const instance = (virtualRouterId: number, priority: number, anchors: readonly string[] = ANCHORS) => ({
  virtualRouterId,
  priority,
  anchors,
});

test.serial(
  'Priority and interval change without a change of master, unless the priority requires it',
  async (t) => {
    const pair = await startPair(t, vips(0, 20));
    const { a, b } = pair;
    const [pid, { becameMaster }] = [await b.vrrpPid(), await b.ask()];
    for (const host of [a, b]) {
      host.configure({ advertInterval: 300 });
      await until('it has the interval', async () => (await host.ask()).advertInterval === 300, pair);
    }
    b.configure({ instances: [instance(51, 240)] });
    await until('b has the priority', async () => (await b.ask()).priority === 240, pair);
    t.like(await b.ask(), { state: 'master', becameMaster });
    t.is((await a.ask()).becameMaster, 0);
    t.is(b.dataplane.status().instances[0]?.priority, 240);

    a.configure({ instances: [instance(51, 250)] });
    await until('a is master', async () => a.state() === 'master' && b.state() === 'backup', pair);
    t.is((await a.held()).length, 22);
    t.deepEqual(await b.held(), []);
    t.is(await b.vrrpPid(), pid);
  },
);

test.serial(
  'Further anchors are added and removed on one host after the other without a change of master',
  async (t) => {
    const pair = await startPair(t, vips(0, 20));
    const { a, b } = pair;
    const [pid, { becameMaster }] = [await b.vrrpPid(), await b.ask()];
    const further = '10.9.0.3';
    for (const host of [a, b]) host.configure({ instances: [instance(51, 200, [...ANCHORS, further])] });
    await until('the master has it', async () => (await b.held()).includes(further), pair);
    t.is((await b.held()).length, 23);
    for (const host of [b, a]) host.configure({ instances: [instance(51, 200)] });
    await until('it is gone', async () => !(await b.held()).includes(further), pair);
    t.like(await b.ask(), { state: 'master', becameMaster });
    t.is((await a.ask()).becameMaster, 0);
    t.is(await b.vrrpPid(), pid);
  },
);

test.serial('A new virtual router takes over all addresses of the old one', async (t) => {
  const pair = await startPair(t, vips(0, 20));
  const { a, b } = pair;
  const pid = await b.vrrpPid();
  for (const host of [b, a]) host.configure({ instances: [instance(61, 200)] });
  const isTheOther = ({ dataplane }: PairHost) => Object.keys(dataplane.roles()).join() === 'vrrp-61';
  await until('both have it', async () => isTheOther(a) && isTheOther(b), pair);
  await until('one is its master', async () => states(pair) === 'backup,master', pair);
  const [master, backup] = a.state() === 'master' ? [a, b] : [b, a];
  await until('it holds all', async () => (await master.held()).length === 22, pair);
  await until('the other one nothing', async () => (await backup.held()).length === 0, pair);
  t.is(master.dataplane.status().instances[0]?.name, 'vrrp-61');
  t.is(await b.vrrpPid(), pid);
  await isSteady(t, pair);
});

test.serial('One virtual router becomes two and one again without the loss of a VIP', async (t) => {
  const pair = await startPair(t, vips(0, 20));
  const { a, b } = pair;
  const all = [...vips(0, 20), ANCHOR, 'fd09::1'];
  a.configure({ instances: [instance(51, 250), instance(52, 200, ['10.9.0.2'])] });
  b.configure({ instances: [instance(51, 200), instance(52, 250, ['10.9.0.2'])] });
  const isShared = async () =>
    a.state(0) === 'master' && b.state(1) === 'master' && a.state(1) === 'backup' && b.state(0) === 'backup';
  await until('each is master of one', isShared, pair);
  const holdAll = async (...more: readonly string[]) => {
    const held = [...(await a.held()), ...(await b.held())];
    return held.sort().join() === [...all, ...more].sort().join();
  };
  await until('they hold all', () => holdAll('10.9.0.2'), pair);
  for (const host of [a, b]) host.configure({ instances: [instance(51, 200)] });
  await until('they hold all again', holdAll, pair);
  t.is(Math.min((await a.held()).length, (await b.held()).length), 0);
  await isSteady(t, pair);
});

test.serial('A single host moves all VIPs from two virtual routers to one and holds all', async (t) => {
  const pair = await createPair(t);
  const { b } = pair;
  b.configure({ instances: [instance(51, 200), instance(52, 200, ['10.9.0.2'])] });
  b.want(vips(0, 20));
  await b.dataplane.start();
  b.dataplane.standing([]);
  await until('it holds all', async () => (await b.held()).length === 23, pair);
  b.configure({ instances: [instance(51, 200)] });
  await until('there is one', async () => Object.keys(b.dataplane.roles()).length === 1, pair);
  await until('it is well', async () => b.dataplane.status().vips === 20, pair);
  t.is((await b.held()).length, 22);
  b.configure({ instances: [instance(51, 200), instance(52, 200, ['10.9.0.2'])] });
  await until('there are two', async () => Object.keys(b.dataplane.roles()).length === 2, pair);
  await until('it holds all again', async () => (await b.held()).length === 23, pair);
  await isSteady(t, pair);
});

test.serial('Settings that keepalived refuses change nothing, and VIPs still change', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { b } = pair;
  b.configure({ interface: 'eth9' });
  await until('b reports the fault', async () => b.dataplane.status().fault !== '', pair);
  t.regex(b.dataplane.status().fault, /interface eth9/);
  b.want(vips(0, 4));
  await until('b holds the new one', async () => (await b.held()).includes(vip(3)), pair);
  t.is(b.state(), 'master');
  b.configure({ interface: 'eth0' });
  await until('b is well', async () => b.dataplane.status().fault === '', pair);
});

test.serial('A new peer counts as soon as the settings have it', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a } = pair;
  a.configure({ peers: ['10.9.0.250'] });
  await until('a receives no advertisements', async () => a.state() === 'master', pair);
  a.configure({ peers: [network.v4('b')] });
  await until('one becomes backup', async () => states(pair) === 'backup,master', pair);
  await isSteady(t, pair);
});

function states({ a, b }: Pair): string {
  return [a, b]
    .map((host) => host.state())
    .sort()
    .join();
}

/** No repair was needed. */
async function isSteady(t: ExecutionContext<unknown>, { a, b }: Pair): Promise<void> {
  for (const host of [a, b]) {
    t.is(host.counted.get('keepalived'), undefined);
    t.is(host.counted.get('reload failed'), undefined);
  }
}
