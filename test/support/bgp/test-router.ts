// BIRD in the namespace `router`, as an operator would set it up, with a session with each host.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { BirdSocket } from '../../../agent/vips/bird/bird-socket.ts';
import { until } from '../basics/until.ts';
import type { TestNetwork } from '../host/namespaces.ts';

export const ROUTER_ASN = 65_000;
export const HOST_ASN = 65_001;

type Owner = Pick<ExecutionContext<unknown>, 'teardown'>;

export interface RouterOptions {
  readonly hosts: readonly string[];
  /** Further lines of each neighbour. */
  readonly neighbour?: string;
  /** The family of sessions and routes; IPv4 by default. */
  readonly family?: 'v4' | 'v6';
}

export class TestRouter {
  readonly #network: TestNetwork;
  readonly #file: string;
  readonly #directory: string;
  readonly #options: RouterOptions;
  #process: ChildProcess | undefined;

  static async create(
    t: Owner,
    network: TestNetwork,
    directory: string,
    options: RouterOptions,
  ): Promise<TestRouter> {
    const router = new TestRouter(network, directory, options);
    await router.#prepare();
    await router.configure(options.neighbour ?? '');
    await router.start();
    t.teardown(() => router.stop('SIGKILL'));
    return router;
  }

  private constructor(network: TestNetwork, directory: string, options: RouterOptions) {
    this.#network = network;
    this.#directory = directory;
    this.#file = join(directory, 'router.conf');
    this.#options = options;
  }

  /** A host's address in the family of the sessions. */
  addressOf(host: string): string {
    return this.#isV6 ? this.#network.v6(host) : this.#network.v4(host);
  }

  get #isV6(): boolean {
    return this.#options.family === 'v6';
  }

  async #prepare(): Promise<void> {
    const keys = this.#isV6
      ? ['ipv6.conf.all.forwarding=1', 'ipv6.fib_multipath_hash_policy=1']
      : [
          ...['all', 'eth0'].map((name) => `ipv4.conf.${name}.send_redirects=0`),
          'ipv4.ip_forward=1',
          'ipv4.fib_multipath_hash_policy=1',
        ];
    for (const key of keys) await this.#network.run('router', 'sysctl', '-qw', `net.${key}`);
  }

  get socket(): BirdSocket {
    return new BirdSocket(join(this.#directory, 'router.sock'), { isRestricted: false });
  }

  /** `neighbour`: further lines of each neighbour; `asn`: that it has, or expects of the hosts. */
  async configure(
    neighbour: string,
    { asn = ROUTER_ASN, hostAsn = HOST_ASN, limit = '' } = {},
  ): Promise<void> {
    const channel = this.#isV6 ? 'ipv6' : 'ipv4';
    const sessions = this.#options.hosts.map(
      (name) => `protocol bgp from_${name} {
  local ${this.addressOf('router')} as ${asn}; neighbor ${this.addressOf(name)} as ${hostAsn};
  hold time 9; connect retry time 1; error wait time 1, 2; bfd on; ${neighbour}
  ${channel} { import filter gentle; export none; ${limit} };
}`,
    );
    await writeFile(
      this.#file,
      `log "${this.#directory}/router.log" all;
router id ${this.#network.v4('router')};
protocol device { }
protocol kernel { merge paths yes; ${channel} { export all; import none; }; }
protocol bfd { interface "*" { min rx interval 300 ms; min tx interval 300 ms; multiplier 3; }; }
filter gentle { if (65535, 0) ~ bgp_community then bgp_local_pref = 0; accept; }
${sessions.join('\n')}
`,
    );
    if (this.#process !== undefined) await this.socket.ask('configure');
  }

  /** Adds a text to the file. */
  async add(text: string): Promise<void> {
    await writeFile(this.#file, `${await readFile(this.#file, 'utf8')}\n${text}\n`);
    await this.socket.ask('configure');
  }

  async start(): Promise<void> {
    this.#process = this.#network.start(
      'router',
      'bird',
      '-f',
      '-c',
      this.#file,
      '-s',
      join(this.#directory, 'router.sock'),
    );
    await until('the router runs', () =>
      this.socket.ask('show status').then(
        () => true,
        () => false,
      ),
    );
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  }

  /** The hosts to which the kernel of the router leads an address. */
  async hopsOf(address: string): Promise<readonly string[]> {
    const words = address.includes(':')
      ? ['-6', 'route', 'show', `${address}/128`]
      : ['route', 'show', `${address}/32`];
    const text = await this.#network.run('router', 'ip', ...words);
    return [...text.matchAll(/via ([0-9a-f.:]+)/g)].map(([, hop = '']) => hop).sort();
  }

  /** Every route that BIRD of the router has of the hosts. */
  async routes(): Promise<string> {
    return (await this.socket.ask('show route all')).lines.join('\n');
  }

  log(): Promise<string> {
    return readFile(join(this.#directory, 'router.log'), 'utf8');
  }
}
