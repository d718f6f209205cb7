// A load-balancer host for tests, set up as a user does it: its own folders and loopback addresses, the process
// `bin/headgate run`, and the HAProxy that it starts. Ends all its processes with the test.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { agentSocketPath, askAgent } from '../../../agent/answer/agent-socket.ts';
import { GRACE_MS } from '../../../agent/haproxy/config/render-context.ts';
import { type HaproxyPaths, haproxyPaths } from '../../../agent/haproxy/paths.ts';
import { askOnce } from '../../../agent/haproxy/socket/ask-once.ts';
import { showProc } from '../../../agent/haproxy/socket/master.ts';
import { parseInfo } from '../../../agent/haproxy/socket/readings.ts';
import { parseServersState, type ServerState } from '../../../agent/haproxy/socket/servers-state.ts';
import type { ServiceExplanation } from '../../../agent/report/answers/explain.ts';
import type { AgentStatus } from '../../../agent/report/answers/status.ts';
import { atOnce } from '../basics/at-once.ts';
import { Deadline } from '../basics/deadline.ts';
import { haproxyExecutable } from '../haproxy/haproxy.ts';
import { reachableHaproxy } from '../haproxy/reachable-haproxy.ts';
import { ask, type Place } from '../traffic/traffic.ts';
import { type Json, VIP_PORT, type Web, webObjects } from '../values/service-objects.ts';
import { ownNetwork } from './own-network.ts';

/** Tests of a file with an agent that are at work at once. */
const turnOf = atOnce(4);

const headgate = fileURLToPath(new URL('../../../bin/headgate', import.meta.url));

/** Milliseconds: much more than the work takes on an idle machine, and much less than the interval of audits. */
const SOON = 12_000;
/** Milliseconds for any event on a busy machine; less than the interval of audits. */
const PATIENCE = 25_000;
/** Milliseconds for the start of an agent, which compiles its code and reads all objects. */
const START = 60_000;

export interface HostOptions {
  /** Flags of `run` and of every command, in addition to those of the folders. */
  readonly flags?: readonly string[];
  /** New Services land, as by default; without it most tests would have to follow two HAProxies. */
  readonly landing?: boolean;
  /** The HAProxy program; a function creates one in the host's directory and returns its path. */
  readonly haproxy?: string | ((directory: string) => Promise<string>);
  /**
   * An ordinary user who owns the folders and runs all processes; only for root.
   */
  readonly uid?: number;
  /** Additional environment variables of `run`. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface CommandResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** The sum of a metric over all series with these labels; NaN without a series. */
export type ReadMetric = (name: string, labels?: Readonly<Record<string, string>>) => number;

export class TestHost {
  readonly directory: string;
  readonly manifestDir: string;
  readonly stateDir: string;
  readonly runtimeDir: string;
  readonly paths: HaproxyPaths;
  /** The paths of the landing. */
  readonly landing: HaproxyPaths;
  /** The program of the next start; a change is an upgrade. */
  headgate = headgate;
  /** The host's own loopback network. */
  readonly #network: string;
  readonly #options: HostOptions;
  /** The path of its HAProxy program. */
  readonly haproxyProgram: string;
  #agent: RunningAgent | undefined;

