import test from 'ava';
import {
  fallbackBackend,
  isListener,
  keyOf,
  labelsOfListener,
  listenerName,
  listenerOfBackend,
  listenersIn,
  type Owner,
  objectOf,
  ownerOf,
  ownerOfListener,
} from '../../../agent/model/names.ts';

const OWNERS: readonly (readonly [owner: Owner, key: string, object: string, listener: string])[] = [
  [
    { kind: 'Service', namespace: 'default', name: 'web' },
    'default/web',
    'Service default/web',
    'default:web:tcp:80:v4',
  ],
  [
    { kind: 'Gateway', namespace: 'default', name: 'edge.example' },
    'gateway:default/edge.example',
    'Gateway default/edge.example',
    'gateway:default:edge.example:tcp:80:v4',
  ],
  [
    { kind: 'Ingress', namespace: '-', name: 'edge' },
    'ingress:-/edge',
    'IngressClass edge',
    'ingress:-:edge:tcp:80:v4',
  ],
  // Namespaces and Services can have the names of other kinds of owners.
  [
    { kind: 'Service', namespace: 'gateway', name: 'tcp' },
    'gateway/tcp',
    'Service gateway/tcp',
    'gateway:tcp:tcp:80:v4',
  ],
];

for (const [owner, key, object, listener] of OWNERS) {
  test(`The key and the names of listeners of the ${object} are parsed back to it`, (t) => {
    t.is(keyOf(owner), key);
    t.deepEqual(ownerOf(key), owner);
    t.is(objectOf(key), object);
    t.is(listenerName(owner, { protocol: 'TCP', port: 80 }, 'v4'), listener);
    t.is(ownerOfListener(listener), key);
    t.is(listenerOfBackend(fallbackBackend(listener)), listener);
    t.is(listenerOfBackend(listener), listener);
    t.deepEqual(labelsOfListener(listener), {
      namespace: owner.namespace,
      service: owner.name,
      port: '80',
      protocol: 'TCP',
      family: 'v4',
    });
  });
}

test("A name that is not a listener's has no owner", (t) => {
  for (const name of [
    '',
    'stats',
    'a:b:tcp:80',
    'a:b:tcp:80:v5',
    'default:web:tcp:80:v4:all-down',
    'a:b:icmp:1:v4',
  ]) {
    t.false(isListener(name));
    t.is(ownerOfListener(name), '');
    t.is(labelsOfListener(name), undefined);
  }
});

test('listenersIn() finds all names of listeners in a text', (t) => {
  const alert = "Proxy 'a:b:tcp:80:v4': unable to find required use_backend: 'c:d:udp:53:v6:all-down'.";
  t.deepEqual(listenersIn(alert), ['a:b:tcp:80:v4', 'c:d:udp:53:v6']);
  t.deepEqual(listenersIn('parsing [/etc/haproxy/haproxy.cfg:12] : error'), []);
});
