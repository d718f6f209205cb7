// A Service of a real API server with reachable members: pods of a real cluster cannot have loopback addresses, but
// Nodes can, so its traffic goes to node ports of Nodes, which are small servers on the host's own addresses.

import type { ExecutionContext } from 'ava';
import type { TestHost } from '../host/agent.ts';
import { startMember } from '../traffic/members.ts';
import { VIP_PORT } from '../values/service-objects.ts';
import type { Kube } from './kube.ts';
import { servicePath } from './kube-objects.ts';

const NODE_PORT = 31_080;

export const nodePath = (name = '') => `/api/v1/nodes${name === '' ? '' : `/${name}`}`;

/** At address 1, with the Nodes n1 to n3 at addresses 11 to 13; removed after the test. One Service at a time. */
export async function createNodeService(
  t: ExecutionContext<unknown>,
  kube: Kube,
  host: TestHost,
  name: string,
  spec: object = {},
): Promise<void> {
  await kube.must('DELETE', nodePath());
  for (const [at, node] of ['n1', 'n2', 'n3'].entries()) {
    const member = await startMember(host.address(11 + at), NODE_PORT);
    t.teardown(member.kill);
    const addresses = [{ type: 'InternalIP', address: member.address }];
    await kube.must('POST', nodePath(), { metadata: { name: node }, status: { addresses } });
  }
  await kube.must('POST', servicePath('default'), {
    metadata: {
      name,
      annotations: { 'headgate.io/load-balancer-ips': host.address(1), 'headgate.io/members': 'nodes' },
    },
    spec: {
      type: 'LoadBalancer',
      ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP', nodePort: NODE_PORT }],
      ...spec,
    },
  });
  t.teardown(async () => {
    await kube.api('DELETE', servicePath('default', name));
    // Its node port must be free for the next Service.
    await kube.api('PATCH', servicePath('default', name), { metadata: { finalizers: null } });
  });
}