  /** Ends and removes everything with the test. */
  static async create(
    t: Pick<ExecutionContext<unknown>, 'teardown'> & { timeout(milliseconds: number): void },
    options: HostOptions = {},
  ): Promise<TestHost> {
    t.timeout(270_000);
    await turnOf(t);
    const directory = await mkdtemp(join(tmpdir(), 'hg-'));
    const ofAll = options.uid === undefined ? haproxyExecutable : reachableHaproxy;
    const { haproxy = ofAll } = options;
    const host = new TestHost(
      directory,
      await ownNetwork(t),
      options,
      typeof haproxy === 'function' ? await haproxy(directory) : haproxy,
    );
    t.teardown(() => host.#dispose());
    await chmod(directory, 0o755);
    for (const folder of [host.manifestDir, host.stateDir, host.runtimeDir]) {
      await mkdir(folder);
      if (options.uid !== undefined) await chown(folder, options.uid, options.uid);
    }
    return host;
  }

  private constructor(directory: string, network: string, options: HostOptions, haproxy: string) {
    this.directory = directory;
    this.#network = network;
    this.#options = options;
    this.haproxyProgram = haproxy;
    [this.manifestDir, this.stateDir, this.runtimeDir] = ['m', 's', 'r'].map((name) =>
      join(directory, name),
    ) as [string, string, string];
    this.paths = haproxyPaths(this.stateDir, this.runtimeDir);
    this.landing = haproxyPaths(this.stateDir, this.runtimeDir, 'owner', 'haproxy-landing');
  }

  /** An address that no other test has; `last` from 1 to 254. */
  address(last: number): string {
    return `${this.#network}.${last}`;
  }

  /** Writes objects, or a text, into a file of the manifest folder. */
  async write(file: string, content: readonly Json[] | string): Promise<void> {
    const text =
      typeof content === 'string' ? content : content.map((each) => JSON.stringify(each)).join('\n---\n');
    const draft = join(this.manifestDir, `.${file}.draft`);
    await writeFile(draft, `${text}\n`);
    await rename(draft, join(this.manifestDir, file));
  }

  /** Writes a Service, by default `default/web` at address 1 with the member at address 11. */
  serve(web: Partial<Web> = {}): Promise<void> {
    const { name = 'web' } = web;
    const all = { name, address: this.address(1), members: [this.address(11)], ...web };
    return this.write(`${name}.yaml`, webObjects(all));
  }

  /** The address and port to which clients of the Service connect. */
  place(last = 1): Place {
    return { address: this.address(last), port: VIP_PORT };
  }

  /** Whether a member answers at the address. */
  async answers(last = 1, from = this.address(99)): Promise<boolean> {
    return ask({ ...this.place(last), from }).then(
      () => true,
      () => false,
    );
  }

  remove(file: string): Promise<void> {
    return unlink(join(this.manifestDir, file));
  }

  /** Starts `headgate run` and waits only for the process. A host runs one agent at a time. */
  async launch(flags: readonly string[] = []): Promise<RunningAgent> {
    const identity = this.#identity();
    const child = spawn(this.headgate, ['run', ...this.#flags(), '--listen', '127.0.0.1:0', ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...identity,
      env: { ...identity.env, ...this.#options.env },
    });
    this.#agent = new RunningAgent(child);
    await once(child, 'spawn');
    return this.#agent;
  }

  /** Starts `headgate run`; resolves when /readyz answers that it is ready. */
  async start(flags: readonly string[] = []): Promise<RunningAgent> {
    const agent = await this.launch(flags);
    await this.until('the agent is ready', async () => agent.hasExited || (await agent.isReady()), START);
    if (agent.hasExited) throw new Error(`The agent has ended: ${agent.text}`);
    return agent;
  }

  /** As start(), and waits for the landing, which comes up after the main HAProxy: until then new Services go to that. */
  async startWithLanding(flags: readonly string[] = []): Promise<RunningAgent> {
    const agent = await this.start(flags);
    const isUp = ({ message, haproxy }: LogLine): boolean =>
      haproxy === 'landing' && /^(?:Started|Adopted the running) HAProxy$/.test(String(message));
    await this.until('the landing is up', async () => agent.log.some(isUp), START);
    return agent;
  }

  /** Runs another command of `headgate` with the flags of this host. */
  async command(name: string, args: readonly string[] = []): Promise<CommandResult> {
    const child = spawn(this.headgate, [name, ...args, ...this.#flags()], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...this.#identity(),
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
    });
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, stdout, stderr };
  }

  /** The value that `headgate status --json` prints, without a process. */
  async status(): Promise<AgentStatus> {
    return (await askAgent(agentSocketPath(this.runtimeDir), 'status')) as AgentStatus;
  }

  /** The value that `headgate why --json` prints. */
  async why(service = 'default/web'): Promise<ServiceExplanation> {
    return (await askAgent(agentSocketPath(this.runtimeDir), 'why', { service })) as ServiceExplanation;
  }

  /** Sends a command to the active worker's admin socket; a replaced worker answers there for a moment. */
  async haproxy(line: string): Promise<string> {
    for (const until = performance.now() + 4 * GRACE_MS; ; await delay(10)) {
      const [info = '', ...answer] = (await askOnce(this.paths.adminSocket, `show info;${line}`)).split(
        '\n\n',
      );
      if (!parseInfo(info).stopping || performance.now() > until) return answer.join('\n\n');
    }
  }

  async worker(): Promise<number> {
    return parseInfo(await this.haproxy('show info')).pid;
  }

  async master(): Promise<number> {
    return Number.parseInt(await readFile(this.paths.pidFile, 'utf8'), 10);
  }

  /** Kills HAProxy's master and this worker, which may have ended with its master. */
  async killHaproxy(worker: number): Promise<void> {
    process.kill(await this.master(), 'SIGKILL');
    try {
      process.kill(worker, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  /** The number of reloads of the running master. */
  async reloads(): Promise<number> {
    let reloads = 0;
    // The master does not answer during a reload.
    await this.until('the master answers', async () => {
      ({ reloads } = (await showProc(this.paths.masterSocket)).master);
      return true;
    });
    return reloads;
  }

  /** HAProxy's servers. */
  async servers(): Promise<readonly ServerState[]> {
    const all = [...parseServersState(await this.haproxy('show servers state'))];
    return all.filter(({ backend }) => !backend.startsWith('headgate:'));
  }

  config(): Promise<string> {
    return readFile(this.paths.config, 'utf8');
  }

  /** The content of a file in the state folder. */
  stateFile(name: string): Promise<string> {
    return readFile(join(this.stateDir, name), 'utf8');
  }

  /** The contents of all files in the state folder. */
  async filesInState(): Promise<readonly string[]> {
    const entries = await readdir(this.stateDir, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')));
  }

  /** Checks until the condition holds. Errors: not within `timeout` milliseconds, or later on a busy machine. */
  until(what: string, condition: () => Promise<boolean>, timeout = PATIENCE): Promise<void> {
    return this.#until(what, condition, timeout, new Deadline(timeout, 30));
  }

  /** The same for work that the agent does at once, before the next audit. */
  soon(what: string, condition: () => Promise<boolean>): Promise<void> {
    return this.#until(what, condition, SOON, new Deadline(SOON, SOON));
  }

  async #until(
    what: string,
    condition: () => Promise<boolean>,
    timeout: number,
    deadline: Deadline,
  ): Promise<void> {
    for (let last: unknown; ; await deadline.pause()) {
      try {
        if (await condition()) return;
        last = 'the condition does not hold';
      } catch (error) {
        last = error;
      }
      if (!deadline.isOver) continue;
      const said = (await readFile(this.paths.log, 'utf8').catch(() => '')).slice(-2_000);
      throw new Error(
        `Not within ${timeout} ms: ${what} (${last})\n${this.#agent?.text.slice(-6_000)}\nHAProxy:\n${said}`,
      );
    }
  }

  #flags(): readonly string[] {
    const { flags = [], landing = false } = this.#options;
    const folders = ['--manifests', this.manifestDir, '--state-dir', this.stateDir];
    const own = ['--runtime-dir', this.runtimeDir, '--haproxy', this.haproxyProgram];
    return [...folders, ...own, ...(landing ? [] : ['--no-landing']), ...flags];
  }

  #identity(): { readonly env: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number } {
    const { uid } = this.#options;
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith('HEADGATE_')),
    );
    return uid === undefined ? { env } : { env, uid, gid: uid };
  }

