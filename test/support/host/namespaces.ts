// A test's own network: a network namespace for each host, and one more with a bridge between them. All of it is ended and
// removed with the test, even if the test's process is killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { inNamespace } from '../../../agent/host/namespace.ts';
import { type CommandResult, runCommand } from '../../../agent/host/run-command.ts';

/** A shell that reads names of namespaces; when its input ends it ends their processes and removes them. */
const UNDERTAKER = `
while read -r name; do names="$names $name"; done
for name in $names; do
  for pid in $(ip netns pids "$name"); do kill -9 "$pid"; done
done
for name in $names; do ip netns delete "$name"; done
`;

/** The kernel parameters of a load-balancer host, as the package sets them. */
const SYSCTLS = [
  'net.ipv4.tcp_migrate_req=1',
  'net.ipv4.ip_nonlocal_bind=1',
  'net.ipv6.ip_nonlocal_bind=1',
  'net.ipv4.conf.all.arp_announce=2',
  'net.ipv4.conf.all.arp_ignore=1',
  // Without duplicate address detection, link-local addresses work at once.
  'net.ipv6.conf.eth0.accept_dad=0',
];

/** For a machine that is busy: no command takes as long elsewhere. */
const COMMAND_TIMEOUT_MS = 60_000;

/** The protocol number of VRRP. */
const VRRP = 112;

export class TestNetwork {
  /** The prefix of every namespace's name, which is unique to the test. */
  readonly #prefix = `hg-${randomBytes(4).toString('hex')}`;
  readonly #undertaker: ChildProcess;
  readonly #hosts: readonly string[];

