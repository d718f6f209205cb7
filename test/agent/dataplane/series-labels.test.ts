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
const SERVICE = 'namespace="shop",service="web",port="80",protocol="TCP"';

test('loadBalancerSeries() names the Service', (t) => {
  t.is(loadBalancerSeries('shop/web'), 'namespace="shop",service="web"');
});

test('listenerSeries() names the Service, its port and the family', (t) => {
  t.is(listenerSeries(LABELS), `${SERVICE},family="v4"`);
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
    t.is(memberSeries(LABELS, '10.0.0.1:8080', member), `${SERVICE}${behind},address="10.0.0.1:8080"`);
  },
  title: (what) => `memberSeries() ${what}`,
});

test('names the pod', labelled, 'Pod/web-1', ',pod="web-1"');
test('names the node if nodes are the members', labelled, 'Node/n1', ',node="n1"');
test('names neither if it is not known what is behind the address', labelled, '', '');
test('names neither for a server that the model does not have', labelled, undefined, '');
