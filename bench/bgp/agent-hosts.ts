// Hosts with whole agents that announce by BGP. The first VIPs are of HAProxy; those that `isOfKernel` names, of the kernel path.

import { ANCHORS, BgpWorld } from '../../test/support/bgp/bgp-world.ts';
import { webObjects } from '../../test/support/values/service-objects.ts';
import { order } from '../../test/support/vrrp/agent-pair.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { pause, until } from '../support/until.ts';
import { FAST_BFD, leadsTo, MEMBER, prepareNetwork, type Side, vipAt } from './side.ts';

export interface AgentSide extends Side {
  readonly addToKernel: (vip: string) => Promise<void>;
  /** Connections of a VIP that HAProxy of a host has. */
  readonly connectionsOf: (host: string, vip: string) => Promise<number>;
}

interface Options {
  readonly hosts: readonly string[];
  readonly vips: number;
  readonly kernelVips: readonly string[];
}

export async function startAgentHosts(
  bench: Bench,
  scratch: Scratch,
  { hosts, vips, kernelVips }: Options,
): Promise<AgentSide> {
  const owner = {
    teardown: (undo: () => unknown) =>
      scratch.defer(async () => {
        await undo();
      }),
    timeout: () => undefined,
  };
  const world = await BgpWorld.create(owner, {
    hosts,
    others: [MEMBER],
    group: hosts.length > 1,
    anchors: hosts.length > 1,
    peer: { bfd: { interval: '100ms' } },
    neighbour: FAST_BFD,
    flags: ['--stop-dataplane-on-exit', '--landing'],
    prepare: async (host, network) => {
      for (const name of hosts) await network.run(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
      const first = Array.from({ length: vips }, (_, at) =>
        objects(`web-${at}`, vipAt(at), network.v4(MEMBER)),
      );
      const ofKernel = kernelVips.map((vip, at) => objects(`kernel-${at}`, vip, network.v4(MEMBER), true));
      await host.write('all.yaml', [...first, ...ofKernel].flat());
    },
  });
  const { network, router } = world;
  await prepareNetwork(scratch, bench.haproxy, 'agents', network);
  await network.run(MEMBER, 'ip', 'route', 'add', ANCHORS, 'via', network.v4('router'));
  let added = 0;
  const add = async (vip: string, isOfKernel: boolean): Promise<void> => {
    const name = `new-${added++}`;
    const made = objects(name, vip, network.v4(MEMBER), isOfKernel);
    await Promise.all(world.hosts.map(({ host }) => host.write(`${name}.yaml`, made)));
  };
  return {
    network,
    router,
    add: (vip) => add(vip, false),
    addToKernel: (vip) => add(vip, true),
    cut: (host, isCut) => world.cut(host, isCut),
    stand: async (host, isBack) => {
      await order(world.host(host).host, 'maintenance', isBack ? 'on' : 'off');
    },
    settled: async (vip, ...serving) => {
      await leadsTo({ network, router }, vip, serving);
      if (hosts.length === 1) return;
      for (const name of serving)
        await until(
          `${name} passes packets on`,
          async () => (await world.host(name).bgp()).passing.next !== '',
        );
      await pause(1_000);
    },
    connectionsOf: async (host, vip) => {
      const text = await network.run(host, 'ss', '-Htn', 'state', 'established', 'src', vip);
      return text.split('\n').filter((line) => line !== '').length;
    },
  };
}

function objects(name: string, address: string, member: string, isOfKernel = false) {
  const annotations = isOfKernel ? { engine: 'kernel' } : {};
  return webObjects({ name, address, members: [member], annotations });
}
