import test from 'ava';
import type { Probe, ProbeAnswer } from '../../../../agent/nftables/checks/probe-program.ts';
import { datagramListener } from '../../../../agent/octavia/datagrams/datagram-balancer.ts';
import { DatagramChecks } from '../../../../agent/octavia/datagrams/datagram-checks.ts';
import type {
  DatagramCheck,
  DatagramText,
  VirtualServer,
} from '../../../../agent/octavia/datagrams/datagram-text.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { LISTENER, member, POOL } from '../../../support/octavia/datagram-listeners.ts';

const CHECK: DatagramCheck = { kind: 'tcp', address: '10.9.0.31', port: 80, timeout: 3, path: '', codes: [] };

function textOf(check: Partial<DatagramCheck> = {}, fall = 2): DatagramText {
  const server: VirtualServer = {
    family: 'v4',
    vips: [{ address: '10.9.0.100', port: 53 }],
    protocol: 'UDP',
    algorithm: 'wrr',
    persistence: undefined,
    delay: 5,
    fall,
    pool: { id: POOL, isEnabled: true },
    members: [
      {
        ...{ id: member(1), address: '10.9.0.31', port: 5353, weight: 1, limit: 0 },
        check: { ...CHECK, ...check },
      },
    ],
    disabled: [],
  };
  return { listener: LISTENER, isEnabled: true, servers: [server] };
}

const NAME = datagramListener(LISTENER, textOf().servers[0] as VirtualServer);

function rig(wasDown = false) {
  const clock = new FakeClock();
  const probed: Probe[] = [];
  const changed: string[] = [];
  const state: { answer: ProbeAnswer; refusals: ReadonlyMap<string, number> } = {
    answer: 'open',
    refusals: new Map(),
  };
  const checks = new DatagramChecks({
    probe: async (probe) => {
      probed.push(probe);
      return state.answer;
    },
    refusals: async () => state.refusals,
    wasDown: () => wasDown,
    onChanged: (id) => changed.push(id),
    clock,
  });
  const isDown = (): boolean | undefined => checks.results(LISTENER, NAME).get('10.9.0.31:5353')?.isDown;
  return { clock, probed, changed, state, checks, isDown };
}

test('A member is down after as many failures as the text says, and up after one success', async (t) => {
  const { clock, probed, changed, state, checks, isDown } = rig();
  checks.set(textOf());
  await clock.advance(0);
  t.deepEqual(probed, [{ kind: 'tcp', address: '10.9.0.31', port: 80, path: '' }]);
  t.is(isDown(), false);
  state.answer = { failure: 'Connection refused' };
  await clock.advance(5_000);
  t.is(isDown(), false);
  await clock.advance(5_000);
  t.is(isDown(), true);
  t.is(checks.results(LISTENER, NAME).get('10.9.0.31:5353')?.cause, 'Connection refused');
  state.answer = 'unknown';
  await clock.advance(50_000);
  t.is(isDown(), true);
  state.answer = 'open';
  await clock.advance(5_000);
  t.is(isDown(), false);
  t.deepEqual([...new Set(changed)], [LISTENER]);
  t.is(checks.results(LISTENER, 'datagrams:-:other:udp:53:v4').size, 0);
});

test('A push with the same checks keeps what is known, and checks no sooner', async (t) => {
  const { clock, probed, state, checks, isDown } = rig(true);
  state.answer = { failure: 'Connection refused' };
  checks.set(textOf());
  await clock.advance(0);
  t.is(isDown(), true, 'an agent before this one has found it down');
  checks.set(textOf());
  await clock.advance(4_999);
  t.is(probed.length, 1);
  checks.set(textOf({ port: 81 }));
  await clock.advance(0);
  t.is(probed.at(-1)?.port, 81);
  const count = probed.length;
  checks.remove(LISTENER);
  await clock.advance(60_000);
  t.is(probed.length, count);
  t.is(isDown(), undefined);
});

test('HTTP is judged by the codes of the text, and UDP by what clients meet, too', async (t) => {
  const { clock, state, checks, isDown } = rig();
  checks.set(textOf({ kind: 'http', codes: [200, 204] }, 1));
  state.answer = { status: 204 };
  await clock.advance(5_000);
  t.is(isDown(), false);
  state.answer = { status: 301 };
  await clock.advance(5_000);
  t.is(isDown(), true);
  checks.set(textOf({ kind: 'udp' }, 1));
  state.answer = 'silence';
  await clock.advance(5_000);
  t.is(isDown(), false);
  state.refusals = new Map([['10.9.0.31:5353', 1_000]]);
  await clock.advance(5_000);
  t.is(isDown(), true);
});
