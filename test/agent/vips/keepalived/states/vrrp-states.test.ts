import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { InstanceDump } from '../../../../../agent/vips/keepalived/states/dump.ts';
import { VrrpCounters } from '../../../../../agent/vips/keepalived/states/vrrp-counters.ts';
import { VrrpStates } from '../../../../../agent/vips/keepalived/states/vrrp-states.ts';

const NAME = 'vrrp-51';
const NOW = new Date(0);

/** What keepalived tells, with so many advertisements of its own. */
function dump(state: InstanceDump['state'], advertsSent: number, advertsReceived = 0): InstanceDump {
  const none = new Set<string>();
  const numbers = {
    basePriority: 200,
    priority: 200,
    advertInterval: 200,
    lastTransition: 0,
    becameMaster: 0,
  };
  return { name: NAME, state, addresses: none, set: none, ...numbers, advertsSent, advertsReceived };
}

const quiet = (): void => undefined;

test('Advertisements are counted over every keepalived', (t) => {
  const states = new VrrpStates(quiet);
  states.told([dump('master', 10, 1)]);
  states.told([dump('master', 15, 1)]);
  // Started anew.
  states.told([dump('master', 3)]);
  t.deepEqual(states.of(NAME).adverts, { sent: 18, received: 1 });
});

test('An agent that starts goes on where the one before it ended', (t) => {
  const before = new VrrpStates(quiet);
  before.told([dump('backup', 0, 40)]);
  before.notified({ kind: 'state', instance: NAME, state: 'master', priority: 200 }, NOW);
  before.told([dump('master', 25, 40)]);

  const after = new VrrpStates(quiet, before.counts());
  t.deepEqual(after.of(NAME).adverts, { sent: 25, received: 40 });
  after.told([dump('master', 30, 40)]);
  t.deepEqual(after.of(NAME).adverts, { sent: 30, received: 40 });
  t.deepEqual(after.of(NAME).reached, { master: 1, backup: 1, fault: 0, unknown: 0 });
});

test('A keepalived that was started between two agents begins at 0, and no count goes back', (t) => {
  const before = new VrrpStates(quiet);
  before.told([dump('master', 100)]);
  const after = new VrrpStates(quiet, before.counts());
  after.told([dump('master', 7)]);
  t.is(after.of(NAME).adverts.sent, 107);
});

test('A state that is another one than an agent had left is a transition, the same one is none', (t) => {
  const before = new VrrpStates(quiet);
  before.told([dump('master', 1)]);
  const heard: string[] = [];
  const same = new VrrpStates(({ state }) => heard.push(state), before.counts());
  same.told([dump('master', 2)]);
  t.is(same.of(NAME).reached.master, 1);
  const other = new VrrpStates(({ state }) => heard.push(state), before.counts());
  other.told([dump('backup', 2)]);
  t.like(other.of(NAME).reached, { master: 1, backup: 1 });
  // Whoever follows the state hears of it in either case.
  t.deepEqual(heard, ['master', 'backup']);
  // An agent that ends before keepalived has told leaves what it found.
  t.is(new VrrpStates(quiet, before.counts()).counts()[0]?.state, 'master');
});

test('Whatever has been told and shown is to be kept, and nothing where it is the same', (t) => {
  let times = 0;
  const states = new VrrpStates(quiet, [], () => times++);
  states.notified({ kind: 'state', instance: NAME, state: 'master', priority: 200 }, NOW);
  t.is(times, 1);
  states.told([dump('master', 5)]);
  t.is(times, 2);
  states.told([dump('master', 5)]);
  t.is(times, 2);
  states.told([dump('master', 0)]);
  t.is(times, 3);
});

test('VrrpCounters gives back what was written last, and nothing of a file that cannot be read', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-vrrp-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'keepalived', 'counters');
  const counters = new VrrpCounters(path);
  t.deepEqual(counters.read(), []);
  const states = new VrrpStates(quiet);
  states.told([dump('backup', 1)]);
  void counters.write(states.counts());
  states.told([dump('master', 2)]);
  await counters.write(states.counts());
  t.deepEqual(new VrrpCounters(path).read(), states.counts());
  await writeFile(path, '{"version": 1, "instances": [{"name": "vrrp-51"');
  t.deepEqual(counters.read(), []);
});
