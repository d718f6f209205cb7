import test from 'ava';
import { PoolUses } from '../../../agent/model/pool-uses.ts';

const use = (name: string, port: number) => ({ pool: `pool:default/${name}`, port });

test('A pool has the ports that any owner uses', (t) => {
  const uses = new PoolUses();
  t.deepEqual([...uses.update('gateway:default/a', [use('web', 80), use('api', 443)])].sort(), [
    'pool:default/api',
    'pool:default/web',
  ]);
  t.deepEqual([...uses.update('gateway:default/b', [use('web', 80), use('web', 81)])], ['pool:default/web']);
  t.deepEqual(uses.portsOf('pool:default/web'), [80, 81]);
  t.deepEqual(uses.portsOf('pool:default/api'), [443]);
});

test('A pool has the certificate of its uses until the last one goes', (t) => {
  const uses = new PoolUses();
  const certificate = 'default/edge';
  uses.update('gateway:default/a', [{ ...use('web.crt', 80), certificate }, use('web', 80)]);
  uses.update('gateway:default/b', [{ ...use('web.crt', 80), certificate }]);
  t.is(uses.certificateOf('pool:default/web.crt'), certificate);
  t.is(uses.certificateOf('pool:default/web'), undefined);
  uses.update('gateway:default/a', []);
  t.is(uses.certificateOf('pool:default/web.crt'), certificate);
  uses.update('gateway:default/b', []);
  t.is(uses.certificateOf('pool:default/web.crt'), undefined);
});

test('A pool loses a port with its last user, and is not reported if nothing changed', (t) => {
  const uses = new PoolUses();
  uses.update('gateway:default/a', [use('web', 80)]);
  uses.update('gateway:default/b', [use('web', 80)]);
  t.is(uses.update('gateway:default/a', []).size, 0);
  t.is(uses.update('gateway:default/b', [use('web', 80)]).size, 0);
  t.deepEqual(uses.portsOf('pool:default/web'), [80]);
  t.deepEqual([...uses.update('gateway:default/b', [])], ['pool:default/web']);
  t.deepEqual(uses.portsOf('pool:default/web'), []);
});
