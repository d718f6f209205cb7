import test from 'ava';
import type { Member } from '../../../../agent/model/load-balancer.ts';
import type { Passed } from '../../../../agent/nftables/flows/flow-program.ts';
import { ForgetFlows } from '../../../../agent/nftables/flows/forget-flows.ts';
import type { KernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

function listener(port: number, addresses: readonly string[]): KernelListener {
  const members = addresses.map(
    (address): Member => ({
      name: `${address}:53`,
      id: 1,
      address,
      port: 53,
      weight: 1,
      state: 'ready',
      target: '',
    }),
  );
  return {
    name: `default:dns:udp:${port}:v4`,
    family: 'v4',
    protocol: 'UDP',
    port,
    addresses: ['192.0.2.1'],
    clients: undefined,
    by: 'flow',
    affinitySeconds: 0,
    sourceAddress: 'load-balancer',
    slots: members,
    members,
    down: [],
  };
}

/** A program whose passes end when the test says so. */
function rig() {
  const clock = new FakeClock();
  const passes: {
    readonly orders: readonly string[];
    readonly end: (why?: string, flows?: number) => void;
  }[] = [];
  const program = {
    pass: (orders: readonly string[]) =>
      new Promise<Passed>((resolve, reject) => {
        const end = (why = '', flows = 10): void =>
          why === '' ? resolve({ flows, deleted: 0 }) : reject(new Error(why));
        passes.push({ orders, end });
      }),
    close: () => undefined,
  };
  return { clock, passes, flows: new ForgetFlows({ netns: '', log: silentLog(), program, clock }) };
}

const ports = Array.from({ length: 1_000 }, (_, at) => 1_000 + at);
const [before, after] = [
  ports.map((port) => listener(port, ['10.0.0.1', '10.0.0.2'])),
  ports.map((port) => listener(port, ['10.0.0.2'])),
];
const changes = before.map((each, at) => ({ before: each, after: after[at] }));

test('ForgetFlows goes through the flows once for a member of a thousand ports, after its last answers', async (t) => {
  const { clock, passes, flows } = rig();
  flows.changed(changes);
  await clock.advance(499);
  t.is(passes.length, 0);
  await clock.advance(1);
  t.deepEqual(
    passes.map(({ orders }) => orders.length),
    [1_000],
  );
});

test('ForgetFlows begins no pass during another one, and loses nothing that becomes due meanwhile', async (t) => {
  const { clock, passes, flows } = rig();
  flows.changed(changes.slice(0, 1));
  await clock.advance(500);
  for (const change of changes.slice(1)) flows.changed([change]);
  await clock.advance(10_000);
  t.is(passes.length, 1);
  passes[0]?.end();
  await clock.advance(500);
  t.deepEqual(
    passes.map(({ orders }) => orders.length),
    [1, 999],
  );
});

test('ForgetFlows is due at an unchanged time however often a place changes', async (t) => {
  const { clock, passes, flows } = rig();
  for (let turn = 0; turn < 6; turn++) {
    flows.changed(changes.slice(0, 1));
    await clock.advance(100);
  }
  t.is(passes.length, 1);
});

test('A member that leaves shortly before the pass for another one has its own half second', async (t) => {
  const { clock, passes, flows } = rig();
  flows.changed(changes.slice(0, 1));
  await clock.advance(400);
  flows.changed([{ before: listener(1_000, ['10.0.0.2']), after: listener(1_000, ['10.0.0.3']) }]);
  await clock.advance(100);
  t.regex(passes[0]?.orders[0] ?? '', / some 0a0000030035 0a0000020035$/);
  passes[0]?.end();
  await clock.advance(399);
  t.is(passes.length, 1);
  await clock.advance(1);
  t.regex(passes[1]?.orders[0] ?? '', / some 0a0000030035$/);
});

test('ForgetFlows sends the members of the moment: one that is back keeps its flows', async (t) => {
  const { clock, passes, flows } = rig();
  flows.changed(changes.slice(0, 1));
  flows.changed([{ before: after[0], after: before[0] }]);
  await clock.advance(500);
  t.regex(passes[0]?.orders[0] ?? '', /0a0000010035.* 0a0000020035$/);
});

test('After a load of all rules, ForgetFlows goes through those of each place twice, and of places from before', async (t) => {
  const { clock, passes, flows } = rig();
  flows.restore(['c0000201003511']);
  flows.loaded(after.slice(0, 2));
  await clock.advance(0);
  passes[0]?.end();
  await clock.advance(500);
  passes[1]?.end();
  for (const { orders } of passes) {
    t.is(orders.length, 3);
    t.true(orders.includes('c0000201003511 all'));
  }
  t.is(passes.length, 2);
  await clock.advance(1);
  flows.loaded(after.slice(0, 2));
  await clock.advance(1);
  t.is(passes[2]?.orders.length, 2, 'what is gone is forgotten');
});

test('ForgetFlows repeats a pass that failed, with all of its places', async (t) => {
  const { clock, passes, flows } = rig();
  flows.changed(changes);
  await clock.advance(500);
  passes[0]?.end('perl has ended');
  await clock.advance(0);
  t.regex(flows.fault, /perl has ended$/);
  await clock.advance(500);
  t.is(passes[1]?.orders.length, 1_000);
  passes[1]?.end();
  await clock.advance(0);
  t.is(flows.fault, '');
});

test('ForgetFlows rests after a pass through many flows', async (t) => {
  const { clock, passes, flows } = rig();
  flows.changed(changes.slice(0, 1));
  await clock.advance(500);
  passes[0]?.end('', 200_000);
  flows.changed(changes.slice(1, 2));
  await clock.advance(3_999);
  t.is(passes.length, 1);
  await clock.advance(1);
  t.is(passes.length, 2);
});
