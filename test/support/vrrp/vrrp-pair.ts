// Two load-balancer hosts with the real keepalived, each with its own announcer, on a test's network.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { OwnFiles } from '../../../agent/host/own-files.ts';
import type { Vip } from '../../../agent/model/load-balancer.ts';
import { KeepalivedAnnouncer } from '../../../agent/vips/keepalived/keepalived-announcer.ts';
import { type KeepalivedPaths, keepalivedPaths } from '../../../agent/vips/keepalived/paths.ts';
import { DumpReader, type InstanceDump } from '../../../agent/vips/keepalived/process/dump.ts';
import { findKeepalived, keepalivedProgram } from '../../../agent/vips/keepalived/process/process.ts';
import type { VrrpInstanceSettings, VrrpSettings } from '../../../agent/vips/vrrp.ts';
import { Deadline } from '../basics/deadline.ts';
import { TestNetwork } from '../host/namespaces.ts';
import { keepalivedExecutable } from './keepalived.ts';

export const ANCHOR = '10.9.0.1';

/** On a busy machine keepalived may wait for the processor for longer than three default intervals. */
const ADVERT_INTERVAL_MS = 500;

const INSTANCE: VrrpInstanceSettings = { virtualRouterId: 51, priority: 200, anchors: [ANCHOR, 'fd09::1'] };

/** The `n`th VIP, from 0. */
export function vip(n: number): string {
  return `10.9.${1 + Math.floor(n / 250)}.${1 + (n % 250)}`;
}

export function vips(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from }, (_, at) => vip(from + at));
}

export interface PairHostOptions {
  readonly instances?: readonly VrrpInstanceSettings[];
  readonly keepalived?: string;
  /** The family of the advertisements. */
  readonly family?: 'v4' | 'v6';
  /** Milliseconds. */
  readonly auditInterval?: number;
  readonly keepalivedSupervisor?: 'agent' | 'external';
}

/** One host; restart() replaces its announcer, as a restart of the agent does. */
export class PairHost {
  readonly name: string;
  readonly network: TestNetwork;
  readonly paths: KeepalivedPaths;
  readonly counted = new Map<string, number>();
  readonly #directory: string;
  #vrrp: VrrpSettings;
  readonly #keepalived: string;
  readonly #dumps: DumpReader;
  readonly #auditInterval: number;
  readonly #supervisor: 'agent' | 'external';
  #log = '';
  #ownFiles: OwnFiles | undefined;
  dataplane: KeepalivedAnnouncer;

