// Which of Kubernetes' own end-to-end tests run against Headgate, by what they ask of a load balancer, and why the others
// of the same groups do not. Names are those of the tests without their tags in brackets.

import { CLUSTER_PROGRAMS } from '../support/kube/whole-cluster.ts';

/** Programs of kube-assets.sh. */
export const PROGRAMS = [
  ...CLUSTER_PROGRAMS,
  'kube-proxy',
  'kubectl',
  'agnhost',
  'e2e.test',
  'ginkgo',
] as const;

/** Which addresses the tests use. */
export type Kind = 'load-balancer' | 'cluster-ip' | 'client-address';

export interface Role {
  readonly name: string;
  readonly kind: Kind;
  /** Settings of Headgate, beside its folders, the cluster and the pool. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Pods send what leaves their node through Headgate's host. */
  readonly isGateway?: boolean;
}

/** What Headgate is in a run. */
export const ROLES: readonly Role[] = [
  { name: 'load balancer to pods', kind: 'load-balancer', settings: { members: 'pods' } },
  { name: 'load balancer to nodes', kind: 'load-balancer', settings: { members: 'nodes' } },
  { name: 'cluster IPs', kind: 'cluster-ip', settings: { clusterIPs: true, externalIPs: true } },
  {
    name: 'gateway mode',
    kind: 'client-address',
    settings: { clusterIPs: true, defaults: { engine: 'kernel', 'source-address': 'client' } },
    isGateway: true,
  },
];

export interface Chapter {
  readonly title: string;
  readonly tests: Readonly<Partial<Record<Kind, readonly string[]>>>;
}

/** The tests of a role, in the order of the chapters. */
export function testsOf({ kind }: Role): readonly string[] {
  return CHAPTERS.flatMap(({ tests }) => tests[kind] ?? []);
}

/** Every test of these groups is in a chapter or left out with a reason. */
export const GROUPS = [
  'LoadBalancers',
  'Services',
  'Conntrack',
  'Networking Granular Checks: Services',
] as const;

