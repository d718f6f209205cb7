import test from 'ava';
import { takeKey } from '../../../../agent/pair/orders/key-order.ts';

/** Time passes at once. */
function fastClock() {
  let now = 0;
  return {
    monotonic: () => now,
    wall: () => now,
    after: (milliseconds: number, callback: () => void) => {
      setImmediate(() => {
        now += milliseconds;
        callback();
      });
      return () => undefined;
    },
  };
}

function keyed(why: () => string) {
  let renewed = 0;
  return {
    renewKey: async () => {
      renewed++;
    },
    auth: { status: () => ({ level: 'enforce', key: '0123abcd', why: why() }) },
    get renewed() {
      return renewed;
    },
  };
}

test('takeKey() returns once both hosts use only the new key', async (t) => {
  let rounds = 0;
  const vrrp = keyed(() => (rounds++ > 5 ? '' : 'both hosts are about to'));
  t.deepEqual(await takeKey(vrrp, true, fastClock()), {
    ok: true,
    message: 'Both hosts use only key 0123abcd',
  });
  t.is(vrrp.renewed, 1);
});

test('takeKey() says why a key is not in use', async (t) => {
  const vrrp = keyed(() => 'the peer does not have this key yet');
  const { ok, message } = await takeKey(vrrp, true, fastClock());
  t.false(ok);
  t.is(
    message,
    'Not only the key of the file is in use (enforce, key 0123abcd): the peer does not have this key yet',
  );
  t.regex((await takeKey(vrrp, false, fastClock())).message, /vrrpKey names no file/);
  t.regex((await takeKey(undefined, true, fastClock())).message, /no VRRP/);
});