  constructor(network: TestNetwork, name: string, peer: string, directory: string, options: PairHostOptions) {
    const { instances = [INSTANCE], keepalived = keepalivedExecutable, family = 'v4' } = options;
    this.#auditInterval = options.auditInterval ?? 30_000;
    this.#supervisor = options.keepalivedSupervisor ?? 'agent';
    this.name = name;
    this.network = network;
    this.#directory = directory;
    this.#keepalived = keepalived;
    this.#vrrp = {
      interface: 'eth0',
      address: network[family](name),
      peers: [network[family](peer)],
      advertInterval: ADVERT_INTERVAL_MS,
      instances,
    };
    this.paths = keepalivedPaths(join(directory, 's'), join(directory, 'r'));
    this.#dumps = new DumpReader(this.paths);
    this.dataplane = this.#make();
  }

  get log(): string {
    return this.#log;
  }

  want(addresses: readonly string[]): void {
    const vips = addresses.map((address): Vip => {
      return { address, family: address.includes(':') ? 'v6' : 'v4', source: 'status' };
    });
    this.dataplane.follow(['default/web'], new Map([['default/web', { vips }]]));
  }

  /** As at SIGHUP. */
  configure(change: Partial<VrrpSettings>): void {
    this.#vrrp = { ...this.#vrrp, ...change };
    this.dataplane.configure({ vrrp: this.#vrrp, auditInterval: this.#auditInterval });
  }

  /** A new agent with the files of the old one; `addresses` are its VIPs. */
  async restart(addresses: readonly string[]): Promise<void> {
    await this.dataplane.close();
    this.dataplane = this.#make();
    this.want(addresses);
    await this.dataplane.start();
  }

  async ask(): Promise<InstanceDump> {
    const { dumpSignal } = await keepalivedProgram(keepalivedExecutable);
    // On a busy machine with a thousand VIPs an answer may take longer than the agent waits for it.
    for (let attempts = 0; attempts < 5; attempts++) {
      const [dump] = (await this.#dumps.read((await findKeepalived(this.paths)) ?? 0, dumpSignal)) ?? [];
      if (dump !== undefined) return dump;
    }
    throw new Error(`keepalived on ${this.name} does not answer\n${this.#log}`);
  }

  state(instance = 0): string {
    return this.dataplane.status().instances[instance]?.state ?? '';
  }

  held(): Promise<readonly string[]> {
    return this.network.held(this.name);
  }

  config(): Promise<string> {
    return readFile(this.paths.config, 'utf8');
  }

  /** The process that speaks VRRP. */
  async vrrpPid(): Promise<number> {
    return Number.parseInt(await readFile(this.paths.vrrpPidFile, 'utf8'), 10);
  }

  async pid(): Promise<number> {
    return Number.parseInt(await readFile(this.paths.pidFile, 'utf8'), 10);
  }

  /** Kills both processes at once, so that no process removes the addresses. */
  async crash(): Promise<void> {
    const [pid, vrrpPid] = [await this.pid(), await this.vrrpPid()];
    process.kill(vrrpPid, 'SIGSTOP');
    for (const each of [pid, vrrpPid]) process.kill(each, 'SIGKILL');
  }

  async dispose(): Promise<void> {
    this.#ownFiles?.close();
    await this.dataplane.close();
    await this.dataplane.stop();
  }

  #make(): KeepalivedAnnouncer {
    const count = (what: string): void => {
      this.counted.set(what, (this.counted.get(what) ?? 0) + 1);
    };
    const write = (line: string): void => {
      this.#log += line;
    };
    const log = createLog({ level: 'debug', destination: { write }, format: 'json' });
    const announcer = new KeepalivedAnnouncer({
      settings: {
        stateDir: join(this.#directory, 's'),
        runtimeDir: join(this.#directory, 'r'),
        keepalived: this.#keepalived,
        keepalivedSupervisor: this.#supervisor,
        netns: this.network.netns(this.name),
        vrrp: this.#vrrp,
        auditInterval: this.#auditInterval,
      },
      log,
      metrics: {
        keepalivedReloaded: (result) => count(`reload ${result}`),
        repaired: (what) => count(what),
      },
    });
    announcer.onState(({ state }) => count(state));
    this.#ownFiles?.close();
    this.#ownFiles = new OwnFiles({ files: announcer.ownFiles, onRestored: count, log });
    this.#ownFiles.start();
    return announcer;
  }
}

export interface Pair {
  readonly network: TestNetwork;
  /** Has the lower address, so that it yields if the priorities are equal. */
  readonly a: PairHost;
  readonly b: PairHost;
}

export type PairOptions = { readonly a?: PairHostOptions; readonly b?: PairHostOptions };

/** Two hosts, on which keepalived does not run yet, and a client, until the end of the test. */
export async function createPair(t: ExecutionContext<unknown>, options: PairOptions = {}): Promise<Pair> {
  t.timeout(180_000);
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const network = await TestNetwork.create(t, ['a', 'b', 'client']);
  const a = new PairHost(network, 'a', 'b', join(directory, 'a'), options.a ?? {});
  const b = new PairHost(network, 'b', 'a', join(directory, 'b'), options.b ?? {});
  t.teardown(() => Promise.all([a.dispose(), b.dispose()]));
  return { network, a, b };
}

/** A pair with these VIPs: `b` is master, `a` is backup. */
export async function startPair(
  t: ExecutionContext<unknown>,
  addresses: readonly string[],
  options: PairOptions = {},
): Promise<Pair> {
  const pair = await createPair(t, options);
  for (const host of [pair.b, pair.a]) {
    host.want(addresses);
    await host.dataplane.start();
    host.dataplane.standing([]);
    if (host === pair.b) await until('b is master', async () => pair.b.state() === 'master', pair);
  }
  await until('a is backup', async () => pair.a.state() === 'backup', pair);
  return pair;
}

/** Waits for the condition; fails after `timeout` milliseconds with the logs of both agents. */
export async function until(
  what: string,
  condition: () => Promise<boolean>,
  { a, b }: Pick<Pair, 'a' | 'b'>,
  timeout = 30_000,
): Promise<void> {
  const deadline = new Deadline(timeout, 60);
  do {
    if (await condition()) return;
    await deadline.pause(20);
  } while (!deadline.isOver);
  throw new Error(`Not within ${timeout} ms: ${what}\na: ${a.log}\nb: ${b.log}`);
}
