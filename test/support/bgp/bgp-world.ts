// Hosts that announce by BGP, each with a whole agent in its own network namespace, a router with BIRD that spreads
// connections over them, a client behind the router, and a member that answers with `member`.

import { once } from 'node:events';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BgpStatus } from '../../../agent/vips/bgp.ts';
import { BirdSocket } from '../../../agent/vips/bird/bird-socket.ts';
import { birdPaths } from '../../../agent/vips/bird/paths.ts';
import { until } from '../basics/until.ts';
import { type RunningAgent, TestHost } from '../host/agent.ts';
import { TestNetwork } from '../host/namespaces.ts';
import { nftFlags } from '../host/nft.ts';
import { MEMBER_PORT } from '../values/service-objects.ts';
import { makeCredentials } from '../vrrp/pair-credentials.ts';
import { HOST_ASN, ROUTER_ASN, TestRouter } from './test-router.ts';

export const ANCHORS = '10.77.0.0/24';

/** Only the router has a way to them. */
export function anchorsOf(at: number): readonly string[] {
  return [`10.77.0.${at + 1}`, `fd77::${at + 1}`];
}

/** Every VIP of these tests is in it; only the router has a way there. */
export const VIPS = '198.51.100.0/24';
export const VIPS_V6 = '2001:db8:100::/64';

export interface BgpHost {
  readonly name: string;
  readonly host: TestHost;
  agent: RunningAgent;
  /** The setting `hosts` without those hosts that are named, and SIGHUP. */
  readonly without: (...names: readonly string[]) => Promise<void>;
  /** Replaces fields of the setting bgp, or of its peer, and sends SIGHUP. */
  readonly configure: (change: Json, peer?: Json) => Promise<void>;
  readonly bgp: () => Promise<BgpStatus>;
}

type Json = Readonly<Record<string, unknown>>;
/** A test, or a row of the benchmark. */
type Owner = Parameters<typeof TestHost.create>[0];

export interface BgpWorldOptions {
  readonly hosts?: readonly string[];
  /** Further fields of the peer in the settings of hosts, and lines of the neighbour in the router's file. */
  readonly peer?: Json;
  readonly neighbour?: string;
  /** `objects`: the settings of hosts name no router. */
  readonly peersOf?: 'settings' | 'objects';
  /** A second session of each host with the router, over IPv6, for IPv6. */
  readonly hasV6?: boolean;
  /** The family of sessions, VIPs and the back network; by default IPv4, and both on the back network. */
  readonly family?: 'v4' | 'v6';
  readonly flags?: readonly string[];
  /** The hosts know one another by the setting `hosts`, with a network `back` between them. */
  readonly group?: boolean;
  /** The hosts of the group have anchors. */
  readonly anchors?: boolean;
  /** Further machines of the network, such as members. */
  readonly others?: readonly string[];
  /** The setting vrrp, for `announce: both`. */
  readonly vrrp?: (network: TestNetwork, name: string) => Json;
  /** Names of `hosts` that are not started before join(). */
  readonly later?: readonly string[];
  /** Gives a host its objects before its agent starts. */
  readonly prepare?: (host: TestHost, network: TestNetwork) => Promise<void>;
}

export class BgpWorld {
  readonly network: TestNetwork;
  /** Hosts whose agents have started. */
  readonly hosts: BgpHost[] = [];
  readonly router: TestRouter;
  readonly #later = new Map<string, () => Promise<BgpHost>>();

  private constructor(network: TestNetwork, router: TestRouter) {
    this.network = network;
    this.router = router;
  }

