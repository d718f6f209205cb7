import test from 'ava';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { VipBook } from '../../../agent/vips/vip-book.ts';

function having(...addresses: readonly string[]): LoadBalancer {
  const vips = addresses.map((address) => ({ address, family: 'v4', source: 'status' }) as const);
  return {
    kind: 'LoadBalancer',
    key: 'default/web',
    namespace: 'default',
    name: 'web',
    vips,
    listeners: [],
    problems: [],
  };
}

test('VipBook reports if an address has become a VIP or has stopped being one', (t) => {
  const book = new VipBook();
  t.true(book.update('default/a', having('192.0.2.1', '192.0.2.2')));
  t.false(book.update('default/a', having('192.0.2.1', '192.0.2.2')));
  t.false(book.update('default/a', having('192.0.2.2', '192.0.2.1')));
  t.true(book.update('default/a', having('192.0.2.2')));
  t.deepEqual([...book.addresses()], ['192.0.2.2']);
  t.true(book.update('default/a', undefined));
  t.deepEqual([...book.addresses()], []);
  t.false(book.update('default/a', undefined));
});

test('VipBook keeps an address until the last Service that shares it is gone', (t) => {
  const book = new VipBook();
  t.true(book.update('default/a', having('192.0.2.1')));
  t.false(book.update('default/b', having('192.0.2.1', '192.0.2.1')));
  t.false(book.update('default/a', undefined));
  t.deepEqual([...book.addresses()], ['192.0.2.1']);
  t.true(book.update('default/b', undefined));
});
