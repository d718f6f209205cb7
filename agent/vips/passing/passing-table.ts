// The tables of passing as the kernel has them, by one `nft` for each transaction.

import { HeadgateError } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';

/** Packets since the tables were loaded. */
export interface PassingCounts {
  readonly passed: number;
  /** First packets of connections that were taken over. */
  readonly adopted: number;
  readonly strays: number;
  readonly limited: number;
}

export const NO_PASSED: PassingCounts = { passed: 0, adopted: 0, strays: 0, limited: 0 };

const TIMEOUT_MS = 10_000;

export class PassingTable {
  readonly name: string;
  readonly #nft: string;
  readonly #netns: string;

  constructor(nft: string, netns: string, name: string) {
    this.name = name;
    this.#nft = nft;
    this.#netns = netns;
  }

  /** One transaction. Errors: NFT_FAILED, COMMAND_FAILED. */
  async load(text: string): Promise<void> {
    const { exitCode, stderr } = await this.#run(['-f', '-'], text);
    if (exitCode !== 0)
      throw new HeadgateError(
        'NFT_FAILED',
        `nft refuses the rules of passing: ${stderr.trim().slice(0, 300)}`,
        {
          retry: 'later',
        },
      );
  }

  /** Whether rules can look for the socket of a packet, for which the kernel needs a module. */
  async findsSockets(): Promise<boolean> {
    const table =
      'table ip headgate_probe { chain pre { type filter hook prerouting priority 0; socket wildcard 0 accept; }; }';
    return (await this.#run(['-c', '-f', '-'], `${table}\n`)).exitCode === 0;
  }

  /** undefined if one of the tables is not there. Errors: COMMAND_FAILED. */
  async counts(families: readonly ('ip' | 'ip6')[]): Promise<PassingCounts | undefined> {
    let sum = NO_PASSED;
    for (const family of families) {
      const { exitCode, stdout } = await this.#run(['list', 'counters', 'table', family, this.name]);
      if (exitCode !== 0 || !stdout.includes('counter passed')) return undefined;
      const of = (name: string): number =>
        Number(new RegExp(`counter ${name} \\{\\s*packets (\\d+)`).exec(stdout)?.[1] ?? 0);
      sum = {
        passed: sum.passed + of('passed'),
        adopted: sum.adopted + of('adopted'),
        strays: sum.strays + of('strays'),
        limited: sum.limited + of('limited'),
      };
    }
    return sum;
  }

  #run(words: readonly string[], input = ''): ReturnType<typeof runCommand> {
    const [program, args] = inNamespace(this.#netns, this.#nft, words);
    return runCommand(program, args, { timeout: TIMEOUT_MS, input });
  }
}
