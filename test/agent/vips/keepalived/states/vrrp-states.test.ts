import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { InstanceDump } from '../../../../../agent/vips/keepalived/process/dump.ts';
import { VrrpCounters } from '../../../../../agent/vips/keepalived/states/vrrp-counters.ts';
import { VrrpStates } from '../../../../../agent/vips/keepalived/states/vrrp-states.ts';

const NAME = 'vrrp-51';
const NOW = new Date(0);

/** A dump with keepalived's own counters. */
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

test('VrrpStates sums advertisements over restarts of keepalived', (t) => {
  const states = new VrrpStates(quiet);
  states.update([dump('master', 10, 1)]);
  states.update([dump('master', 15, 1)]);
  // A new keepalived.
  states.update([dump('master', 3)]);
  t.deepEqual(states.of(NAME).adverts, { sent: 18, received: 1 });
});

test('VrrpStates continues from the counts of an earlier agent', (t) => {
  const before = new VrrpStates(quiet);
  before.update([dump('backup', 0, 40)]);
  before.notified(NAME, 'master', 200, NOW);
  before.update([dump('master', 25, 40)]);

  const after = new VrrpStates(quiet, before.counts());
  t.deepEqual(after.of(NAME).adverts, { sent: 25, received: 40 });
  after.update([dump('master', 30, 40)]);
  t.deepEqual(after.of(NAME).adverts, { sent: 30, received: 40 });
  t.deepEqual(after.of(NAME).reached, { master: 1, backup: 1, fault: 0, unknown: 0 });
});

test('VrrpStates does not decrease a count after a restart of keepalived between two agents', (t) => {
  const before = new VrrpStates(quiet);
  before.update([dump('master', 100)]);
  const after = new VrrpStates(quiet, before.counts());
  after.update([dump('master', 7)]);
  t.is(after.of(NAME).adverts.sent, 107);
});

test('VrrpStates counts the first state as a transition only if it differs from the last state of the earlier agent', (t) => {
  const before = new VrrpStates(quiet);
  before.update([dump('master', 1)]);
  const reported: string[] = [];
  const same = new VrrpStates(({ state }) => reported.push(state), before.counts());
  same.update([dump('master', 2)]);
  t.is(same.of(NAME).reached.master, 1);
  const other = new VrrpStates(({ state }) => reported.push(state), before.counts());
  other.update([dump('backup', 2)]);
  t.like(other.of(NAME).reached, { master: 1, backup: 1 });
  // The callback gets the state in either case.
  t.deepEqual(reported, ['master', 'backup']);
  // An agent that ends before its first dump keeps the earlier state.
  t.is(new VrrpStates(quiet, before.counts()).counts()[0]?.state, 'master');
});

test('VrrpStates calls onCounts after each change of the counts, and not otherwise', (t) => {
  let times = 0;
  const states = new VrrpStates(quiet, [], () => times++);
  states.notified(NAME, 'master', 200, NOW);
  t.is(times, 1);
  states.update([dump('master', 5)]);
  t.is(times, 2);
  states.update([dump('master', 5)]);
  t.is(times, 2);
  states.update([dump('master', 0)]);
  t.is(times, 3);
});

test('VrrpCounters reads the last counts that were written, and nothing from a damaged file', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-vrrp-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'keepalived', 'counters');
  const counters = new VrrpCounters(path);
  t.deepEqual(counters.read(), []);
  const states = new VrrpStates(quiet);
  states.update([dump('backup', 1)]);
  void counters.write(states.counts());
  states.update([dump('master', 2)]);
  await counters.write(states.counts());
  t.deepEqual(new VrrpCounters(path).read(), states.counts());
  await writeFile(path, '{"version": 1, "instances": [{"name": "vrrp-51"');
  t.deepEqual(counters.read(), []);
});
