// A machine with its root filesystem, a client and members. The addresses are those of TestNetwork; the machine is the
// host `lb`.

import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { inNamespace } from '../../../agent/host/namespace.ts';
import { runCommand } from '../../../agent/host/run-command.ts';
import type { LoadReport } from '../../../examples/demo-load.ts';
import { nextMessage } from '../../../examples/demo-processes.ts';
import { MEMBER_PORT, webObjects } from '../values/service-objects.ts';
import { Machine } from './machine.ts';
import { TestNetwork } from './namespaces.ts';

const ANCHOR = '10.9.0.1';
export const VIP = '10.9.1.1';
const DEMO_LOAD = fileURLToPath(new URL('../../../examples/demo-load.ts', import.meta.url));
const MEMBER = `require('http').createServer({ keepAliveTimeout: 0 }, (_, response) => response.end('the member')).listen(${MEMBER_PORT})`;

export class MachineLab {
  readonly machine: Machine;
  readonly network: TestNetwork;

  /** `fill` writes a root filesystem into an empty directory. */
  static async create(
    t: Pick<ExecutionContext<unknown>, 'teardown'>,
    fill: (directory: string) => Promise<void>,
  ): Promise<MachineLab> {
    const network = await TestNetwork.create(t, ['client', 'member', 'lb']);
    const root = await mkdtemp(join(tmpdir(), 'hg-machine-'));
    t.teardown(() => rm(root, { recursive: true, force: true }));
    await fill(root);
    const lab = new MachineLab(network, new Machine(root, network.netns('lb')));
    t.teardown(() => lab.machine.cutOff());
    network.start('member', process.execPath, '-e', MEMBER);
    return lab;
  }

  private constructor(network: TestNetwork, machine: Machine) {
    this.network = network;
    this.machine = machine;
  }

  /** Boots as after a power failure, without the kernel's former state. */
  async boot(): Promise<string> {
    for (const name of ['net.ipv4.ip_nonlocal_bind', 'net.ipv6.ip_nonlocal_bind'])
      await this.network.run('lb', 'sysctl', '-qw', `${name}=0`);
    for (const address of await this.network.held('lb'))
      await this.network.try('lb', 'ip', 'address', 'delete', `${address}/32`, 'dev', 'eth0');
    await this.network.run('lb', 'nft', 'flush', 'ruleset');
    return this.machine.boot();
  }

  /** Writes settings with VRRP but without a peer, and `more` settings; one Service at `VIP`. */
  async configure(more = ''): Promise<void> {
    const own = this.network.v4('lb');
    await this.put(
      'etc/headgate/headgate.yaml',
      `# An operator's own words.
manifests: [/etc/headgate/manifests]
listen: ${own}:9180
vrrp:
  interface: eth0
  address: ${own}
  peers: [10.9.0.99]
  instances: [{ virtualRouterId: 51, priority: 200, anchors: [${ANCHOR}] }]
${more}`,
    );
    await this.serve('etc/headgate/manifests', VIP);
  }

  /** Writes the manifests of a Service at an address into a directory of the machine. */
  async serve(directory: string, address: string): Promise<void> {
    const objects = webObjects({ address, port: 80, members: [this.network.v4('member')] });
    await this.put(`${directory}/web.yaml`, objects.map((each) => JSON.stringify(each)).join('\n---\n'));
  }

  /** Writes a file of the machine; `path` from its root. */
  async put(path: string, text: string): Promise<void> {
    const file = join(this.machine.root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }

  /** Copies a file of this host into the machine. */
  async bring(file: string, path: string): Promise<void> {
    await cp(file, join(this.machine.root, path));
  }

  /** The answer that the client receives; '' without an answer. */
  async ask(url = `http://${VIP}/`): Promise<string> {
    const script = `fetch('${url}', { signal: AbortSignal.timeout(4000) }).then((response) => response.text()).then((text) => process.stdout.write(text), () => 0)`;
    const [program, words] = inNamespace(this.network.netns('client'), process.execPath, ['-e', script]);
    return (await runCommand(program, words, { timeout: 60_000 })).stdout;
  }

  /** The agent's metrics at `address`. */
  async metrics(address: string): Promise<string> {
    let text = '';
    await this.machine.until('the agent tells its metrics', async () => {
      text = await this.ask(`http://${address}:9180/metrics`);
      return /^headgate_build_info\{/m.test(text);
    });
    return text;
  }

  /** Waits until the client receives the member's answer. */
  answers(url?: string): Promise<void> {
    return this.machine.until('the member answers', async () => (await this.ask(url)) === 'the member');
  }

  /** Another load balancer on the machine, in a network namespace with the address `own`, which is also its Service's. */
  async addInstance(name: string, own: string): Promise<void> {
    const { machine, network } = this;
    const [outside, inside] = [`to-${name}`, `of-${name}`];
    const there = ['peer', 'name', inside, 'netns', network.netns('lb')];
    await network.run('bridge', 'ip', 'link', 'add', outside, 'type', 'veth', ...there);
    await network.run('bridge', 'ip', 'link', 'set', outside, 'master', 'br0', 'up');
    await machine.run('ip', 'netns', 'add', name);
    await machine.run('ip', 'link', 'set', inside, 'netns', name, 'name', 'eth0');
    await machine.run('ip', '-n', name, 'link', 'set', 'lo', 'up');
    await machine.run('ip', '-n', name, 'address', 'add', `${own}/16`, 'dev', 'eth0');
    await machine.run('ip', '-n', name, 'link', 'set', 'eth0', 'up');
    const manifests = `etc/headgate/manifests-${name}`;
    await this.serve(manifests, own);
    await this.put(`etc/headgate/${name}.yaml`, `manifests: [/${manifests}]\nlisten: ${own}:9180\n`);
    await machine.run('systemctl', 'enable', '--now', `headgate-haproxy@${name}`, `headgate@${name}`);
  }

  load(): MachineLoad {
    const [program, words] = inNamespace(this.network.netns('client'), process.execPath, [
      DEMO_LOAD,
      `http://${VIP}/`,
    ]);
    return new MachineLoad(spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }));
  }
}

/** Some hundred requests a second from the client, on new and kept connections. */
export class MachineLoad {
  readonly #process: ChildProcess;

  constructor(process: ChildProcess) {
    this.#process = process;
  }

  /** Reports the requests since the last report. */
  async report(): Promise<LoadReport> {
    const answer = nextMessage(this.#process, 'The load');
    this.#process.send('report');
    return (await answer) as LoadReport;
  }

  stop(): void {
    this.#process.kill('SIGKILL');
  }
}

/** Copies the content of a root filesystem with owners, modes and links. */
export async function copyRoot(from: string, to: string): Promise<void> {
  const { exitCode, stderr } = await runCommand('cp', ['--archive', '--reflink=auto', `${from}/.`, to], {
    timeout: 120_000,
  });
  if (exitCode !== 0) throw new Error(`Cannot copy ${from}: ${stderr}`);
}
