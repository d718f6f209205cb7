import test, { type ExecutionContext } from 'ava';
import { AnswerWatch } from '../../../../agent/nftables/checks/answer-watch.ts';
import type { ListenerCounts } from '../../../../agent/nftables/rules/counts.ts';
import type { KernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const NAME = 'default:web:tcp:80:v4';
const ROUND_MS = 10_000;

/** What one connection costs to clients. */
const REFUSED = { packets: 1, bytes: 40 };
const SILENT = { packets: 0, bytes: 0 };
const GOOD = { packets: 5, bytes: 900 };
/** The answer to a client that resets the connection at once, as some health checks do. */
const CHECKED = { packets: 1, bytes: 60 };

function start(t: ExecutionContext<unknown>, members = 1, protocol: 'TCP' | 'UDP' = 'TCP') {
  const clock = new FakeClock();
  const state = { flows: 0, packets: 0, bytes: 0, read: 0 };
  const changed: string[][] = [];
  const listener = {
    ...{ name: NAME, family: 'v4', protocol, port: 80, slots: [{}] },
    members: Array.from({ length: members }, (_, at) => ({ name: `10.0.0.${at}:80`, state: 'ready' })),
  } as unknown as KernelListener;
  const watch = new AnswerWatch({
    listeners: () => [listener],
    counts: async () => {
      state.read++;
      const { flows, packets, bytes } = state;
      const counts: ListenerCounts = {
        flows: { packets: flows, bytes: flows * 60 },
        received: { packets: flows, bytes: flows * 60 },
        sent: { packets, bytes },
      };
      return new Map([[NAME, counts]]);
    },
    onChanged: (keys) => changed.push([...keys]),
    log: silentLog(),
    clock,
  });
  watch.start();
  t.teardown(() => watch.close());
  const round = async (flows = 0, { packets, bytes } = SILENT, answered = flows) => {
    state.flows += flows;
    state.packets += packets * answered;
    state.bytes += bytes * answered;
    await clock.advance(ROUND_MS);
  };
  return { watch, state, changed, round };
}

for (const [what, answer] of [
  ['refuse', REFUSED],
  ['are silent', SILENT],
] as const)
  test(`Members that ${what} fail all that clients try, until one has an answer`, async (t) => {
    const { watch, changed, round } = start(t);
    await round();
    await round(21, answer);
    t.is(watch.of(NAME), undefined, 'the last answers may be on their way');
    await round(21, answer);
    t.like(watch.of(NAME), { unit: 'flows', tried: 21, failed: 21, share: 'all' });
    t.like(watch.of(NAME)?.members.get('10.0.0.0:80'), { failed: 21, isAll: true });
    t.deepEqual(changed, [['default/web']]);
    await round(1, GOOD);
    await round();
    t.not(watch.of(NAME)?.share, 'all');
    for (let at = 0; at < 7; at++) await round();
    t.is(watch.of(NAME), undefined);
  });

test('Members that answer fail nothing, also a client that resets its connection at once', async (t) => {
  const { watch, changed, round } = start(t);
  await round();
  for (const answer of [GOOD, CHECKED, GOOD, CHECKED]) await round(30, answer);
  t.is(watch.of(NAME), undefined);
  t.deepEqual(changed, []);
});

test('An answer that comes after the reading counts for the connections before it', async (t) => {
  const { watch, round } = start(t);
  await round();
  await round(5, GOOD, 0);
  await round(0, GOOD, 5);
  await round();
  t.is(watch.of(NAME), undefined);
});

test('Counters that begin again, of a listener that was gone between two readings, show no failure', async (t) => {
  const { watch, state, round } = start(t);
  await round();
  await round(9, GOOD);
  await round(9, GOOD);
  Object.assign(state, { flows: 0, packets: 0, bytes: 0 });
  await round(4, GOOD);
  t.is(watch.of(NAME), undefined);
  await round();
  t.is(watch.of(NAME), undefined);
});

test('Two failed connections are no more than an accident', async (t) => {
  const { watch, round } = start(t);
  await round();
  await round(2, REFUSED);
  await round();
  t.is(watch.of(NAME)?.share, 'none');
});

test('Which of several members fails is not known', async (t) => {
  const { watch, round } = start(t, 3);
  await round();
  await round(9, REFUSED);
  await round(9, REFUSED);
  t.like(watch.of(NAME), { share: 'all', failed: 9 });
  t.is(watch.of(NAME)?.members.size, 0);
});

test('A protocol that needs no answer is not judged, and nothing is read for it', async (t) => {
  const { watch, state, round } = start(t, 1, 'UDP');
  for (let at = 0; at < 4; at++) await round(30, SILENT);
  t.is(watch.of(NAME), undefined);
  t.is(state.read, 0);
});
