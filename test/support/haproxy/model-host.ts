// A host that serves load balancers of the model with a real HAProxy and the agent's dataplane: what the agent does after
// translation.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { serial } from '../../../agent/base/serial.ts';
import type { PemTexts } from '../../../agent/haproxy/config/certificate-files.ts';
import { HaproxyDataplane } from '../../../agent/haproxy/dataplane.ts';
import { masterPid, stopHaproxy } from '../../../agent/haproxy/instance/process.ts';
import { type HaproxyPaths, haproxyPaths } from '../../../agent/haproxy/paths.ts';
import { askOnce } from '../../../agent/haproxy/socket/ask-once.ts';
import { parseMap } from '../../../agent/haproxy/socket/readings.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { readSettings } from '../../../agent/settings/settings.ts';
import { eventually } from '../basics/eventually.ts';
import { endWithUs } from '../basics/leftovers.ts';
import { silentLog } from '../values/silent-log.ts';
import { haproxyExecutable } from './haproxy.ts';

export interface ModelHostOptions {
  readonly flags?: readonly string[];
  readonly pems?: PemTexts;
}

export class ModelHost {
  readonly paths: HaproxyPaths;
  readonly desired = new Map<string, LoadBalancer>();
  /** Reloads of this agent, and its repairs. */
  reloads = 0;
  repairs = 0;
  /** The kinds of commands that HAProxy has carried out, in their order. */
  acknowledged: string[] = [];
  readonly #folder: string;
  readonly #flags: readonly string[];
  readonly #pems: PemTexts | undefined;
  readonly #rounds = serial();
  #dataplane: HaproxyDataplane;

  /** Serves these until the end of the test. */
  static async start(
    t: ExecutionContext<unknown>,
    loadBalancers: readonly LoadBalancer[],
    { flags = [], pems }: ModelHostOptions = {},
  ): Promise<ModelHost> {
    const folder = await mkdtemp(join(tmpdir(), 'headgate-'));
    const host = new ModelHost(folder, flags, pems);
    t.teardown(async () => {
      await host.endAgent();
      await stopHaproxy(host.paths, 0);
      // A round of the monitor may still write a file.
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    });
    for (const each of loadBalancers) host.desired.set(each.key, each);
    await host.#begin();
    endWithUs((await masterPid(host.paths)) ?? 0, folder);
    return host;
  }

  private constructor(folder: string, flags: readonly string[], pems: PemTexts | undefined) {
    this.#folder = folder;
    this.#flags = flags;
    this.#pems = pems;
    this.paths = haproxyPaths(folder, folder);
    this.#dataplane = this.#newDataplane();
  }

  get dataplane(): HaproxyDataplane {
    return this.#dataplane;
  }

  /** Resolves when all of it has been sent. */
  async serve(...loadBalancers: readonly LoadBalancer[]): Promise<void> {
    for (const each of loadBalancers) this.desired.set(each.key, each);
    await this.#round(loadBalancers.map(({ key }) => key));
  }

  async remove(key: string): Promise<void> {
    this.desired.delete(key);
    await this.#round([key]);
  }

  /** Resolves when HAProxy is proved to have the desired state, also after a reload. */
  async settled(): Promise<void> {
    const pending = async (): Promise<readonly string[]> =>
      [...this.desired.keys()].filter((key) => this.#dataplane.served(key) === 'pending');
    await eventually(pending, ({ length }) => length === 0);
  }

  /** The agent ends and another one begins; HAProxy continues. */
  async restartAgent(): Promise<void> {
    await this.endAgent();
    this.#dataplane = this.#newDataplane();
    await this.#begin();
  }

  async endAgent(): Promise<void> {
    await this.#dataplane.close();
    await this.#rounds.idle();
  }

  /** HAProxy's answer to one line. */
  ask(line: string): Promise<string> {
    return askOnce(this.paths.adminSocket, line);
  }

  /** The rows of a map: `KEY VALUE`, sorted. */
  async rows(map: string): Promise<readonly string[]> {
    const answer = await this.ask(`show map ${join(this.paths.routes, map)}`);
    return Array.from(parseMap(answer), ({ key, value }) => `${key} ${value}`).sort();
  }

  async #begin(): Promise<void> {
    await this.#dataplane.start();
    await this.#round([...this.desired.keys()]);
    await this.settled();
  }

  #round(keys: readonly string[]): Promise<void> {
    return this.#rounds.run(async () => {
      await this.#dataplane.apply(this.#dataplane.plan(keys));
    });
  }

  #newDataplane(): HaproxyDataplane {
    const argv = ['--state-dir', this.#folder, '--runtime-dir', this.#folder, '--haproxy', haproxyExecutable];
    const settings = readSettings({ argv: [...argv, ...this.#flags], env: {}, readFile: () => '' });
    const nothing = (): void => undefined;
    return new HaproxyDataplane({
      settings,
      desired: this.desired,
      ...(this.#pems && { pems: this.#pems }),
      replan: (keys) => void this.#round([...keys]),
      metrics: {
        commandsAcknowledged: (kind) => void this.acknowledged.push(kind),
        commandRefused: nothing,
        repaired: () => void this.repairs++,
        reloaded: () => void this.reloads++,
        ejected: nothing,
        persisted: nothing,
      },
      log: silentLog(),
    });
  }
}
