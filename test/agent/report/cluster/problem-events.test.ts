import test from 'ava';
import { EventRecorder } from '../../../../agent/kubernetes/writers/events.ts';
import type { Problem } from '../../../../agent/model/load-balancer.ts';
import { ProblemEvents } from '../../../../agent/report/cluster/problem-events.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { FakeApi, type Json } from '../../../support/kube/fake-api.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

test('Only the leader sends Events, and a new leader sends all present problems', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  one.problems.set('shop/web', ['Taken']);
  one.events.touched('shop/web');
  await clock.advance(60_000);
  t.deepEqual(notes(), []);
  one.lead(true);
  await clock.advance(60_000);
  t.deepEqual(notes(), ['shop/web Taken']);
});

test('A problem that is solved within seconds of the new lead is not sent', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  one.problems.set('shop/web', ['No address yet']);
  one.lead(true);
  await clock.advance(1_000);
  one.events.touched('shop/web');
  one.problems.set('shop/web', []);
  await clock.advance(60_000);
  one.problems.set('shop/web', ['Taken']);
  one.events.touched('shop/web');
  await clock.advance(1_000);
  t.deepEqual(notes(), ['shop/web Taken']);
});

test('A new leader does not repeat the Events of the last one, and sends the rest', async (t) => {
  const { agent, clock, api, notes } = start();
  const [first, second] = [agent(), agent()];
  for (const one of [first, second]) one.problems.set('shop/web', ['Taken']);
  first.lead(true);
  await clock.advance(60_000);
  first.lead(false);
  for (const one of [first, second]) one.problems.set('shop/web', ['Taken', 'Refused']);
  for (const one of [first, second]) one.events.touched('shop/web');
  second.lead(true);
  await clock.advance(60_000);
  t.deepEqual(notes(), ['shop/web Taken', 'shop/web Refused']);
  // The same agent once more.
  second.lead(false);
  second.lead(true);
  await clock.advance(20 * 60_000);
  t.is(notes().length, 2);
  t.true([...api.objects.values()].every(({ series }) => series === undefined));
});

test('A problem that appears again is sent again, even if another agent sent it first', async (t) => {
  const { agent, clock, notes } = start();
  const [first, second] = [agent(), agent()];
  first.problems.set('shop/web', ['Taken']);
  first.lead(true);
  await clock.advance(60_000);
  first.lead(false);
  second.lead(true);
  await clock.advance(60_000);
  second.problems.set('shop/web', ['Taken']);
  second.events.touched('shop/web');
  await clock.advance(60_000);
  t.deepEqual(notes(), ['shop/web Taken', 'shop/web Taken']);
});

test('A Service that is created again gets the Events of the last one', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  one.problems.set('shop/web', ['Taken']);
  one.lead(true);
  await clock.advance(60_000);
  one.uids.set('shop/web', 'another');
  one.events.touched('shop/web');
  await clock.advance(60_000);
  t.deepEqual(notes(), ['shop/web Taken', 'shop/web Taken']);
});

test('Thousands of present problems are all sent within the limit', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  for (let i = 0; i < 3_000; i++) one.problems.set(`shop/web-${i}`, ['Taken']);
  one.lead(true);
  await clock.advance(65_000);
  t.true(notes().length <= 50 + 60 * 10);
  await clock.advance(300_000);
  t.is(new Set(notes()).size, 3_000);
});

test('An agent that is no longer the leader stops sending present problems', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  for (let i = 0; i < 3_000; i++) one.problems.set(`shop/web-${i}`, ['Taken']);
  one.lead(true);
  await clock.advance(10_000);
  one.lead(false);
  const { length } = notes();
  await clock.advance(600_000);
  t.true(notes().length <= length + 4);
});

const PART = 'A part of what clients tried at TCP port 80 (IPv4) in the last minute failed';
const ALL = 'All that clients tried at TCP port 80 (IPv4) in the last minute failed';

test('Members that fail clients one after the other are one Event, and so is their recovery none', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  one.lead(true);
  await clock.advance(10_000);
  const now = async (...messages: string[]) => {
    one.problems.set('shop/web', messages);
    one.events.touched('shop/web');
    await clock.advance(11_000);
  };
  await now(PART);
  t.deepEqual(notes(), []);
  await now(ALL);
  t.deepEqual(notes(), [`shop/web ${ALL}`]);
  // The last minute still has failures.
  await now(PART);
  await now(PART);
  await now();
  t.deepEqual(notes(), [`shop/web ${ALL}`]);
  await now(PART);
  await now(PART);
  t.deepEqual(notes(), [`shop/web ${ALL}`, `shop/web ${PART}`]);
});

test('A failure of clients that ends at once is no Event, and other problems do not wait for it', async (t) => {
  const { agent, clock, notes } = start();
  const one = agent();
  one.lead(true);
  await clock.advance(10_000);
  one.problems.set('shop/web', [PART, 'Taken']);
  one.events.touched('shop/web');
  await clock.advance(5_000);
  one.problems.set('shop/web', ['Taken']);
  one.events.touched('shop/web');
  await clock.advance(60_000);
  t.deepEqual(notes(), ['shop/web Taken']);
});

function start() {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const agent = () => {
    let isLeader = false;
    const problems = new Map<string, readonly string[]>();
    const uids = new Map<string, string>();
    const recorder = new EventRecorder({
      api,
      clock,
      log: silentLog(),
      instance: 'lb',
      isLeader: () => isLeader,
    });
    const events = new ProblemEvents({
      events: recorder,
      clock,
      keys: () => problems.keys(),
      problemsOf: (key) => {
        const [namespace = '', name = ''] = key.split('/');
        const uid = uids.get(key) ?? `uid of ${key}`;
        const subject = { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
        const found = (problems.get(key) ?? []).map((message) => problem(key, message));
        return { subject, problems: found };
      },
    });
    const lead = (leads: boolean) => {
      isLeader = leads;
      events.lead(leads);
    };
    return { problems, uids, events, lead };
  };
  const notes = () =>
    [...api.objects.values()].map(
      ({ regarding, note }: Json) => `${regarding.namespace}/${regarding.name} ${note}`,
    );
  return { api, clock, agent, notes };
}

function problem(key: string, message: string): Problem {
  const reason = /clients tried/.test(message) ? 'MembersFail' : 'InvalidAnnotation';
  return { object: `Service ${key}`, reason, message };
}
