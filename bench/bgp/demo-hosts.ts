// The world of `make demo-bgp`: a router, hosts with whole agents of which the last joins later, a client, and a member that
// sends back what it gets.

import { BgpWorld } from '../../test/support/bgp/bgp-world.ts';
import { echoMember } from '../../test/support/bgp/open-connections.ts';
import { VIP_PORT, webObjects } from '../../test/support/values/service-objects.ts';
import { order } from '../../test/support/vrrp/agent-pair.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { FAST_BFD, MEMBER } from './side.ts';

export const VIP = '198.51.100.1';
export const PORT = VIP_PORT;

export interface DemoHosts {
  /** The network namespace of the client. */
  readonly client: string;
  /** Resolves when the router leads clients to these hosts and no others, and each of them passes packets on. */
  readonly settled: (...names: readonly string[]) => Promise<void>;
  /** Orders maintenance. Errors: the host refuses. */
  readonly maintain: (name: string, isOn: boolean) => Promise<void>;
  /** Cuts all links of a host. */
  readonly cut: (name: string) => Promise<void>;
  /** Starts the agent of the host that joins later; the others hear of it. */
  readonly join: () => Promise<void>;
  /** Connections of clients that a host has. */
  readonly connectionsOf: (name: string) => Promise<number>;
}

export async function startDemoHosts(
  scratch: Scratch,
  names: readonly string[],
  later: string,
): Promise<DemoHosts> {
  const teardown = (undo: () => unknown) =>
    scratch.defer(async () => {
      await undo();
    });
  const world = await BgpWorld.create(
    { teardown, timeout: () => undefined },
    {
      hosts: [...names, later],
      others: [MEMBER],
      group: true,
      peer: { bfd: { interval: '100ms' } },
      neighbour: FAST_BFD,
      flags: ['--stop-dataplane-on-exit'],
      prepare: async (host, network) => {
        for (const name of [...names, later])
          await network.run(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
        await host.write('web.yaml', webObjects({ address: VIP, members: [network.v4(MEMBER)] }));
      },
    },
  );
  const { network, router } = world;
  await echoMember(network, MEMBER);
  const joining = world.host(later);
  await joining.agent.stop();
  for (const name of names) await world.host(name).without(later);
  return {
    client: network.netns('client'),
    settled: async (...serving) => {
      const expected = serving.map((name) => network.v4(name)).sort();
      await until(
        `The router leads clients to ${serving.join(', ')}`,
        async () => (await router.hopsOf(VIP)).join() === expected.join(),
        { every: 50, most: 30_000 },
      );
      for (const name of serving)
        await until(
          `${name} passes packets on`,
          async () => (await world.host(name).bgp()).passing.next !== '',
          { every: 50, most: 30_000 },
        );
    },
    maintain: async (name, isOn) => {
      const { ok, message } = await order(world.host(name).host, 'maintenance', isOn ? 'on' : 'off');
      if (!ok) throw new Error(`The order of maintenance ${isOn ? 'on' : 'off'} failed: ${message}`);
    },
    cut: (name) => world.cut(name),
    join: async () => {
      for (const name of names) await world.host(name).without();
      joining.agent = await joining.host.start();
    },
    connectionsOf: async (name) => {
      const text = await network.run(name, 'ss', '-Htn', 'state', 'established', 'src', VIP);
      return text.split('\n').filter((line) => line !== '').length;
    },
  };
}