export const CHAPTERS: readonly Chapter[] = [
  {
    title: 'Change of type, ports and protocol',
    tests: {
      'load-balancer': [
        'LoadBalancers should be able to change the type and ports of a TCP service',
        'LoadBalancers should be able to change the type and ports of a UDP service',
        'LoadBalancers should be able to create LoadBalancer Service without NodePort and change it',
        'LoadBalancers should handle load balancer cleanup finalizer for service',
        'Services should complete a service status lifecycle',
      ],
      'cluster-ip': [
        'Services should be able to change the type from ClusterIP to ExternalName',
        'Services should be able to change the type from ExternalName to ClusterIP',
        'Services should be able to change the type from ExternalName to NodePort',
        'Services should be able to change the type from NodePort to ExternalName',
        'Services should be able to up and down services',
        'Services should be able to update service type to NodePort listening on same port number but different protocols',
        'Services should be updated after adding or deleting ports',
        'Services should work after the service has been recreated',
      ],
    },
  },
  {
    title: 'Source ranges',
    tests: {
      'load-balancer': ['LoadBalancers should only allow access from service loadbalancer source ranges'],
    },
  },
  {
    title: 'Session affinity and its timeout',
    tests: {
      'load-balancer': [
        'LoadBalancers should be able to switch session affinity for LoadBalancer service with Cluster traffic policy',
        'LoadBalancers should be able to switch session affinity for LoadBalancer service with Local traffic policy',
        'LoadBalancers should have session affinity work for LoadBalancer service with Cluster traffic policy',
        'LoadBalancers should have session affinity work for LoadBalancer service with Local traffic policy',
      ],
      'cluster-ip': [
        'Networking Granular Checks: Services should function for client IP based session affinity: http',
        'Networking Granular Checks: Services should function for client IP based session affinity: udp',
        'Services should be able to switch session affinity for service with type clusterIP',
        'Services should have session affinity timeout work for service with type clusterIP',
        'Services should have session affinity work for service with type clusterIP',
      ],
      'client-address': [
        'LoadBalancers should be able to switch session affinity for LoadBalancer service with Cluster traffic policy',
        'LoadBalancers should have session affinity work for LoadBalancer service with Cluster traffic policy',
        'Services should have session affinity work for service with type clusterIP',
      ],
    },
  },
  {
    title: 'externalTrafficPolicy: Local, health check ports',
    tests: {
      'load-balancer': [
        'LoadBalancers ExternalTrafficPolicy: Local should only target nodes with endpoints',
        'LoadBalancers ExternalTrafficPolicy: Local should target all nodes with endpoints',
        'LoadBalancers ExternalTrafficPolicy: Local should work for type=LoadBalancer',
        'LoadBalancers ExternalTrafficPolicy: Local should work from pods',
        'Services should fail health check node port if there are only terminating endpoints',
        'Services should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes',
      ],
      'client-address': [
        'LoadBalancers ExternalTrafficPolicy: Local should only target nodes with endpoints',
        'LoadBalancers ExternalTrafficPolicy: Local should work for type=LoadBalancer',
        'LoadBalancers ExternalTrafficPolicy: Local should work from pods',
      ],
    },
  },
  {
    title: 'Terminating endpoints',
    tests: {
      'load-balancer': [
        'LoadBalancers should not have connectivity disruption during rolling update with externalTrafficPolicy=Cluster',
        'LoadBalancers should not have connectivity disruption during rolling update with externalTrafficPolicy=Local',
      ],
      'cluster-ip': [
        'Services should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true',
        'Services should create endpoints for unready pods',
        'Services should fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster',
        'Services should not be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is false',
      ],
    },
  },
  {
    title: 'Mixed protocols',
    tests: {
      'cluster-ip': [
        'Services should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer',
        'Services should serve endpoints on same port and different protocols',
      ],
    },
  },
  {
    title: 'No ready endpoints',
    tests: {
      'cluster-ip': [
        'Conntrack should be able to preserve UDP traffic when initial unready endpoints get ready',
        'Services should be rejected when no endpoints exist',
      ],
    },
  },
  {
    title: 'UDP through changes of members',
    tests: {
      'load-balancer': [
        'LoadBalancers should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes',
        'LoadBalancers should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on the same nodes',
      ],
      'cluster-ip': [
        'Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service',
        'Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service and client is hostNetwork',
        'Networking Granular Checks: Services should be able to handle large requests: udp',
      ],
    },
  },
  {
    title: 'Which members, ports and addresses',
    tests: {
      'cluster-ip': [
        'EndpointSlice should support a Service with multiple endpoint IPs specified in multiple EndpointSlices',
        'EndpointSlice should support a Service with multiple ports specified in multiple EndpointSlices',
        'Networking Granular Checks: Services should be able to handle large requests: http',
        'Networking Granular Checks: Services should function for endpoint-Service: http',
        'Networking Granular Checks: Services should function for endpoint-Service: udp',
        'Networking Granular Checks: Services should function for multiple endpoint-Services with same selector',
        'Networking Granular Checks: Services should function for pod-Service: http',
        'Networking Granular Checks: Services should function for pod-Service: udp',
        'Networking Granular Checks: Services should function for service endpoints using hostNetwork',
        'Networking Granular Checks: Services should update endpoints: http',
        'Networking Granular Checks: Services should update endpoints: udp',
        'Services should allow pods to hairpin back to themselves through services',
        'Services should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node',
        'Services should implement service.kubernetes.io/headless',
        'Services should implement service.kubernetes.io/service-proxy-name',
        'Services should serve a basic endpoint from pods',
        'Services should serve multiport endpoints from pods',
        'Services should support named targetPorts that resolve to different ports on different endpoints',
      ],
      'client-address': [
        'Services should allow pods to hairpin back to themselves through services',
        'Services should preserve source pod IP for traffic thru service cluster IP',
      ],
    },
  },
];

