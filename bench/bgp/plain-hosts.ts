// Hosts by hand: BIRD with a line for each VIP in a file that its configuration includes, and a HAProxy that listens on all addresses.
// Nothing passes packets of open connections on.

import { writeFile } from 'node:fs/promises';
import { BirdSocket } from '../../agent/vips/bird/bird-socket.ts';
import { HOST_ASN, ROUTER_ASN, TestRouter } from '../../test/support/bgp/test-router.ts';
import { TestNetwork } from '../../test/support/host/namespaces.ts';
import { MEMBER_PORT, VIP_PORT } from '../../test/support/values/service-objects.ts';
import { startHaproxy } from '../support/haproxy.ts';
import { start } from '../support/processes.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { FAST_BFD, leadsTo, MEMBER, prepareNetwork, type Side, vipAt, withinHost } from './side.ts';

export async function startPlainHosts(
  bench: Bench,
  scratch: Scratch,
  hosts: readonly string[],
  count: number,
): Promise<Side> {
  const owner = {
    teardown: (undo: () => unknown) =>
      scratch.defer(async () => {
        await undo();
      }),
  };
  const network = await TestNetwork.create(owner, [...hosts, 'router', 'client', MEMBER]);
  await prepareNetwork(scratch, bench.haproxy, 'plain', network);
  const router = await TestRouter.create(owner, network, scratch.directory, { hosts, neighbour: FAST_BFD });
  const vips = Array.from({ length: count }, (_, at) => vipAt(at));
  const file = (host: string) => scratch.path(`vips-${host}.conf`);
  const announce = async (host: string, announced: readonly string[]): Promise<void> => {
    await writeFile(file(host), announced.map((vip) => `route ${vip}/32 blackhole;\n`).join(''));
    const socket = new BirdSocket(scratch.path(`${host}.sock`), { isRestricted: false });
    await socket.ask('configure soft');
    socket.close();
  };
  for (const host of hosts) {
    await network.run(host, 'ip', 'route', 'add', 'local', '198.18.0.0/16', 'dev', 'lo');
    const listener = `listen all\n    bind :${VIP_PORT}\n    server member ${network.v4(MEMBER)}:${MEMBER_PORT}\n`;
    const within = withinHost(network, host);
    await startHaproxy(scratch, `plain-${host}`, bench.haproxy, listener, {
      globals: '    maxconn 4000\n',
      within,
    });
    await writeFile(file(host), vips.map((vip) => `route ${vip}/32 blackhole;\n`).join(''));
    const config = scratch.path(`${host}.conf`);
    await writeFile(config, birdText(network, host, file(host)));
    const [program = '', ...words] = [
      ...within,
      'bird',
      '-f',
      '-c',
      config,
      '-s',
      scratch.path(`${host}.sock`),
    ];
    start(scratch, `bird-${host}`, program, words);
  }
  return {
    network,
    router,
    add: async (vip) => {
      vips.push(vip);
      await Promise.all(hosts.map((host) => announce(host, vips)));
    },
    cut: (host, isCut) => (isCut ? network.cut(host) : network.join(host)),
    stand: (host, isBack) => announce(host, isBack ? [] : vips),
    settled: (vip, ...serving) => leadsTo({ network, router }, vip, serving),
  };
}

function birdText(network: TestNetwork, host: string, vips: string): string {
  return `router id ${network.v4(host)};
protocol device { }
protocol bfd { interface "eth0" { min rx interval 100 ms; min tx interval 100 ms; multiplier 3; }; }
protocol static vips4 { ipv4;
include "${vips}";
}
protocol bgp router_a {
  local ${network.v4(host)} as ${HOST_ASN}; neighbor ${network.v4('router')} as ${ROUTER_ASN};
  hold time 9; connect delay time 1; connect retry time 1; error wait time 1, 5; bfd on;
  ipv4 { import none; export all; next hop self; };
}
`;
}
