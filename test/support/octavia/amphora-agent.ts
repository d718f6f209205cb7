// A whole amphora as a test's host: `bin/headgate run` as Octavia's image starts it, in a namespace where Nova's interfaces
// appear, with Octavia's own driver and reader of heartbeats beside it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { agentSocketPath, askAgent } from '../../../agent/answer/agent-socket.ts';
import { inNamespace } from '../../../agent/host/namespace.ts';
import { runCommand } from '../../../agent/host/run-command.ts';
import type { HeartbeatMessage } from '../../../agent/octavia/heartbeat/message.ts';
import type { AmphoraStatus } from '../../../agent/octavia/report/amphora-report.ts';
import { until } from '../basics/until.ts';
import { haproxyExecutable } from '../haproxy/haproxy.ts';
import { nftFlags } from '../host/nft.ts';
import { keepalivedFlags } from '../vrrp/keepalived.ts';
import { type AmphoraCertificates, amphoraCertificates } from './amphora-certificates.ts';
import { AmphoraHost } from './amphora-host.ts';

/** Debian's Octavia is for the interpreter of Debian. */
const PYTHON = '/usr/bin/python3';
const KEY = 'a#b;c=d';
const PORT = 9443;
export const AMPHORA_ID = '3f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';

/** What the driver answers. */
export interface DriverAnswer {
  readonly result?: unknown;
  readonly error?: string;
  readonly kind?: string;
  readonly seconds: number;
}

export interface AmphoraOptions {
  /** The size of the disk of texts. */
  readonly baseBytes?: number;
  readonly topology?: 'SINGLE' | 'ACTIVE_STANDBY';
  /** The other amphora of a pair: its id, its address, and the name of its namespace, which is not made. */
  readonly peer?: { readonly amphora: string; readonly vrrpAddress: string; readonly netns: string };
}

export class AmphoraAgent {
  readonly host: AmphoraHost;
  readonly certificates: AmphoraCertificates;
  /** In their order, with the key of the health manager that got it, and why it refuses the message. */
  readonly heartbeats: (HeartbeatMessage & { readonly refused?: string; readonly key: string })[] = [];
  readonly log: string[] = [];
  #agent: ChildProcess | undefined;
  #driver: ChildProcess | undefined;
  readonly #answers: ((answer: DriverAnswer) => void)[] = [];

  /** The agent runs, nothing is plugged or pushed. */
  static async create(
    t: Pick<ExecutionContext<unknown>, 'teardown'>,
    { baseBytes, topology = 'SINGLE', peer }: AmphoraOptions = {},
  ): Promise<AmphoraAgent> {
    const host = await AmphoraHost.create(t, ['amphora', ...(peer ? [peer.netns] : [])], ['client']);
    const amphora = new AmphoraAgent(host, await amphoraCertificates(host.folder, AMPHORA_ID));
    const port = await amphora.receiveHeartbeats(KEY);
    await mkdir(amphora.path('base'), { recursive: true });
    if (baseBytes !== undefined) {
      const base = amphora.path('base');
      await runCommand('mount', ['-t', 'tmpfs', '-o', `size=${baseBytes}`, 'tmpfs', base], {
        timeout: 10_000,
      });
      t.teardown(() => runCommand('umount', ['--lazy', base], { timeout: 10_000 }));
    }
    await writeFile(amphora.path('amphora-agent.conf'), amphora.config(port, { topology }), { mode: 0o600 });
    await amphora.start();
    await amphora.#startDriver(peer);
    return amphora;
  }

  private constructor(host: AmphoraHost, certificates: AmphoraCertificates) {
    this.host = host;
    this.certificates = certificates;
  }

  path(...names: readonly string[]): string {
    return join(this.host.folder, ...names);
  }

  /** Resolves when the API listens. */
  async start(): Promise<void> {
    const headgate = fileURLToPath(new URL('../../../bin/headgate', import.meta.url));
    const folders = ['--state-dir', this.path('state'), '--runtime-dir', this.path('run')];
    const programs = [...keepalivedFlags, ...nftFlags];
    const words = ['run', '--amphora', this.path('amphora-agent.conf'), ...folders, ...programs];
    const rights = `--bounding-set=-all,${unitRights().join(',')}`;
    const [program, args] = inNamespace(this.host.network.netns('node'), 'setpriv', [
      ...[rights, '--inh-caps=-all', headgate, ...words],
      ...['--netns', this.host.network.netns('amphora'), '--listen', '127.0.0.1:0'],
    ]);
    const agent = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#agent = agent;
    for (const stream of [agent.stdout, agent.stderr])
      createInterface({ input: stream }).on('line', (line) => this.log.push(line));
    await until(
      'the API listens',
      async () => agent.exitCode !== null || (await this.status())?.amphora.address !== '',
      { seen: () => this.log.slice(-5).join('\n') },
    );
    if (agent.exitCode !== null) throw new Error(`The agent has ended: ${this.log.join('\n')}`);
  }

  /** As systemd does; HAProxy continues. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const agent = this.#agent;
    if (agent === undefined || agent.exitCode !== null) return;
    const ended = once(agent, 'exit');
    agent.kill(signal);
    await ended;
  }

  /** The value of `headgate status --json`; with an empty address while no agent answers. */
  async status(): Promise<AmphoraStatus> {
    const answer = await askAgent(agentSocketPath(this.path('run')), 'status').catch(() => undefined);
    return (answer ?? { amphora: { id: '', topology: '', address: '' } }) as AmphoraStatus;
  }

