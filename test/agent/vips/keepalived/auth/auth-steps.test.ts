import test from 'ava';
import fc from 'fast-check';
import { vrrp } from '../../../../../agent/settings/vrrp.ts';
import { type AdvertKey, advertKey } from '../../../../../agent/vips/keepalived/auth/advert-key.ts';
import {
  AUTH_LEVELS,
  type AuthState,
  nextAuth,
  noAuth,
  type PeerAuth,
  whyNotEnforced,
} from '../../../../../agent/vips/keepalived/auth/auth-steps.ts';
import { authIn } from '../../../../../agent/vips/keepalived/auth/auth-text.ts';
import { renderKeepalived } from '../../../../../agent/vips/keepalived/files/render.ts';
import { canAuthenticate } from '../../../../../agent/vips/keepalived/process/process.ts';

const [ONE, TWO] = ['11', '22'].map((byte) => advertKey(byte.repeat(32))) as [AdvertKey, AdvertKey];

/** A host with its keepalived, which gets the next state and reports it. */
class Host {
  key: AdvertKey | undefined;
  now: AuthState;
  heard: PeerAuth | undefined;

  constructor(key: AdvertKey | undefined, now: AuthState = noAuth) {
    this.key = key;
    this.now = now;
  }

  step(): void {
    this.now = nextAuth(this.now, this.key, this.heard);
  }

  get report(): PeerAuth {
    const { level, keys, active } = this.now;
    return {
      level,
      wants: this.key === undefined ? 'off' : 'enforce',
      keys: keys.map(({ name }) => name),
      active,
    };
  }
}

/** keepalived of `to` takes the advertisements of `from` (vrrp_auth_ext_verify() of 2.4.3). */
function takes(to: AuthState, from: AuthState): boolean {
  const signs = from.level === 'sign' || from.level === 'enforce';
  if (!signs) return to.level !== 'enforce';
  return to.level !== 'off' && to.keys.some(({ name }) => name === from.active);
}

function settle(hosts: readonly [Host, Host]): void {
  for (let round = 0; round < 30; round++) {
    const [a, b] = hosts;
    [a.heard, b.heard] = [b.report, a.report];
    a.step();
    b.step();
  }
}

test('Two hosts that get the same key enforce it, and nothing without one', (t) => {
  const hosts = [new Host(undefined), new Host(undefined)] as const;
  settle(hosts);
  for (const { now } of hosts) t.deepEqual(now, noAuth);
  hosts[0].key = ONE;
  settle(hosts);
  t.deepEqual(
    hosts.map(({ now }) => now.level),
    ['receive', 'off'],
  );
  t.is(whyNotEnforced(hosts[0].now, ONE, hosts[0].heard), 'the peer has no key that it can use');
  hosts[1].key = ONE;
  settle(hosts);
  for (const { now, heard } of hosts) {
    t.deepEqual(now, { level: 'enforce', keys: [ONE], active: ONE.name });
    t.is(whyNotEnforced(now, ONE, heard), '');
  }
  hosts[0].key = TWO;
  settle(hosts);
  t.deepEqual(
    hosts.map(({ now }) => now.active),
    [ONE.name, ONE.name],
  );
  t.is(whyNotEnforced(hosts[0].now, TWO, hosts[0].heard), 'the peer does not have this key yet');
  hosts[1].key = TWO;
  settle(hosts);
  for (const { now } of hosts) t.deepEqual(now, { level: 'enforce', keys: [TWO], active: TWO.name });
  hosts[0].key = undefined;
  settle(hosts);
  t.deepEqual(
    hosts.map(({ now }) => now.level),
    ['off', 'receive'],
  );
});

