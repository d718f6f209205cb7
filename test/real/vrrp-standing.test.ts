// A host that has not caught up, and VIPs that are removed and added one by one, with the real keepalived.

import { randomInt } from 'node:crypto';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { createPair, startPair, until, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

test.serial('A host that has not caught up replaces a dead master', async (t) => {
  const pair = await startPair(t, vips(0, 20));
  const { network, a } = pair;
  a.dataplane.standing(['catching-up']);
  await until('a is lowered', async () => (await a.ask()).priority === 149, pair);
  t.is(a.state(), 'backup');
  await network.cut('b');
  await until('a is master', async () => a.state() === 'master', pair);
  t.is((await a.held()).length, 22);
  t.deepEqual(a.dataplane.status().lowered, ['catching-up']);
});

test.serial('A host of higher priority does not replace a live master before it has caught up', async (t) => {
  const instances = (priority: number) => [{ virtualRouterId: 51, priority, anchors: ['10.9.0.1'] }];
  const pair = await createPair(t, { a: { instances: instances(250) }, b: { instances: instances(200) } });
  const { a, b } = pair;
  b.want(vips(0, 3));
  await b.dataplane.start();
  b.dataplane.standing([]);
  await until('b is master', async () => b.state() === 'master', pair);
  const { becameMaster } = await b.ask();

  a.want(vips(0, 3));
  a.dataplane.standing(['catching-up']);
  await a.dataplane.start();
  await until('a is backup', async () => a.state() === 'backup', pair);
  const { advertsReceived } = await a.ask();
  await until(
    'a has received from b',
    async () => (await a.ask()).advertsReceived > advertsReceived + 5,
    pair,
  );
  t.is(a.state(), 'backup');
  t.is((await a.ask()).becameMaster, 0);

  a.dataplane.standing([]);
  await until('a has taken over', async () => a.state() === 'master' && b.state() === 'backup', pair);
  t.is((await b.ask()).becameMaster, becameMaster);
  t.deepEqual(await b.held(), []);
});

test.serial('One VIP of a thousand is removed and added without an effect on the others', async (t) => {
  const all = vips(0, 1_000);
  const pair = await startPair(t, all);
  const { a, b } = pair;
  const before = await b.ask();
  for (let round = 0; round < 10; round++) {
    const gone = all[randomInt(all.length)] ?? '';
    const host = randomInt(2) === 0 ? a : b;
    const others = all.filter((each) => each !== gone);
    host.want(others);
    await until('it is gone', async () => !(await host.ask()).addresses.has(gone), pair);
    const held = await b.held();
    t.is(held.length, host === b ? 1_001 : 1_002);
    t.deepEqual(await a.held(), []);
    host.want(all);
    await until('it is back', async () => (await host.ask()).addresses.has(gone), pair);
  }
  await until('b holds all', async () => (await b.held()).length === 1_002, pair);
  const after = await b.ask();
  t.is(after.state, 'master');
  t.is(after.becameMaster, before.becameMaster);
  t.is((await a.ask()).becameMaster, 0);
});
