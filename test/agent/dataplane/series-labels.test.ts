import test from 'ava';
import { listenerSeries, loadBalancerSeries, memberSeries } from '../../../agent/dataplane/series-labels.ts';
import type { ListenerLabels, Member } from '../../../agent/model/load-balancer.ts';

const LABELS: ListenerLabels = {
  namespace: 'shop',
  service: 'web',
  port: '80',
  protocol: 'TCP',
  family: 'v4',
};
const LISTENER = { name: 'shop:web:tcp:80:v4', labels: LABELS };
const SERVICE = 'namespace="shop",service="web",port="80",protocol="TCP"';

test('loadBalancerSeries() names the Service', (t) => {
  t.is(loadBalancerSeries('shop/web'), 'namespace="shop",service="web"');
});

test('listenerSeries() names the Service, its port and the family', (t) => {
  t.is(listenerSeries(LISTENER), `${SERVICE},family="v4"`);
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
    t.is(memberSeries(LISTENER, '10.0.0.1:8080', member), `${SERVICE}${behind},address="10.0.0.1:8080"`);
  },
  title: (what) => `memberSeries() ${what}`,
});

test('names the pod', labelled, 'Pod/web-1', ',pod="web-1"');
test('names the node if nodes are the members', labelled, 'Node/n1', ',node="n1"');
test('names neither if it is not known what is behind the address', labelled, '', '');
test('names neither for a server that the model does not have', labelled, undefined, '');

test('Owners other than Services have a label of their own, so that no two have the same series', (t) => {
  const owned = (name: string): string => listenerSeries({ name, labels: LABELS }).slice(SERVICE.length);
  t.is(owned('gateway:shop:web:tcp:80:v4'), ',family="v4",owner="gateway"');
  t.is(owned('pool:shop:web:tcp:80:v4'), ',family="v4",owner="pool"');
  t.is(owned('pool:shop:web.grpc:tcp:80:v4'), ',family="v4",owner="pool",profile="grpc"');
  t.is(loadBalancerSeries('gateway:shop/web'), 'namespace="shop",service="web",owner="gateway"');
});
