// A Service and its endpoints in the form that users and Kubernetes write, for tests with real traffic.

export type Json = Readonly<Record<string, unknown>>;

/** The ports of VIPs and members; they are always free, because each test has its own addresses. */
export const VIP_PORT = 17_080;
export const MEMBER_PORT = 17_090;

export interface Endpoint {
  readonly address: string;
  /** The endpoint terminates but still serves. */
  readonly terminating?: boolean;
  /** The name of its pod. */
  readonly pod?: string;
}

export interface Web {
  readonly name?: string;
  readonly namespace?: string;
  /** The VIP. */
  readonly address: string;
  readonly port?: number;
  /** The name of the port in both objects. */
  readonly portName?: string;
  /** The Service's creationTimestamp. */
  readonly created?: string;
  readonly members: readonly (string | Endpoint)[];
  readonly annotations?: Readonly<Record<string, string>>;
  /** Additional fields of the Service's spec. */
  readonly spec?: Json;
}

/** A Service `default/web` and its EndpointSlice. The names of annotations are without `headgate.io/`. */
export function webObjects({
  name = 'web',
  namespace = 'default',
  address,
  port = VIP_PORT,
  portName,
  created,
  members,
  annotations = {},
  spec = {},
}: Web): readonly Json[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name,
        namespace,
        creationTimestamp: created,
        annotations: Object.fromEntries(
          Object.entries(annotations).map(([key, value]) => [`headgate.io/${key}`, value]),
        ),
      },
      spec: {
        type: 'LoadBalancer',
        loadBalancerIP: address,
        ports: [{ name: portName, port, protocol: 'TCP', targetPort: MEMBER_PORT }],
        ...spec,
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `${name}-1`,
        namespace,
        labels: { 'kubernetes.io/service-name': name },
      },
      addressType: addressesOf(members)[0]?.includes(':') ? 'IPv6' : 'IPv4',
      ports: [{ name: portName, port: MEMBER_PORT, protocol: 'TCP' }],
      endpoints: members.map((member) => {
        const {
          address: own,
          terminating = false,
          pod,
        } = typeof member === 'string' ? { address: member } : member;
        const targetRef = pod === undefined ? undefined : { kind: 'Pod', name: pod };
        return {
          addresses: [own],
          conditions: { ready: !terminating, serving: true, terminating },
          targetRef,
        };
      }),
    },
  ];
}

function addressesOf(members: Web['members']): readonly string[] {
  return members.map((member) => (typeof member === 'string' ? member : member.address));
}
