import test from 'ava';
import { Cluster } from '../../../../agent/kubernetes/cluster.ts';
import { parseObject } from '../../../../agent/kubernetes/parse-object.ts';
import { emptyDesiredState } from '../../../../agent/model/desired-state.ts';
import { keyOf, NO_NAMESPACE, type Owner } from '../../../../agent/model/names.ts';
import { listLoadBalancers, namesOf, namespacesOf } from '../../../../agent/report/answers/list.ts';
import type { LoadBalancerSummary } from '../../../../agent/report/answers/load-balancer-summary.ts';
import { service } from '../../../support/values/build.ts';
import { translated } from '../../../support/values/translated.ts';

const CREATED = '2026-11-26T08:00:00Z';

function objectOf(apiVersion: string, kind: string, name: string, spec: object, created?: string): unknown {
  return { apiVersion, kind, metadata: { name, namespace: 'shop', creationTimestamp: created }, spec };
}

test('listLoadBalancers() tells when Services, Gateways and Ingress classes were created, and nothing of what does not say so', async (t) => {
  const cluster = new Cluster();
  const service = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  const gateway = {
    gatewayClassName: 'headgate',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  };
  const { objects, problems } = parseObject(
    {
      apiVersion: 'v1',
      kind: 'List',
      items: [
        objectOf('v1', 'Service', 'web', service, CREATED),
        objectOf('v1', 'Service', 'old', service),
        objectOf('gateway.networking.k8s.io/v1', 'Gateway', 'edge', gateway, CREATED),
        {
          apiVersion: 'networking.k8s.io/v1',
          kind: 'IngressClass',
          metadata: { name: 'edge', creationTimestamp: CREATED },
          spec: { controller: 'headgate.io/agent' },
        },
      ],
    },
    '',
  );
  t.deepEqual(problems, []);
  cluster.apply({ upserted: objects, removed: [] }, 'api');
  const owners: readonly Owner[] = [
    { kind: 'Service', namespace: 'shop', name: 'web' },
    { kind: 'Service', namespace: 'shop', name: 'old' },
    { kind: 'Gateway', namespace: 'shop', name: 'edge' },
    { kind: 'Ingress', namespace: NO_NAMESPACE, name: 'edge' },
    // Folded into the Gateway whose routes send to it.
    { kind: 'Pool', namespace: 'apps', name: 'web' },
  ];
  const rows = owners.map(
    (owner) => ({ key: keyOf(owner), problems: [], poolProblems: 2 }) as unknown as LoadBalancerSummary,
  );
  const desired = emptyDesiredState();
  desired.poolUses.update('gateway:shop/edge', [{ pool: 'pool:apps/web', port: 80 }]);
  const list = (namespace?: string) =>
    listLoadBalancers(
      { update: async () => undefined, worstFirst: async (isWanted) => rows.filter(isWanted) },
      { cluster, desired },
      { namespace, hasPools: false },
    );
  const listed = await list();
  t.is(listed[0]?.problems, 2, 'those of the pools of its routes');
  t.false('poolProblems' in (listed[0] ?? {}));
  t.deepEqual(
    (await list('apps')).map(({ key }) => key),
    ['gateway:shop/edge'],
    'a Gateway that sends to the namespace',
  );
  const created = new Date(CREATED).toISOString();
  t.deepEqual(
    listed.map((each) => each.created),
    [created, '', created, created],
  );
});

test('namesOf() offers load balancers and routes in the order of people, and no Services of others', (t) => {
  const desired = emptyDesiredState();
  for (const name of ['new-10', 'new-2', 'new-1'])
    for (const [key, each] of translated([service({ name })]).loadBalancers)
      desired.loadBalancers.set(key, each);
  desired.ignored.set('other/db', { kind: 'Ignored', key: 'other/db', reason: 'It is of type ClusterIP' });
  const route = {
    kind: 'HTTPRoute',
    namespace: 'shop',
    name: 'api',
    uid: '',
    generation: 1,
    parents: [],
  } as const;
  desired.statuses.update('gateway:shop/edge', [route]);
  t.deepEqual(namesOf({ desired }, ''), [
    'HTTPRoute/shop/api',
    'default/new-1',
    'default/new-2',
    'default/new-10',
  ]);
  t.deepEqual(namesOf({ desired }, 'HTTP'), ['HTTPRoute/shop/api']);
  t.deepEqual(namesOf({ desired }, 'other/'), []);
  t.deepEqual(namespacesOf({ desired }, ''), ['default']);
});
