// A load balancer of the kernel path in a test's own network: VIPs of both families, three members that answer datagrams with
// their names, a client, and an agent with a Service `dns`.

import type { ExecutionContext } from 'ava';
import { TestHost } from '../host/agent.ts';
import { TestNetwork } from '../host/namespaces.ts';
import { nftExecutable, nftFlags } from '../host/nft.ts';
import type { Json } from '../values/service-objects.ts';
import { answerDatagrams, askByDatagrams, UDP_MEMBER_PORT } from './datagrams.ts';

export const VIP = '10.9.0.100';
export const VIP6 = 'fd09::100';
export const DNS = 53;

/** As kernelStarted(), with the Service. */
export async function kernelServed(t: ExecutionContext, sysctls: readonly string[] = []) {
  const rig = await kernelStarted(t);
  for (const sysctl of sysctls) await rig.network.run('a', 'sysctl', '-qw', sysctl);
  await rig.host.write('dns.yaml', dns(['m1', 'm2', 'm3'], rig.network));
  if (sysctls.length === 0)
    await rig.host.until(
      'it answers',
      async () => (await askByDatagrams(rig.network, VIP, DNS)).by[0]?.startsWith('m') === true,
    );
  return rig;
}

export function dns(
  members: readonly string[],
  network: TestNetwork,
  spec: Json = {},
  name = 'dns',
  port = DNS,
  annotations: Readonly<Record<string, string>> = {},
): readonly Json[] {
  const ports = [
    { name: 'dns', port: UDP_MEMBER_PORT, protocol: 'UDP' },
    { name: 'dns-tcp', port: UDP_MEMBER_PORT, protocol: 'TCP' },
  ];
  const slice = (addressType: 'IPv4' | 'IPv6', addressOf: (member: string) => string): Json => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${addressType.toLowerCase()}`,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType,
    endpoints: members.map((member) => ({ addresses: [addressOf(member)] })),
    ports,
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, annotations: { 'headgate.io/load-balancer-ips': `${VIP},${VIP6}`, ...annotations } },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ipFamilies: ['IPv4', 'IPv6'],
        ipFamilyPolicy: 'RequireDualStack',
        ports: [{ name: 'dns', port, protocol: 'UDP', targetPort: UDP_MEMBER_PORT }],
        ...spec,
      },
    },
    slice('IPv4', (member) => network.v4(member)),
    slice('IPv6', (member) => network.v6(member)),
  ];
}

/** A load balancer `a` with the VIPs, three members and a client on one network; the agent runs. */
export async function kernelStarted(t: ExecutionContext) {
  const network = await TestNetwork.create(t, ['client', 'a', 'm1', 'm2', 'm3']);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  await network.run('a', 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'eth0', 'nodad');
  const kill = new Map(['m1', 'm2', 'm3'].map((member) => [member, answerDatagrams(network, member)]));
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a'), ...nftFlags] });
  const agent = await host.start();
  return { host, network, agent, kill };
}

/** The name of the agent's table. */
export async function kernelTable(network: TestNetwork): Promise<string> {
  // To list the tables alone, nft 1.0.6 reads all their elements.
  const chains = await network.run('a', nftExecutable, 'list', 'chains', 'ip');
  return /^table ip (headgate_[0-9a-f]{8}) \{$/m.exec(chains)?.[1] ?? '';
}