  async #dispose(): Promise<void> {
    await this.#agent?.kill();
    // The command lines of HAProxy's processes and of commands contain this directory.
    for (let left = processesOf(this.directory); left.length > 0; left = processesOf(this.directory)) {
      for (const pid of left) signal(pid, 'SIGKILL');
      await delay(10);
    }
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** `headgate run` as a process. */
export class RunningAgent {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The exit status, or null if a signal ended the agent. */
  readonly exited: Promise<number | null>;
  #text = '';

  constructor(child: ChildProcess) {
    this.child = child;
    this.pid = child.pid ?? 0;
    this.exited = once(child, 'close').then(([status]) => status as number | null);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.#text += chunk;
      });
    }
  }

  get hasExited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** The agent's output so far. */
  get text(): string {
    return this.#text;
  }

  /** The lines of the agent's log. */
  get log(): readonly LogLine[] {
    return this.#text
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as LogLine);
  }

  /** Whether a line of the log after `from` lines has this text in its message or fields. */
  hasLogged(text: string, from = 0): boolean {
    return this.log.slice(from).some((line) => JSON.stringify(line).includes(text));
  }

  /** The agent's URL, when it listens. */
  get url(): string | undefined {
    const line = this.log.find(({ message }) => message === 'Headgate runs');
    return line && `http://${line.listen}`;
  }

  async get(path: string): Promise<{ readonly status: number; readonly text: string }> {
    if (this.url === undefined) throw new Error('The agent does not listen yet');
    const response = await fetch(`${this.url}${path}`, { headers: { connection: 'close' } });
    return { status: response.status, text: await response.text() };
  }

  async isReady(): Promise<boolean> {
    return this.url !== undefined && (await this.get('/readyz')).status === 200;
  }

  async metrics(): Promise<ReadMetric> {
    const { text } = await this.get('/metrics');
    const samples = [...text.matchAll(/^([a-z_]+)(?:\{([^}]*)\})? (\S+)$/gm)];
    return (name, labels = {}) => {
      const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      const values = samples
        .filter(([, own, set = '']) => own === name && wanted.every((each) => set.split(',').includes(each)))
        .map(([, , , value]) => Number(value));
      return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value);
    };
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Sends SIGTERM; resolves with the exit status. */
  stop(): Promise<number | null> {
    this.signal('SIGTERM');
    return this.exited;
  }

  /** Sends SIGKILL. May be called twice. */
  async kill(): Promise<void> {
    if (!this.hasExited) this.signal('SIGKILL');
    await this.exited;
  }
}

/** Sends a signal to a process that may have ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended.
  }
}

/** The pids of all processes whose command line contains a path below this directory. */
export function processesOf(directory: string): readonly number[] {
  const isOurs = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${directory}/`);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isOurs(name))
    .map(Number);
}
