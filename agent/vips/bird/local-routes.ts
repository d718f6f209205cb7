// Makes VIPs local on this host, so that the kernel takes packets that a router leads here: a local route for each, which stays
// while a load balancer has the VIP, announced or not, so that connections continue when the route to this host is gone.
// A file names the routes of this agent, so that the next agent removes those that are not needed any more.

import { HeadgateError } from '../../base/errors.ts';
import { contentOf, replaceInMemory } from '../../host/atomic-file.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';

export interface LocalRoutesOptions {
  readonly netns: string;
  readonly file: string;
  /** All addresses that the kernel takes packets for. Errors: COMMAND_FAILED. */
  readonly read: (family: 'v4' | 'v6') => Promise<readonly string[]>;
}

/** Marks the agent's routes in the kernel; none that iproute2 names. */
const PROTOCOL = 243;

export class LocalRoutes {
  readonly #options: LocalRoutesOptions;
  /** undefined before the first add(). */
  #own: Set<string> | undefined;

  constructor(options: LocalRoutesOptions) {
    this.#options = options;
  }

  /** Adds the routes that this agent has not added yet. Errors: COMMAND_FAILED, FILE_WRITE. */
  async add(addresses: ReadonlySet<string>): Promise<void> {
    const own = await this.#known();
    const missing = [...addresses].filter((each) => !own.has(each));
    if (missing.length === 0) return;
    for (const each of missing) own.add(each);
    this.#record(own);
    // An address of an interface has a local route already, which stays.
    await this.#run(missing.map((each) => `route add local ${each} dev lo table local proto ${PROTOCOL}`));
  }

  /** Adds routes again that another process has removed. Errors: as add(). */
  async restore(): Promise<void> {
    const own = this.#own ?? new Set();
    const local = await this.#local([...own]);
    const gone = [...own].filter((each) => !local.has(each));
    await this.#run(gone.map((each) => `route add local ${each} dev lo table local proto ${PROTOCOL}`));
  }

  /** Removes the agent's routes of all other addresses. Errors: as add(). */
  async keepOnly(addresses: ReadonlySet<string>): Promise<void> {
    const own = await this.#known();
    const gone = [...own].filter((each) => !addresses.has(each));
    if (gone.length === 0) return;
    await this.#run(gone.map((each) => `route del local ${each} dev lo table local proto ${PROTOCOL}`));
    for (const each of gone) own.delete(each);
    this.#record(own);
  }

  async #known(): Promise<Set<string>> {
    this.#own ??= await this.#recorded();
    return this.#own;
  }

  async #local(addresses: readonly string[]): Promise<ReadonlySet<string>> {
    const { read } = this.#options;
    const found = new Set<string>();
    if (addresses.some((each) => !each.includes(':'))) for (const each of await read('v4')) found.add(each);
    if (addresses.some((each) => each.includes(':'))) for (const each of await read('v6')) found.add(each);
    return found;
  }

  /** A route that is there already, or gone, is no fault. */
  async #run(commands: readonly string[]): Promise<void> {
    if (commands.length === 0) return;
    const { netns } = this.#options;
    for (const family of ['-4', '-6']) {
      const own = commands.filter((each) => /local \S*:/.test(each) === (family === '-6'));
      if (own.length === 0) continue;
      const [program, args] = inNamespace(netns, 'ip', [family, '-force', '-batch', '-']);
      const { stderr } = await runCommand(program, args, { timeout: 30_000, input: `${own.join('\n')}\n` });
      const faults = stderr.split('\n').filter((line) => /^(RTNETLINK|Error|Cannot)/.test(line));
      const fault = faults.find((line) => !/File exists|No such process/.test(line));
      if (fault !== undefined) throw new HeadgateError('COMMAND_FAILED', `Cannot make VIPs local: ${fault}`);
    }
  }

  async #recorded(): Promise<Set<string>> {
    return new Set(
      (await contentOf(this.#options.file))?.split('\n').filter((line) => /^[0-9a-f.:]+$/.test(line)),
    );
  }

  #record(own: ReadonlySet<string>): void {
    replaceInMemory(this.#options.file, [...own].map((each) => `${each}\n`).join(''), 0o600);
  }
}
