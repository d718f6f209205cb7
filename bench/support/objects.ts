// Builds any number of Services and EndpointSlices as a cluster holds them, as values and as the YAML that
// `kubectl get -o yaml` prints. Every VIP and pod is in 127.0.0.0/8, so that no packet leaves the machine.

export interface ServiceSpec {
  /** From 0; the name and usually the VIP follow from it. */
  readonly index: number;
  readonly vip: string;
  readonly port: number;
  readonly members: readonly MemberSpec[];
  /** Without `headgate.io/`. */
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface MemberSpec {
  readonly address: string;
  readonly port: number;
  /** A terminating member still answers. */
  readonly terminating?: boolean;
}

type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value };

/** Addresses of one run; two runs at the same time rarely use the same ones. */
export class Addresses {
  readonly #run: number;

  /** All processes of one run have the same `BENCH_RUN`. */
  constructor(run = Number(process.env.BENCH_RUN ?? process.pid)) {
    this.#run = run % 32;
  }

  /** The VIP of the Service with that index. */
  vip(index: number): string {
    return `127.${10 + this.#run}.${index >> 8}.${index & 255}`;
  }

  /** The address of the n-th pod. Nothing answers there unless a process listens on all addresses of the port. */
  pod(n: number): string {
    return `127.${100 + this.#run * 4 + ((n >> 16) & 3)}.${(n >> 8) & 255}.${n & 255}`;
  }
}

/** `count` Services with `size` members each, all on `memberPort`. */
export function services(
  addresses: Addresses,
  count: number,
  size: number,
  { port = 8080, memberPort = 9000, from = 0 } = {},
): ServiceSpec[] {
  return Array.from({ length: count }, (_, at) => {
    const index = from + at;
    const members = Array.from({ length: size }, (_, n) => ({
      address: addresses.pod(index * size + n),
      port: memberPort,
    }));
    return { index, vip: addresses.vip(index), port, members };
  });
}

export function nameOf({ index }: Pick<ServiceSpec, 'index'>): string {
  return `service-${String(index).padStart(5, '0')}`;
}

export function serviceObject(spec: ServiceSpec): { readonly [key: string]: Value } {
  const name = nameOf(spec);
  const annotations = Object.entries(spec.annotations ?? {});
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      ...(annotations.length > 0 && {
        annotations: Object.fromEntries(annotations.map(([key, value]) => [`headgate.io/${key}`, value])),
      }),
      creationTimestamp: '2026-11-20T08:00:00Z',
      labels: { app: name, 'app.kubernetes.io/part-of': 'bench' },
      name,
      namespace: 'bench',
      resourceVersion: String(100_000 + spec.index),
      uid: uidOf(1, spec.index),
    },
    spec: {
      allocateLoadBalancerNodePorts: false,
      clusterIP: `10.96.${spec.index >> 8}.${spec.index & 255}`,
      clusterIPs: [`10.96.${spec.index >> 8}.${spec.index & 255}`],
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      loadBalancerClass: 'headgate.io/agent',
      loadBalancerIP: spec.vip,
      ports: [{ name: 'http', port: spec.port, protocol: 'TCP', targetPort: 'http' }],
      selector: { app: name },
      sessionAffinity: 'None',
      type: 'LoadBalancer',
    },
    status: { loadBalancer: {} },
  };
}

export function sliceObject(spec: ServiceSpec): { readonly [key: string]: Value } {
  const name = nameOf(spec);
  return {
    addressType: 'IPv4',
    apiVersion: 'discovery.k8s.io/v1',
    endpoints: spec.members.map(({ address, terminating = false }, at) => ({
      addresses: [address],
      conditions: { ready: !terminating, serving: true, terminating },
      nodeName: `node-${at % 16}`,
      targetRef: {
        kind: 'Pod',
        name: `${name}-5d8c7b9f4-${address.replaceAll('.', '-')}`,
        namespace: 'bench',
        uid: uidOf(2, spec.index * 100 + at),
      },
      zone: `zone-${at % 3}`,
    })),
    kind: 'EndpointSlice',
    metadata: {
      creationTimestamp: '2026-11-20T08:00:00Z',
      generateName: `${name}-`,
      generation: 1,
      labels: {
        app: name,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': name,
      },
      name: `${name}-x7k2p`,
      namespace: 'bench',
      ownerReferences: [
        {
          apiVersion: 'v1',
          blockOwnerDeletion: true,
          controller: true,
          kind: 'Service',
          name,
          uid: uidOf(1, spec.index),
        },
      ],
      resourceVersion: String(200_000 + spec.index),
      uid: uidOf(3, spec.index),
    },
    ports: [{ name: 'http', port: spec.members[0]?.port ?? 9000, protocol: 'TCP' }],
  };
}

/** The text of one manifest file: the Service and its EndpointSlice. */
export function manifestOf(spec: ServiceSpec): string {
  return `${yaml(serviceObject(spec))}---\n${yaml(sliceObject(spec))}`;
}

/** Block style with lists at the indent of their key, as kubectl prints it. */
function yaml(object: { readonly [key: string]: Value }): string {
  return `${linesOf(object).join('\n')}\n`;
}

function linesOf(object: { readonly [key: string]: Value }): string[] {
  return Object.entries(object).flatMap(([key, value]) => {
    if (Array.isArray(value)) return [`${key}:`, ...value.flatMap(itemLines)];
    if (typeof value !== 'object') return [`${key}: ${scalar(value)}`];
    const below = linesOf(value as { readonly [key: string]: Value });
    return below.length === 0 ? [`${key}: {}`] : [`${key}:`, ...below.map((line) => `  ${line}`)];
  });
}

function itemLines(item: Value): string[] {
  const lines =
    typeof item === 'object' ? linesOf(item as { readonly [key: string]: Value }) : [scalar(item)];
  return lines.map((line, at) => `${at === 0 ? '- ' : '  '}${line}`);
}

/** Quotes a string that YAML would read as a date or a number. */
function scalar(value: Value): string {
  return typeof value === 'string' && /^\d{4}-|^\d+$/.test(value) ? `"${value}"` : String(value);
}

function uidOf(kind: number, n: number): string {
  return `${String(kind).padStart(8, '0')}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
}
