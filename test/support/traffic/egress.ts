// Pods whose connections leave from a VIP, in a test's own network: `pod1`, `pod2` on a back network, whose only way to the server
// `client` outside is the load balancer; and a Service `web` with these pods and egress.

import { once } from 'node:events';
import type { TestNetwork } from '../host/namespaces.ts';
import type { Json } from '../values/service-objects.ts';

/** Where the server outside answers. */
export const OUTSIDE_PORT = 5353;

/** Gives the back network to these hosts, and makes `gateway` the pods' way to the server outside. */
export async function connectPods(
  network: TestNetwork,
  hosts: readonly string[],
  pods: readonly string[],
  gateway: { readonly v4: string; readonly v6: string },
): Promise<void> {
  await network.addBack([...hosts, ...pods]);
  for (const host of hosts)
    await network.run(host, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  for (const pod of pods) {
    await network.run(pod, 'ip', 'link', 'set', 'eth0', 'down');
    await network.run(pod, 'ip', 'route', 'add', 'default', 'via', gateway.v4, 'dev', 'back');
    await network.run(pod, 'ip', '-6', 'route', 'add', 'default', 'via', gateway.v6, 'dev', 'back');
  }
}

export interface EgressService {
  readonly name?: string;
  readonly vips: readonly string[];
  /** Addresses of its pods of each family. */
  readonly v4?: readonly string[];
  readonly v6?: readonly string[];
  readonly isReady?: boolean;
  readonly port?: number;
  readonly egress?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly protocol?: 'TCP' | 'UDP';
}

export function egressObjects({
  name = 'web',
  vips,
  v4 = [],
  v6 = [],
  isReady = true,
  port = 80,
  egress = 'true',
  annotations = {},
  protocol = 'TCP',
}: EgressService): readonly Json[] {
  const slice = (addressType: 'IPv4' | 'IPv6', addresses: readonly string[]): Json => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${addressType.toLowerCase()}`,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType,
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: isReady } })),
    ports: [{ name: 'web', port: 8080, protocol }],
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name,
        annotations: {
          'headgate.io/load-balancer-ips': vips.join(','),
          ...(egress === '' ? {} : { 'headgate.io/egress': egress }),
          ...annotations,
        },
      },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ipFamilies: vips.map((vip) => (vip.includes(':') ? 'IPv6' : 'IPv4')),
        ipFamilyPolicy: vips.length > 1 ? 'RequireDualStack' : 'SingleStack',
        ports: [{ name: 'web', port, protocol, targetPort: 8080 }],
      },
    },
    slice('IPv4', v4),
    slice('IPv6', v6),
  ];
}

/** Makes a host answer each connection, and each line on it, with the address that it came from. */
export async function answerConnections(
  network: TestNetwork,
  host: string,
  port = OUTSIDE_PORT,
): Promise<void> {
  const script = `require('net').createServer((socket) => {
    const from = socket.remoteAddress.replace('::ffff:', '') + '\\n';
    socket.on('error', () => 0).on('data', () => socket.write(from));
    socket.write(from);
  }).listen({ port: ${port}, host: '::', backlog: 2000 }, () => console.log());`;
  const server = network.start(host, process.execPath, '-e', script);
  if (server.stdout !== null) await once(server.stdout, 'data');
}

/** The source that a server sees of a new connection of a host; the error if there is none. */
export async function sourceOf(
  network: TestNetwork,
  host: string,
  address: string,
  { port = OUTSIDE_PORT, from = '' } = {},
): Promise<string> {
  const script = `
    const socket = require('net').connect({ port: ${port}, host: '${address}', localAddress: '${from}' || undefined });
    const end = (text) => { console.log(text); process.exit(); };
    socket.setTimeout(3000, () => end('timeout')).on('error', ({ code }) => end(code)).on('data', (data) => end(String(data).trim()));`;
  const child = network.start(host, process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child, 'close');
  return output.trim();
}
