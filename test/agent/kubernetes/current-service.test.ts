import test from 'ava';
import { CurrentServices } from '../../../agent/kubernetes/current-service.ts';

const json = (key: string, uid = `uid-${key}`, resourceVersion = '1') => {
  const [namespace, name] = key.split('/');
  return { metadata: { namespace, name, uid, resourceVersion }, spec: { type: 'LoadBalancer' } };
};

test('CurrentServices has the newest version, and deletes by UID only', (t) => {
  const services = new CurrentServices();
  t.is(services.put(json('a/web', 'old')), 'a/web');
  services.put(json('a/web', 'new', '2'));
  services.delete({ key: 'a/web', uid: 'old' });
  t.is(services.get('a/web')?.resourceVersion, '2');
  services.delete({ key: 'a/web', uid: 'new' });
  t.is(services.get('a/web'), undefined);
  t.is(services.put({ metadata: {} }), undefined);
  t.is(services.size, 0);
});

test('listed() removes Services that the list lacks or has with another UID', (t) => {
  const services = new CurrentServices();
  for (const key of ['a/stays', 'a/gone', 'a/other', 'b/elsewhere']) services.put(json(key));
  const known = [
    { key: 'a/stays', uid: 'uid-a/stays' },
    { key: 'a/other', uid: 'created-again' },
  ];
  services.listed('a', known);
  t.deepEqual(
    ['a/stays', 'a/gone', 'a/other', 'b/elsewhere'].filter((key) => services.get(key) !== undefined),
    ['a/stays', 'b/elsewhere'],
  );
  services.listed('', known);
  t.is(services.size, 1);
});