  /** Makes the hosts; each has an interface `eth0` with the addresses of `v4()` and `v6()`. */
  static async create(
    t: Pick<ExecutionContext<unknown>, 'teardown'>,
    hosts: readonly string[],
  ): Promise<TestNetwork> {
    const network = new TestNetwork(hosts);
    t.teardown(() => network.#remove());
    await network.#build();
    return network;
  }

  private constructor(hosts: readonly string[]) {
    this.#hosts = hosts;
    this.#undertaker = spawn('sh', ['-c', UNDERTAKER], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
  }

  /** The name of a host's namespace for `ip netns`. */
  netns(host: string): string {
    return `${this.#prefix}-${host}`;
  }

  v4(host: string): string {
    return `10.9.0.${this.#number(host)}`;
  }

  v6(host: string): string {
    return `fd09::${this.#number(host)}`;
  }

  /** Runs a program on a host. Errors: the program fails. */
  async run(host: string, program: string, ...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await this.try(host, program, ...args);
    if (exitCode !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  /** Runs a program and resolves also if the program fails. */
  try(host: string, program: string, ...args: readonly string[]): Promise<CommandResult> {
    const [outer, words] = inNamespace(this.netns(host), program, args);
    return runCommand(outer, words, { timeout: COMMAND_TIMEOUT_MS });
  }

  /** Starts a program on a host; it ends with the network. */
  start(host: string, program: string, ...args: readonly string[]): ChildProcess {
    const [outer, words] = inNamespace(this.netns(host), program, args);
    return spawn(outer, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  }

  /** Makes a host answer with its name on a port of all its addresses. */
  serve(host: string, port = 8080): void {
    const script = `require('net').createServer((socket) => socket.on('error', () => 0).end('${host}')).listen(${port}, '::')`;
    this.start(host, process.execPath, '-e', script);
  }

  /** The name of the host that answers `client` at an address; '' without an answer. */
  async whoServes(address: string, port = 8080): Promise<string> {
    // With a socket as input, bash would act as a remote shell and read ~/.bashrc.
    const { stdout } = await this.try(
      'client',
      'timeout',
      '3',
      'bash',
      '--norc',
      '-c',
      `exec 3<>/dev/tcp/${address}/${port} && cat <&3`,
    );
    return stdout;
  }

  /** The addresses on a host's interface except its own. */
  async held(host: string): Promise<readonly string[]> {
    const text = await this.run(host, 'ip', '-o', 'address', 'show', 'dev', 'eth0', 'scope', 'global');
    const all = [...text.matchAll(/ inet6? ([0-9a-f.:]+)\/\d+/g)].map(([, address = '']) => address);
    return all.filter((address) => address !== this.v4(host) && address !== this.v6(host));
  }

  /** Cuts a host off the network like a failed switch: its interface stays up. */
  async cut(host: string): Promise<void> {
    await this.run('bridge', 'ip', 'link', 'set', portOf(host), 'nomaster');
  }

  async join(host: string): Promise<void> {
    await this.run('bridge', 'ip', 'link', 'set', portOf(host), 'master', 'br0');
  }

  /** Gives hosts a second network of their own: each has an interface `back` with the addresses of `back4()` and `back6()`. */
  async addBack(hosts: readonly string[]): Promise<void> {
    await this.run('bridge', 'ip', 'link', 'add', 'br1', 'type', 'bridge');
    await this.run('bridge', 'ip', 'link', 'set', 'br1', 'up');
    for (const host of hosts) await this.addToBack(host);
  }

  /** Gives one more host the second network. */
  async addToBack(host: string): Promise<void> {
    const there = ['peer', 'name', 'back', 'netns', this.netns(host)];
    await this.run('bridge', 'ip', 'link', 'add', backOf(host), 'type', 'veth', ...there);
    await this.run('bridge', 'ip', 'link', 'set', backOf(host), 'master', 'br1', 'up');
    await this.run(host, 'sysctl', '-qw', 'net.ipv4.conf.back.rp_filter=0');
    await this.run(host, 'ip', 'address', 'add', `${this.back4(host)}/24`, 'dev', 'back');
    await this.run(host, 'ip', 'address', 'add', `${this.back6(host)}/64`, 'dev', 'back', 'nodad');
    await this.run(host, 'ip', 'link', 'set', 'back', 'up');
  }

  back4(host: string): string {
    return `10.8.8.${this.#number(host)}`;
  }

  back6(host: string): string {
    return `fd08::${this.#number(host)}`;
  }

  /** Cuts a host off the back network like a failed switch, or joins it again. */
  async cutBack(host: string, isCut = true): Promise<void> {
    const master = isCut ? ['nomaster'] : ['master', 'br1'];
    await this.run('bridge', 'ip', 'link', 'set', backOf(host), ...master);
  }

  /** Kills every process of a host. */
  async kill(host: string): Promise<void> {
    const { stdout } = await runCommand('ip', ['netns', 'pids', this.netns(host)], {
      timeout: COMMAND_TIMEOUT_MS,
    });
    for (const pid of stdout.split(/\s+/).filter(Boolean))
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
  }

  /** Deletes a host's interface and makes another with the same name and addresses. */
  async remake(host: string): Promise<void> {
    await this.run('bridge', 'ip', 'link', 'delete', portOf(host));
    await this.#connect(host);
  }

  /** Drops only VRRP packets to a host; `false` accepts them again. */
  async deafen(host: string, isDeaf = true): Promise<void> {
    // The number, because a minimal machine lacks /etc/protocols.
    const rules = `table inet deaf {
      chain in { type filter hook input priority 0; ip protocol ${VRRP} drop; ip6 nexthdr ${VRRP} drop; }
    }`;
    if (isDeaf) await this.run(host, 'nft', rules);
    else await this.run(host, 'nft', 'delete', 'table', 'inet', 'deaf');
  }

  async #build(): Promise<void> {
    for (const name of ['bridge', ...this.#hosts]) {
      this.#undertaker.stdin?.write(`${this.netns(name)}\n`);
      await ip('netns', 'add', this.netns(name));
      await this.run(name, 'ip', 'link', 'set', 'lo', 'up');
    }
    await this.run('bridge', 'ip', 'link', 'add', 'br0', 'type', 'bridge');
    await this.run('bridge', 'ip', 'link', 'set', 'br0', 'up');
    for (const host of this.#hosts) await this.#connect(host);
  }

  async #connect(host: string): Promise<void> {
    const there = ['peer', 'name', 'eth0', 'netns', this.netns(host)];
    await this.run('bridge', 'ip', 'link', 'add', portOf(host), 'type', 'veth', ...there);
    await this.run('bridge', 'ip', 'link', 'set', portOf(host), 'master', 'br0', 'up');
    for (const sysctl of SYSCTLS) await this.run(host, 'sysctl', '-qw', sysctl);
    await this.run(host, 'ip', 'address', 'add', `${this.v4(host)}/16`, 'dev', 'eth0');
    await this.run(host, 'ip', 'address', 'add', `${this.v6(host)}/64`, 'dev', 'eth0', 'nodad');
    await this.run(host, 'ip', 'link', 'set', 'eth0', 'up');
  }

  async #remove(): Promise<void> {
    this.#undertaker.stdin?.end();
    await once(this.#undertaker, 'exit');
  }

  #number(host: string): number {
    return 11 + this.#hosts.indexOf(host);
  }
}

/** The bridge's port of a host. */
function portOf(host: string): string {
  return `to-${host}`;
}

function backOf(host: string): string {
  return `back-${host}`;
}

async function ip(...args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runCommand('ip', args, { timeout: COMMAND_TIMEOUT_MS });
  if (exitCode !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}