test('At every moment of any changes of keys both hosts take the advertisements of each other', (t) => {
  const key = fc.constantFrom(undefined, ONE, TWO, ONE);
  const event = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constantFrom('step', 'hear'), host: fc.constantFrom(0, 1) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('key'), host: fc.constantFrom(0, 1), key }) },
  );
  const property = fc.property(fc.array(event, { maxLength: 80 }), (events) => {
    const hosts = [new Host(undefined), new Host(undefined)] as const;
    let last: object | undefined;
    for (const each of events) {
      const [own, other] = each.host === 0 ? hosts : ([hosts[1], hosts[0]] as const);
      if (each.kind === 'step') own.step();
      else if (each.kind === 'hear') own.heard = other.report;
      else if (last === undefined || 'key' in each) {
        // An operator changes the next key when the last change is done.
        settle(hosts);
        if ('key' in each) own.key = each.key as AdvertKey | undefined;
        last = each;
      }
      const [a, b] = hosts;
      if (!takes(a.now, b.now) || !takes(b.now, a.now))
        throw new Error(JSON.stringify([a.now, b.now, a.report, b.report]));
    }
  });
  t.notThrows(() => fc.assert(property, { numRuns: 2_000 }));
});

test('Without a report of the peer a level stays, and a host that has never run only checks', (t) => {
  for (const level of AUTH_LEVELS.slice(1)) {
    const now: AuthState = { level, keys: [ONE], active: ONE.name };
    t.deepEqual(nextAuth(now, ONE, undefined), now);
    t.deepEqual(nextAuth(now, undefined, undefined), now);
  }
  t.is(nextAuth(undefined, ONE, undefined).level, 'receive');
  t.deepEqual(nextAuth(undefined, undefined, undefined), noAuth);
});

test('A host that lost its files comes back to a peer that enforces', (t) => {
  const enforced: AuthState = { level: 'enforce', keys: [ONE], active: ONE.name };
  const hosts = [new Host(ONE, nextAuth(undefined, ONE, undefined)), new Host(ONE, enforced)] as const;
  settle(hosts);
  for (const { now } of hosts) t.deepEqual(now, enforced);
});

test('A new key with the number of the former one is refused in words', (t) => {
  const clash = { ...TWO, id: ONE.id };
  const now: AuthState = { level: 'enforce', keys: [ONE], active: ONE.name };
  const peer: PeerAuth = { level: 'enforce', wants: 'enforce', keys: [ONE.name], active: ONE.name };
  t.deepEqual(nextAuth(now, clash, peer), now);
  t.regex(whyNotEnforced(now, clash, peer), /another key must be made/);
});

test('authIn() reads back what a text of the agent has', (t) => {
  const reading = vrrp().read(
    {
      interface: 'eth0',
      address: '10.0.0.1',
      peers: ['10.0.0.2'],
      virtualRouterId: 51,
      anchors: ['10.0.0.9'],
    },
    '/',
  );
  if (!('value' in reading) || reading.value === undefined) throw new Error('Not a setting');
  const paths = { fifo: '/f', standing: '/s' };
  for (const level of AUTH_LEVELS) {
    const state: AuthState =
      level === 'off'
        ? noAuth
        : { level, keys: [ONE, TWO].toSorted((a, b) => a.id - b.id), active: TWO.name };
    t.deepEqual(authIn(renderKeepalived(reading.value, paths, ['10.0.0.20'], state)), state);
  }
  const state: AuthState = { level: 'sign', keys: [ONE], active: ONE.name };
  const block = `  auth_hmac {\n    key ${ONE.id} hex:${ONE.hex}\n    active_key ${ONE.id}\n    time_window 60\n    mode permissive\n  }\n`;
  t.true(renderKeepalived(reading.value, paths, [], state).includes(block));
  t.is(
    renderKeepalived(reading.value, paths, ['10.0.0.20'], noAuth),
    renderKeepalived(reading.value, paths, ['10.0.0.20']),
  );
});

test('canAuthenticate() asks for the version and the option of the build', (t) => {
  const built = 'Config options:  VRRP VRRP_AUTH JSON';
  for (const version of ['2.4.2', '2.4.3', '2.5.0', '3.0.0'])
    t.true(canAuthenticate(version, built), version);
  for (const version of ['2.2.7', '2.3.4', '2.4.0', '2.4.1'])
    t.false(canAuthenticate(version, built), version);
  t.false(canAuthenticate('2.4.3', 'Config options:  VRRP VRRP_VMAC JSON'));
});
