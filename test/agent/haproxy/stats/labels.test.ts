import test from 'ava';
import { listenerLabels, memberLabels } from '../../../../agent/haproxy/stats/labels.ts';
import type { Member } from '../../../../agent/model/load-balancer.ts';

const LISTENER = 'shop:web:tcp:80:v4';
const SERVICE = 'namespace="shop",service="web",port="80",protocol="TCP"';

test('listenerLabels() names the Service, its port and the family', (t) => {
  t.is(listenerLabels(LISTENER), `${SERVICE},family="v4"`);
});

const labelled = test.macro({
  exec(t, target: string | undefined, behind: string) {
    const member: Member | undefined =
      target === undefined
        ? undefined
        : {
            name: '10.0.0.1:8080',
            id: 1,
            address: '10.0.0.1',
            port: 8080,
            weight: 16,
            state: 'ready',
            target,
          };
    t.is(memberLabels(LISTENER, '10.0.0.1:8080', member), `${SERVICE}${behind},address="10.0.0.1:8080"`);
  },
  title: (what) => `memberLabels() ${what}`,
});

test('names the pod', labelled, 'Pod/web-1', ',pod="web-1"');
test('names the node where nodes are the members', labelled, 'Node/n1', ',node="n1"');
test('names neither where nobody says what is behind the address', labelled, '', '');
test('names neither for a server that the model does not have', labelled, undefined, '');
