import test, { type ExecutionContext } from 'ava';
import { ForeignHolders } from '../../../agent/vips/foreign-holders.ts';
import { FakeClock, settled } from '../../support/basics/fake-clock.ts';
import { silentLog } from '../../support/values/silent-log.ts';

const VIP = '192.0.2.10';
const PEER = '192.0.2.12';
const OWN_ETHER = '02:00:00:00:00:01';
const PEER_ETHER = '02:00:00:00:00:02';
const FOREIGN = '02:00:00:00:00:07';
const PROBLEM = `${VIP} is also held by ${FOREIGN}, which is neither this host nor its peer: clients reach the one or the other; find that machine by its Ethernet address, and remove the address there`;

interface Network {
  /** Who answers, by address. */
  machines: Record<string, readonly string[]>;
  /** What was noted, as `address ether`. */
  noted: Set<string>;
  peer: string;
  isHeld: boolean;
  fails: boolean;
  readonly asked: string[][];
  readonly watched: Set<string>;
}

function start(t: ExecutionContext<unknown>, vips: readonly string[] = [VIP]) {
  const clock = new FakeClock();
  const state: Network = {
    machines: { [VIP]: [PEER_ETHER] },
    noted: new Set(),
    peer: PEER_ETHER,
    isHeld: false,
    fails: false,
    asked: [],
    watched: new Set(),
  };
  const changed: string[][] = [];
  const desired = new Map(
    vips.map((address, at) => [`default/web-${at}`, { vips: [{ address, name: '' as never }] }] as const),
  );
  const foreign = new ForeignHolders({
    desired: desired as never,
    place: () => ({ interface: 'eth0', peers: [PEER] }),
    holds: () => state.isHeld,
    network: {
      make: async () => {
        if (state.fails) throw new Error('nft is missing');
        state.watched.clear();
      },
      remove: async () => undefined,
      watch: async (added, removed) => {
        for (const each of added) state.watched.add(each);
        for (const each of removed) state.watched.delete(each);
      },
      ask: async (_device, addresses) => {
        state.asked.push([...addresses]);
        for (const address of addresses)
          for (const ether of state.machines[address] ?? []) state.noted.add(`${address} ${ether}`);
      },
      answers: async () =>
        [...state.noted].map((line) => {
          const [address = '', ether = ''] = line.split(' ');
          return { address, ether };
        }),
      neighbour: async () => state.peer,
      link: async () => ({ ethers: new Set([OWN_ETHER]), networks: ['192.0.2.0/24', '2001:db8::/64'] }),
    },
    onChanged: (keys) => changed.push([...keys]),
    log: silentLog(),
    clock,
  });
  foreign.start();
  t.teardown(() => foreign.close());
  const messages = () =>
    foreign
      .problemsOf({ key: 'default/web-0', vips: [{ address: VIP }] as never })
      .map(({ message }) => message);
  return { clock, state, foreign, changed, messages };
}

const ROUND_MS = 10_000;

test('A machine that answers for a VIP beside the peer is a problem, until it no longer answers', async (t) => {
  const { clock, state, changed, foreign, messages } = start(t);
  state.machines = { [VIP]: [PEER_ETHER, FOREIGN] };
  await clock.advance(3 * ROUND_MS);
  t.deepEqual(messages(), [PROBLEM]);
  t.like(foreign.problemsOf({ key: 'default/web-0', vips: [{ address: VIP }] as never })[0], {
    object: 'Service default/web-0',
    reason: 'AddressConflict',
  });
  t.deepEqual(changed, [['default/web-0']]);
  // It has gone, and what it answered is remembered for a while.
  state.machines = { [VIP]: [PEER_ETHER] };
  await clock.advance(6 * ROUND_MS);
  t.deepEqual(messages(), [PROBLEM]);
  state.noted.clear();
  await clock.advance(8 * ROUND_MS);
  t.deepEqual(messages(), []);
  t.is(changed.length, 2);
});

test('The peer, this host, and a VIP without an answer are no problem', async (t) => {
  const { clock, state, messages, changed } = start(t);
  state.machines = { [VIP]: [PEER_ETHER, OWN_ETHER] };
  await clock.advance(5 * ROUND_MS);
  t.deepEqual(messages(), []);
  t.deepEqual(changed, []);
  t.deepEqual([...state.watched].sort(), [VIP, PEER]);
});

test('Nothing is said before the peer is known, and its new Ethernet address is learned in time', async (t) => {
  const { clock, state, messages } = start(t);
  state.peer = '';
  await clock.advance(5 * ROUND_MS);
  t.deepEqual(messages(), [], 'the answer may be that of the peer');
  state.peer = PEER_ETHER;
  await clock.advance(ROUND_MS);
  t.deepEqual(messages(), []);
  // The peer has another interface now, and the kernel finds out a moment later.
  state.noted.add(`${VIP} 02:00:00:00:00:22`);
  await clock.advance(ROUND_MS);
  t.deepEqual(messages(), []);
  state.noted.add(`${PEER} 02:00:00:00:00:22`);
  await clock.advance(3 * ROUND_MS);
  t.deepEqual(messages(), []);
});

test('A machine that claims the address of the peer with ever other Ethernet addresses fills no memory', async (t) => {
  const { clock, state, messages } = start(t);
  for (let at = 10; at < 40; at++) state.noted.add(`${PEER} 02:00:00:00:01:${at}`);
  await clock.advance(ROUND_MS);
  // The first of them are not the peer's any more.
  state.noted.clear();
  state.machines = { [VIP]: ['02:00:00:00:01:10'] };
  state.noted.add(`${VIP} 02:00:00:00:01:10`);
  await clock.advance(2 * ROUND_MS);
  t.is(messages().length, 1);
});

test('A host that holds a VIP does not ask for it, and still hears who else has it', async (t) => {
  const { clock, state, messages } = start(t);
  state.isHeld = true;
  await clock.advance(2 * ROUND_MS);
  t.deepEqual(state.asked, []);
  state.noted.add(`${VIP} ${FOREIGN}`);
  await clock.advance(2 * ROUND_MS);
  t.deepEqual(messages(), [PROBLEM]);
  state.noted.clear();
  await clock.advance(ROUND_MS);
  t.deepEqual(messages(), []);
});

test('1,000 VIPs are asked for in eight minutes, each once, and those of other networks never', async (t) => {
  const vips = Array.from({ length: 1_000 }, (_, at) => `2001:db8::${(at + 1).toString(16)}`);
  const { clock, state } = start(t, [...vips, '198.51.100.1']);
  for (let round = 1; round <= 51; round++) {
    await clock.advance(ROUND_MS);
    // A round lets others work in between.
    for (let more = 0; state.asked.length < round && more < 1_000; more++) await settled();
  }
  const asked = state.asked.slice(0, 50);
  t.true(asked.every(({ length }) => length === 20));
  t.is(asked.flat().length, 1_000);
  t.deepEqual(new Set(asked.flat()), new Set(vips));
  t.deepEqual(state.asked[50], state.asked[0], 'and again');
});

test('A host that cannot ask says nothing, and tries again', async (t) => {
  const { clock, state, messages } = start(t);
  state.fails = true;
  state.machines = { [VIP]: [FOREIGN] };
  await clock.advance(3 * ROUND_MS);
  t.deepEqual(messages(), []);
  state.fails = false;
  await clock.advance(3 * ROUND_MS);
  t.deepEqual(messages(), [PROBLEM]);
});