  /** What a command of the agent prints. */
  async command(...words: readonly string[]): Promise<string> {
    const headgate = fileURLToPath(new URL('../../../bin/headgate', import.meta.url));
    return await this.host.network.run('node', headgate, ...words, '--runtime-dir', this.path('run'));
  }

  /** An order of controller.py. */
  async order(order: object): Promise<DriverAnswer> {
    const { promise, resolve } = Promise.withResolvers<DriverAnswer>();
    this.#answers.push(resolve);
    this.#driver?.stdin?.write(`${JSON.stringify(order)}\n`);
    return await promise;
  }

  /** A method of Octavia's REST client. Errors: what it raises. */
  async client(method: string, ...args: readonly unknown[]): Promise<unknown> {
    const { result, error, kind } = await this.order({ call: 'client', method, arguments: args });
    if (error !== undefined) throw new Error(`${kind}: ${error}`);
    return result;
  }

  /** Errors: what the driver raises. */
  async push(loadBalancer: object): Promise<DriverAnswer> {
    const answer = await this.order({ call: 'push', loadBalancer });
    if (answer.error !== undefined) throw new Error(`${answer.kind}: ${answer.error}`);
    return answer;
  }

  /** One that is sent after the call. */
  async nextHeartbeat(): Promise<AmphoraAgent['heartbeats'][number]> {
    const seen = this.heartbeats.length;
    await until('a heartbeat comes', () => this.heartbeats.length > seen);
    return this.heartbeats[seen] as AmphoraAgent['heartbeats'][number];
  }

  /** Sends a signal to the master and its workers; answers the master's pid. */
  signalHaproxy(loadBalancer: string, signal: NodeJS.Signals): number {
    const pid = Number(readFileSync(this.path('run', 'octavia', loadBalancer, 'haproxy.pid'), 'utf8'));
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    for (const each of [pid, ...children.map(Number)]) process.kill(each, signal);
    return pid;
  }

  async killHaproxy(loadBalancer: string): Promise<void> {
    const pid = this.signalHaproxy(loadBalancer, 'SIGKILL');
    await until('HAProxy is gone', () => !existsSync(`/proc/${pid}`) || isZombie(pid));
  }

  async #startDriver(peer: AmphoraOptions['peer']): Promise<void> {
    const driver = this.#python('controller.py');
    this.#driver = driver;
    const lines = createInterface({ input: driver.stdout as NodeJS.ReadableStream });
    const ready = once(lines, 'line');
    driver.stdin?.write(
      `${JSON.stringify({
        address: '127.0.0.1',
        port: PORT,
        clientCertificate: this.certificates.client,
        serverAuthority: this.certificates.serverAuthority,
        base: this.path('base'),
        certificates: this.path('certs'),
        storage: this.host.folder,
        amphora: AMPHORA_ID,
        vrrpAddress: '10.9.0.21',
        peer,
      })}\n`,
    );
    await ready;
    lines.on('line', (line) => this.#answers.shift()?.(JSON.parse(line) as DriverAnswer));
  }

  /** Starts a health manager with this key; answers its port. */
  async receiveHeartbeats(key: string): Promise<number> {
    const receiver = this.#python('health_manager.py', key);
    const lines = createInterface({ input: receiver.stdout as NodeJS.ReadableStream });
    const [port] = (await once(lines, 'line')) as [string];
    lines.on('line', (line) => this.heartbeats.push({ ...JSON.parse(line), key }));
    return Number(port);
  }

  #python(script: string, ...args: readonly string[]): ChildProcess {
    const path = fileURLToPath(new URL(script, import.meta.url));
    return this.host.network.start('node', PYTHON, path, ...args);
  }

  /** amphora-agent.conf, with a health manager on a port. */
  config(heartbeatPort: number, { topology = 'SINGLE', key = KEY } = {}): string {
    return `[DEFAULT]
debug = False

[haproxy_amphora]
base_cert_dir = ${this.path('certs')}
base_path = ${this.path('base')}
bind_host = 127.0.0.1
bind_port = ${PORT}
haproxy_cmd = ${haproxyExecutable.includes('/') ? haproxyExecutable : '/usr/sbin/haproxy'}

[health_manager]
controller_ip_port_list = 127.0.0.1:${heartbeatPort}
heartbeat_interval = 1
heartbeat_key = ${key}

[amphora_agent]
agent_server_ca = ${this.certificates.clientAuthority}
agent_server_cert = ${this.certificates.server}
agent_request_read_timeout = 180
amphora_id = ${AMPHORA_ID}
agent_tls_protocol = TLSv1.2

[controller_worker]
loadbalancer_topology = ${topology}
`;
  }
}

function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

/** The rights of the unit, in the words of setpriv(1). */
function unitRights(): readonly string[] {
  const unit = readFileSync(new URL('../../../systemd/headgate-amphora.service', import.meta.url), 'utf8');
  return [...unit.matchAll(/^CapabilityBoundingSet=(.*)$/gm)].flatMap(([, names = '']) =>
    names.split(' ').map((name) => name.replace('CAP_', '+').toLowerCase()),
  );
}