  /** Resolves when each agent runs and each session is established, unless the peer is to be refused. */
  static async create(t: Owner, options: BgpWorldOptions = {}): Promise<BgpWorld> {
    const {
      hosts: names = ['a', 'b'],
      peer = {},
      neighbour = '',
      peersOf = 'settings',
      hasV6 = false,
      flags = [],
      group = false,
      anchors = false,
      others = [],
      later = [],
      prepare,
    } = options;
    const network = await TestNetwork.create(t, [...names, 'router', 'client', ...others]);
    const isV6 = options.family === 'v6';
    if (isV6) await network.run('client', 'ip', '-6', 'route', 'add', VIPS_V6, 'via', network.v6('router'));
    else await network.run('client', 'ip', 'route', 'add', VIPS, 'via', network.v4('router'));
    const script = `require('net').createServer((socket) => socket.on('error', () => 0).end('member')).listen(${MEMBER_PORT}, () => console.log())`;
    const member = network.start('client', process.execPath, '-e', script);
    if (member.stdout !== null) await once(member.stdout, 'data');
    const made = new Map<string, { readonly host: TestHost; readonly shared: string[] }>();
    for (const name of names) {
      const shared = [...nftFlags, ...flags];
      made.set(name, { host: await TestHost.create(t, { flags: shared }), shared });
    }
    if (group) await network.addBack(names);
    const listed = names.map((name, at) => ({
      name,
      // The agents are connected outside the network that tests cut.
      address: made.get(name)?.host.address(201 + at) ?? '',
      back: isV6 ? [network.back6(name)] : [network.back4(name), network.back6(name)],
      anchors: anchors ? anchorsOf(at) : [],
    }));
    const { host: first } = [...made.values()][0] as { readonly host: TestHost };
    const credentials = group ? await makeCredentials(first.directory, 'group') : '';
    const router = await TestRouter.create(t, network, first.directory, {
      hosts: names,
      neighbour,
      ...(options.family && { family: options.family }),
    });
    if (hasV6) await router.add(names.map((name) => sessionOverV6(network, name)).join('\n') + KERNEL_V6);
    const world = new BgpWorld(network, router);
    for (const [at, [name, { host, shared }]] of [...made].entries()) {
      const file: { path: string; bgp: Json; peer: Json; hosts: readonly Json[] } = {
        path: join(host.directory, 'headgate.yaml'),
        bgp: { asn: HOST_ASN, routerId: network.v4(name) },
        peer: {
          name: 'tor-a',
          address: router.addressOf('router'),
          asn: ROUTER_ASN,
          bfd: { interval: '300ms' },
          ...peer,
        },
        hosts: group ? listed : [],
      };
      const own = ['--netns', network.netns(name), '--haproxy-user=', '--haproxy-group='];
      if (group) {
        const file = join(host.directory, 'group.pem');
        if (at > 0) await copyFile(credentials, file);
        own.push('--pair-address', listed[at]?.address ?? '', '--pair-credentials', file);
      }
      const peer6 = { name: 'tor-6', address: network.v6('router'), asn: ROUTER_ASN, bfd: true };
      const others6 = hasV6 ? [peer6] : [];
      const write = () =>
        writeFile(
          file.path,
          JSON.stringify({
            announce: 'bgp',
            bgp: { ...file.bgp, peers: peersOf === 'settings' ? [file.peer, ...others6] : [] },
            ...(file.hosts.length > 0 && { hosts: file.hosts }),
            ...(options.vrrp && { vrrp: options.vrrp(network, name) }),
          }),
        );
      shared.push(...own, '--config', file.path, '--pair-lower-after', '1s', '--pair-raise-after', '1s');
      await write();
      const of = (agent: RunningAgent): BgpHost => ({
        name,
        host,
        agent,
        configure: async (change, ofPeer = {}) => {
          file.bgp = { ...file.bgp, ...change };
          file.peer = { ...file.peer, ...ofPeer };
          await write();
          world.host(name).agent.signal('SIGHUP');
        },
        without: async (...others) => {
          file.hosts = listed.filter((one) => !others.includes(one.name));
          await write();
          world.host(name).agent.signal('SIGHUP');
        },
        bgp: async () => {
          const { bgp } = await host.status();
          if (bgp === undefined) throw new Error('It does not announce by BGP');
          return bgp;
        },
      });
      const start = async () => {
        await prepare?.(host, network);
        const each = of(await host.start());
        t.teardown(async () => {
          await each.agent.stop();
        });
        world.hosts.push(each);
        return each;
      };
      if (later.includes(name)) world.#later.set(name, start);
      else await start();
    }
    return world;
  }

  /** Starts a host of `later`. */
  async join(name: string): Promise<BgpHost> {
    const start = this.#later.get(name);
    if (start === undefined) throw new Error(`${name} is not a host that joins later`);
    return start();
  }

  host(name: string): BgpHost {
    const found = this.hosts.find((each) => each.name === name);
    if (found === undefined) throw new Error(`There is no host ${name}`);
    return found;
  }

  /** Waits until the router leads an address to exactly these hosts, and their agents report the sessions. */
  async leadsTo(address: string, ...names: readonly string[]): Promise<void> {
    const expected = names.map((name) => this.router.addressOf(name)).sort();
    const logs = () => this.hosts.map(({ agent }) => agent.text.slice(-3_000)).join('\n----\n');
    await until(
      `the router leads ${address} to ${names.join(', ') || 'no host'}`,
      async () => (await this.router.hopsOf(address)).join() === expected.join(),
      { seen: logs },
    );
    // The agent asks BIRD each second.
    for (const name of names)
      await until(`${name} reports its session`, async () => {
        const [session] = (await this.host(name).bgp()).sessions;
        const { state = '', routes = { v4: 0, v6: 0 }, bfd = '' } = session ?? {};
        return state === 'Established' && routes.v4 + routes.v6 > 0 && bfd !== 'Down';
      });
  }

  /** Cuts a host off all networks, like a loss of power, or joins it again. */
  async cut(name: string, isCut = true): Promise<void> {
    await Promise.all([
      isCut ? this.network.cut(name) : this.network.join(name),
      this.network.cutBack(name, isCut),
    ]);
  }

  /** A loss of power: nothing leaves the host any more, its processes are gone, and all that was in memory. */
  async fail(name: string): Promise<void> {
    const { host, agent } = this.host(name);
    await this.cut(name);
    await agent.kill();
    await this.network.kill(name);
    await rm(host.runtimeDir, { recursive: true });
    await mkdir(host.runtimeDir);
    // A host that boots has none of these.
    await this.network.try(name, 'conntrack', '-F');
    await this.network.try(name, 'nft', 'flush', 'ruleset');
    await this.network.try(name, 'ip', 'route', 'flush', 'table', 'local', 'proto', '243');
  }

  /** Power is back. */
  async recover(name: string): Promise<void> {
    const each = this.host(name);
    await this.cut(name, false);
    each.agent = await each.host.start();
  }

  socketOf(name: string): BirdSocket {
    return new BirdSocket(birdPaths(this.host(name).host.runtimeDir).socket, { isRestricted: true });
  }
}

function sessionOverV6(network: TestNetwork, name: string): string {
  return `protocol bgp from_${name}_6 {
  local ${network.v6('router')} as ${ROUTER_ASN}; neighbor ${network.v6(name)} as ${HOST_ASN};
  hold time 9; connect retry time 1; error wait time 1, 2; bfd on;
  ipv6 { import filter gentle; export none; };
}`;
}

const KERNEL_V6 = '\nprotocol kernel kernel6 { merge paths yes; ipv6 { export all; import none; }; }';
