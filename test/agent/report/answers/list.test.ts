import test from 'ava';
import { Cluster } from '../../../../agent/kubernetes/cluster.ts';
import { parseObject } from '../../../../agent/kubernetes/parse-object.ts';
import { keyOf, NO_NAMESPACE, type Owner } from '../../../../agent/model/names.ts';
import { listLoadBalancers } from '../../../../agent/report/answers/list.ts';
import type { LoadBalancerRow } from '../../../../agent/report/answers/load-balancer-row.ts';

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
  ];
  const rows = owners.map((owner) => ({ key: keyOf(owner), problems: [] }) as unknown as LoadBalancerRow);
  const listed = await listLoadBalancers(
    { update: async () => undefined, worstFirst: async (isWanted) => rows.filter(isWanted) },
    { cluster } as Parameters<typeof listLoadBalancers>[1],
    undefined,
  );
  const created = new Date(CREATED).toISOString();
  t.deepEqual(
    listed.map((each) => each.created),
    [created, '', created, created],
  );
});
