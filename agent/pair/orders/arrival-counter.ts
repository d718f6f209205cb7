// Counts the new connections to VIPs that arrive at this host while a host asks for it: a table of nftables that is there only for that
// time. What another host passes on is no new connection.

import { unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';

export interface ArrivalCounterOptions {
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  readonly nft: string;
  /** The table, which only this agent uses. */
  readonly table: string;
  /** A folder for temporary files. */
  readonly scratch: string;
}

/** What is counted. */
export interface Arriving {
  readonly vips: readonly string[];
  /** The kernel forwards UDP or SCTP, so that it tracks connections. */
  readonly hasDatagrams: boolean;
}

const COMMAND_TIMEOUT_MS = 10_000;

/** Errors of every method: COMMAND_FAILED. */
export class ArrivalCounter {
  readonly #options: ArrivalCounterOptions;

  constructor(options: ArrivalCounterOptions) {
    this.#options = options;
  }

  /** Counts from 0. */
  async open(arriving: Arriving): Promise<void> {
    const { table, scratch } = this.#options;
    const path = join(scratch, `${table}.nft`);
    await writeFile(path, renderArrivals(table, arriving), { mode: 0o600 });
    await this.#nft('-f', path).finally(() => unlink(path).catch(() => undefined));
  }

  /** How many have arrived since open(). */
  async read(): Promise<number> {
    const shown = await this.#nft('list', 'counter', 'inet', this.#options.table, 'arrived');
    const [, packets] = /\bpackets (\d{1,15})\b/.exec(shown) ?? [];
    if (packets === undefined) throw new HeadgateError('COMMAND_FAILED', 'nft shows no counter of arrivals');
    return Number(packets);
  }

  async close(): Promise<void> {
    await this.#nft('delete', 'table', 'inet', this.#options.table);
  }

  async #nft(...words: readonly string[]): Promise<string> {
    const [program, args] = inNamespace(this.#options.netns, this.#options.nft, words);
    const { exitCode, stdout, stderr } = await runCommand(program, args, { timeout: COMMAND_TIMEOUT_MS });
    if (exitCode === 0) return stdout;
    throw new HeadgateError('COMMAND_FAILED', `nft ${words[0]}: ${stderr.trim().slice(0, 300)}`);
  }
}

/** Replaces the table if it is there. */
export function renderArrivals(table: string, { vips, hasDatagrams }: Arriving): string {
  const [v4, v6] = [vips.filter((each) => !each.includes(':')), vips.filter((each) => each.includes(':'))];
  const set = (name: string, type: string, elements: readonly string[]) =>
    elements.length === 0 ? [] : [`  set ${name} { type ${type}; elements = { ${elements.join(', ')} }; }`];
  const lines = [
    `table inet ${table} {}`,
    `delete table inet ${table}`,
    `table inet ${table} {`,
    '  counter arrived { }',
    ...set('vips4', 'ipv4_addr', v4),
    ...set('vips6', 'ipv6_addr', v6),
    '  chain arriving {',
    '    tcp flags & (fin | syn | rst | ack) == syn counter name arrived',
    ...(hasDatagrams ? ['    meta l4proto { udp, sctp } ct state new counter name arrived'] : []),
    '  }',
    '  chain before {',
    '    type filter hook prerouting priority mangle - 5; policy accept;',
    // The agent itself tries its listeners.
    '    iif "lo" return',
    ...(v4.length > 0 ? ['    ip daddr @vips4 jump arriving'] : []),
    ...(v6.length > 0 ? ['    ip6 daddr @vips6 jump arriving'] : []),
    '  }',
    '}',
  ];
  return `${lines.join('\n')}\n`;
}
