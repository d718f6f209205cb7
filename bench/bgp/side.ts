// One side of the rows of BGP: hosts that announce, a router that spreads connections over them, a member, and clients.

import type { TestRouter } from '../../test/support/bgp/test-router.ts';
import type { TestNetwork } from '../../test/support/host/namespaces.ts';
import { MEMBER_PORT } from '../../test/support/values/service-objects.ts';
import type { ClientOrder } from '../pair/client-process.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { startModule } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import type { VisitorsOrder } from './visitors-process.ts';

export const MEMBER = 'member';
/** All VIPs are in it. */
const VIPS = '198.18.0.0/16';

export interface Side {
  readonly network: TestNetwork;
  readonly router: TestRouter;
  /** Gives the hosts one more VIP. */
  readonly add: (vip: string) => Promise<void>;
  /** Cuts a host off all networks, or joins it again. */
  readonly cut: (host: string, isCut: boolean) => Promise<void>;
  /** Orders a host to stand back, or to serve again, in the side's own way. */
  readonly stand: (host: string, isBack: boolean) => Promise<void>;
  /** Resolves when these hosts, and no others, have the clients of a VIP. */
  readonly settled: (vip: string, ...hosts: readonly string[]) => Promise<void>;
}

export function vipAt(index: number): string {
  return `198.18.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`;
}

/** Lines of the router's neighbours: it finds a host dead after three times 100 ms. */
export const FAST_BFD = 'bfd { min rx interval 100 ms; min tx interval 100 ms; multiplier 3; };';

export async function prepareNetwork(
  scratch: Scratch,
  haproxy: string,
  name: string,
  network: TestNetwork,
): Promise<void> {
  await network.run('client', 'ip', 'route', 'add', VIPS, 'via', network.v4('router'));
  // A client that is refused at once asks again at once.
  await network.run('router', 'sysctl', '-qw', 'net.ipv4.icmp_ratelimit=0');
  const within = withinHost(network, MEMBER);
  const { body, globals } = responder(`:${MEMBER_PORT}`);
  await startHaproxy(scratch, `member-${name}`, haproxy, body, { globals, within });
}

export interface Clients {
  readonly visitors: <T>(order: VisitorsOrder) => Promise<T>;
  readonly keepers: readonly (<T>(order: ClientOrder) => Promise<T>)[];
}

/** Two keepers of connections: for HAProxy, and for the kernel path. */
export function startClients(scratch: Scratch, name: string, network: TestNetwork): Clients {
  const within = withinHost(network, 'client');
  const started = (what: string, file: string) =>
    startModule(scratch, `${what}-${name}`, new URL(file, import.meta.url), [], within).ask;
  return {
    visitors: started('visitors', 'visitors-process.ts'),
    keepers: ['keeper', 'other-keeper'].map((what) => started(what, '../pair/client-process.ts')),
  };
}

export function withinHost(network: TestNetwork, host: string): readonly string[] {
  return ['nsenter', `--net=/run/netns/${network.netns(host)}`];
}

export async function leadsTo(
  { network, router }: Pick<Side, 'network' | 'router'>,
  vip: string,
  hosts: readonly string[],
): Promise<void> {
  const expected = hosts
    .map((host) => network.v4(host))
    .sort()
    .join();
  await until(
    `The router leads ${vip} to ${hosts.join(', ')}`,
    async () => (await router.hopsOf(vip)).join() === expected,
    { every: 50, most: 60_000 },
  );
}
