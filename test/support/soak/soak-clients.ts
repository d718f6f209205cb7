// Starts soak-client.ts on the host `client` and soak-members.ts on the host `m` of a test's network, and speaks with them.

import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestNetwork } from '../host/namespaces.ts';
import type { SoakReport, SoakTarget } from './soak-client.ts';

const program = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export interface MemberPorts {
  readonly first: number;
  readonly count: number;
  readonly udp: number;
}

/** Resolves when members answer at all these addresses. */
export async function startSoakMembers(
  network: TestNetwork,
  { first, count, udp }: MemberPorts,
  addresses: readonly string[],
): Promise<void> {
  for (const address of addresses)
    await network.run('m', 'ip', 'address', 'add', `${address}/16`, 'dev', 'eth0');
  const words = [first, count, udp].map(String);
  const child = network.start('m', process.execPath, program('soak-members.ts'), ...words, ...addresses);
  await nextLine(linesOf(child));
}

export class SoakClients {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #targets = new Map<string, SoakTarget>();
  #generation = 0;
  /** One question to the process after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(network: Pick<TestNetwork, 'start'>) {
    this.#child = network.start('client', process.execPath, program('soak-client.ts'));
    this.#lines = linesOf(this.#child);
  }

  /** From now on these are asked, too. Resolves when they are. */
  async add(...targets: readonly SoakTarget[]): Promise<void> {
    for (const target of targets) this.#targets.set(target.name, target);
    await this.#tell();
  }

  /** Kept connections are opened again, each before its next request. */
  async renew(): Promise<void> {
    this.#generation++;
    await this.#tell();
  }

  /** Resolves when no new request is sent there. */
  async remove(...names: readonly string[]): Promise<void> {
    for (const name of names) this.#targets.delete(name);
    await this.#tell();
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }

  report(): Promise<SoakReport> {
    return this.#ask('report').then((line) => JSON.parse(line) as SoakReport);
  }

  async #tell(): Promise<void> {
    const generation = this.#generation;
    await this.#ask(JSON.stringify([...this.#targets.values()].map((target) => ({ ...target, generation }))));
  }

  #ask(line: string): Promise<string> {
    const answer = this.#last.then(() => {
      this.#child.stdin?.write(`${line}\n`);
      return nextLine(this.#lines);
    });
    this.#last = answer.catch(() => undefined);
    return answer;
  }
}

function linesOf({ stdout }: ChildProcess): AsyncIterator<string> {
  if (stdout === null) throw new Error('Its output is not read');
  return createInterface({ input: stdout })[Symbol.asyncIterator]();
}

async function nextLine(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next();
  if (done) throw new Error('The process of the soak has ended');
  return value;
}
