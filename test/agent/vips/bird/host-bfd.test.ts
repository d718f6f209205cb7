import test from 'ava';
import type { HostGroup, LbHost } from '../../../../agent/model/host-group.ts';
import { HostBfd } from '../../../../agent/vips/bird/host-bfd.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

const host = (at: number): LbHost => ({
  name: `lb${at}`,
  address: `192.0.2.${at}`,
  back: [`10.9.9.${at}`],
  anchors: [],
});
const [lb1, lb2, lb3] = [host(1), host(2), host(3)];

function watch(group: HostGroup | undefined = { self: lb1, hosts: [lb1, lb2, lb3] }) {
  const blind = new Set<string>();
  const told: boolean[] = [];
  const bird = { since: 0, pid: 7, isSilent: false, up: ['10.9.9.2', '10.9.9.3'], asked: 0 };
  const clock = new FakeClock();
  const bfd = new HostBfd({
    socket: {
      ask: async () => {
        bird.asked++;
        if (bird.isSilent) throw new Error('BIRD is silent');
        const since = new Date(bird.since || clock.wall()).toISOString().slice(0, 19).replace('T', ' ');
        const rows = ['10.9.9.2', '10.9.9.3'].map(
          (each) => `${each}   back   ${bird.up.includes(each) ? 'Up' : 'Down'}   ${since}   0.050   0.150`,
        );
        return {
          code: 0,
          lines: ['hg_bfd:', 'IP address  Interface  State  Since  Interval  Timeout', ...rows],
        };
      },
      close: () => undefined,
    },
    group: () => group,
    pid: () => bird.pid,
    blind: () => blind,
    onBlind: () => told.push(bfd.isBlind),
    clock,
  });
  const changes: string[] = [];
  bfd.follow(() => changes.push([...bfd.living()].join(' ')));
  bfd.start();
  return { bird, clock, bfd, changes, blind, told };
}

test('HostBfd calls once for each change of the hosts that live, this one among them', async (t) => {
  const { bird, clock, bfd, changes } = watch();
  t.deepEqual([...bfd.living()], ['lb1', 'lb2', 'lb3'], 'none is known to be dead');
  t.false(bfd.isKnown);
  await clock.advance(4_000);
  t.deepEqual(changes, []);
  t.true(bfd.isKnown);
  bird.up = ['10.9.9.3'];
  await clock.advance(50);
  t.deepEqual(changes, ['lb1 lb3']);
});

test('HostBfd keeps what it knows while BIRD does not answer or has just started', async (t) => {
  const { bird, clock, bfd, changes } = watch();
  await clock.advance(5_000);
  bird.isSilent = true;
  await clock.advance(1_000);
  bird.isSilent = false;
  bird.up = [];
  await clock.advance(2_000);
  bird.pid = 0;
  await clock.advance(1_000);
  bird.pid = 8;
  await clock.advance(2_500);
  t.deepEqual([...bfd.living()], ['lb1', 'lb2', 'lb3']);
  bird.up = ['10.9.9.2'];
  await clock.advance(1_500);
  t.deepEqual(changes, ['lb1 lb2']);
});

test('HostBfd does not ask BIRD without a back network', async (t) => {
  const plain = { ...lb1, back: [] };
  const { bird, clock, bfd } = watch({ self: plain, hosts: [plain, { ...lb2, back: [] }] });
  await clock.advance(5_000);
  t.is(bird.asked, 0);
  t.deepEqual([...bfd.living()], ['lb1']);
});

test('HostBfd keeps a host whose own BIRD does not answer as long as it says so, and says it of this host', async (t) => {
  const { bird, clock, changes, blind, told } = watch();
  await clock.advance(5_000);
  t.deepEqual(told, [true, false]);
  blind.add('lb3');
  bird.up = [];
  await clock.advance(100);
  t.deepEqual(changes, ['lb1 lb3']);
  blind.clear();
  await clock.advance(100);
  t.deepEqual(changes.slice(1), ['lb1']);
  bird.isSilent = true;
  await clock.advance(100);
  t.deepEqual(told, [true, false, true]);
});

test('HostBfd waits at its start for sessions that have just begun, and not for those that were down before', async (t) => {
  const begun = watch();
  begun.bird.up = [];
  await begun.clock.advance(2_500);
  t.deepEqual(begun.changes, []);
  begun.bird.up = ['10.9.9.2'];
  await begun.clock.advance(1_000);
  t.deepEqual(begun.changes, ['lb1 lb2']);
  const long = watch();
  long.bird.up = ['10.9.9.3'];
  long.bird.since = long.clock.wall() - 60_000;
  await long.clock.advance(50);
  t.deepEqual(long.changes, ['lb1 lb3']);
});