/** Tests that fail or skip themselves because Headgate differs on purpose, or for now: name → in what. */
export const DIFFERENCES: Readonly<Record<string, string>> = {
  'LoadBalancers ExternalTrafficPolicy: Local should work for type=LoadBalancer':
    'Traffic passes through HAProxy, which the ipMode says: a member sees the address of the load balancer.',
  'LoadBalancers ExternalTrafficPolicy: Local should work from pods':
    'Traffic passes through HAProxy, which the ipMode says: a member sees the address of the load balancer.',
};

/** undefined if the test must pass. In gateway mode traffic passes no HAProxy, and the client's address stays. */
export function differenceOf(roleName: string, test: string): string | undefined {
  const role = ROLES.find(({ name }) => name === roleName);
  return role?.isGateway === true ? undefined : DIFFERENCES[test];
}

export interface LeftOut {
  readonly why: string;
  readonly tests: readonly string[];
}

export const LEFT_OUT: readonly LeftOut[] = [
  {
    why: 'Their traffic goes to node ports only, which are kube-proxy’s.',
    tests: [
      'Conntrack should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service',
      'Conntrack should be able to preserve UDP traffic when server pod cycles for a NodePort service',
      'Networking Granular Checks: Services should function for node-Service: http',
      'Networking Granular Checks: Services should function for node-Service: udp',
      'Networking Granular Checks: Services should support basic nodePort: udp functionality',
      'Networking Granular Checks: Services should update nodePort: http',
      'Networking Granular Checks: Services should update nodePort: udp',
      'Services should be able to create a functioning NodePort service',
      'Services should be able to switch session affinity for NodePort service',
      'Services should fallback to local terminating endpoints when there are no ready endpoints with externalTrafficPolicy=Local',
      'Services should fallback to terminating endpoints when there are no ready endpoints with externallTrafficPolicy=Cluster',
      'Services should have session affinity timeout work for NodePort service',
      'Services should have session affinity work for NodePort service',
      'Services should support externalTrafficPolicy=Local for type=NodePort',
    ],
  },
  {
    why: 'They ask the API server only, and send no traffic.',
    tests: [
      'Services should allow creating a basic SCTP service with pod and endpoints',
      'Services should check NodePort out-of-range',
      'Services should delete a collection of services',
      'Services should find a service from listing all namespaces',
      'Services should prevent NodePort collisions',
      'Services should release NodePorts on delete',
    ],
  },
  {
    why: 'internalTrafficPolicy: Local asks for members on the client’s own node, and a load balancer outside is on none.',
    tests: [
      'Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service with InternalTrafficPolicy set to Local',
      'Services should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local',
      'Services should respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod',
      'Services should respect internalTrafficPolicy=Local Pod and Node, to Pod (hostNetwork: true)',
      'Services should respect internalTrafficPolicy=Local Pod to Pod',
    ],
  },
  {
    why: 'The kubelet of these tests has neither eviction nor init containers, and no image but agnhost.',
    tests: [
      'Conntrack proxy implementation should not be vulnerable to the invalid conntrack state bug',
      'Services should be rejected for evicted pods (no endpoints exist)',
      'Services should connect to the named ports exposed by restartable init containers',
      'Services should connect to the ports exposed by restartable init containers',
    ],
  },
  {
    why: 'They restart parts of the cluster by SSH.',
    tests: [
      'Services should work after restarting apiserver',
      'Services should work after restarting kube-proxy',
    ],
  },
  {
    why: 'The kernel of this machine has no SCTP.',
    tests: [
      'Networking Granular Checks: Services should function for endpoint-Service: sctp',
      'Networking Granular Checks: Services should function for node-Service: sctp',
      'Networking Granular Checks: Services should function for pod-Service: sctp',
    ],
  },
];
