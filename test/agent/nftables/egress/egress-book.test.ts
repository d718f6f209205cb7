import test from 'ava';
import { EgressBook } from '../../../../agent/nftables/egress/egress-book.ts';

const VIP = '192.0.2.1';
const OTHER = '192.0.2.2';

function egress(vip: string, pods: readonly string[], created = 1) {
  return {
    egress: {
      created,
      addresses: { v4: vip },
      pods: pods.map((address) => ({ address, family: 'v4' as const, target: '' })),
    },
  };
}

test('EgressBook gives the pods that leave from another VIP than before', (t) => {
  const book = new EgressBook();
  t.deepEqual(
    [...book.update('shop/web', egress(VIP, ['10.0.0.1', '10.0.0.2'])).pods],
    ['10.0.0.1', '10.0.0.2'],
  );
  t.deepEqual(
    [...book.update('shop/web', egress(VIP, ['10.0.0.2', '10.0.0.3'])).pods],
    ['10.0.0.1', '10.0.0.3'],
  );
  t.is(book.mappingOf('10.0.0.1'), undefined);
  t.is(book.mappingOf('10.0.0.2')?.vip, VIP);
  t.deepEqual(
    [...book.update('shop/web', egress(OTHER, ['10.0.0.2', '10.0.0.3'])).pods],
    ['10.0.0.2', '10.0.0.3'],
  );
  t.deepEqual([...book.update('shop/web', undefined).pods], ['10.0.0.2', '10.0.0.3']);
  t.true(book.isEmpty);
  t.is(book.size, 0);
});

test('EgressBook gives a pod to the oldest Service in whatever order they come, then to the first by name', (t) => {
  const claims = [
    ['shop/young', egress(OTHER, ['10.0.0.1'], 3)],
    ['shop/b', egress(OTHER, ['10.0.0.1'], 2)],
    ['shop/a', egress(VIP, ['10.0.0.1'], 2)],
  ] as const;
  for (const order of [claims, claims.toReversed()]) {
    const book = new EgressBook();
    for (const [key, value] of order) book.update(key, value);
    t.is(book.mappingOf('10.0.0.1')?.owner, 'shop/a');
    t.deepEqual(
      book.lostBy('shop/young').map(({ owner }) => owner),
      ['shop/a'],
    );
  }
});

test('EgressBook names the Services that win or lose a pod by the change of another', (t) => {
  const book = new EgressBook();
  book.update('shop/web', egress(VIP, ['10.0.0.1'], 2));
  t.deepEqual([...book.update('shop/old', egress(OTHER, ['10.0.0.1'], 1)).affected], ['shop/web']);
  t.deepEqual(
    [...book.pods()].map(({ owner, pods }) => [owner, pods]),
    [
      ['shop/web', 0],
      ['shop/old', 1],
    ],
  );
  t.deepEqual([...book.update('shop/old', undefined).affected], ['shop/web']);
  t.is(book.mappingOf('10.0.0.1')?.vip, VIP);
});

test('EgressBook keeps the VIPs of Services without pods, whose counters continue', (t) => {
  const book = new EgressBook();
  book.update('shop/web', egress(VIP, []));
  t.deepEqual([...book.vips()], [VIP]);
});
