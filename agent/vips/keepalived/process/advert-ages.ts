// How long ago the advertisements of other hosts were heard, by the kernel's clock: a small table of nftables that is
// there for as long as somebody wants to know, and lets everything pass. Needs `nft`, and no raw socket.

import { HeadgateError } from '../../../base/errors.ts';
import { loadTemplate } from '../../../base/template.ts';
import { inNamespace } from '../../../host/namespace.ts';
import { runCommand } from '../../../host/run-command.ts';
import type { VrrpSettings } from '../../vrrp.ts';

const template = loadTemplate('keepalived/adverts');

/** For which the kernel remembers an advertisement. */
const SECONDS = 10;
/** Milliseconds. */
const PATIENCE = 2_000;

export class AdvertAges {
  readonly #netns: string;
  readonly #table: string;

  /** `netns`: a network namespace by its name in /run/netns; '' for the agent's own. */
  constructor(netns: string, { instances }: Pick<VrrpSettings, 'instances'>) {
    this.#netns = netns;
    // Its number is this agent's alone on this network.
    this.#table = `headgate_adverts_${instances[0]?.virtualRouterId}`;
  }

  /** From now on the kernel remembers when it heard one, of these virtual routers. Errors: COMMAND_FAILED. */
  async begin(routers: readonly number[], peers: readonly string[]): Promise<void> {
    await this.#nft([renderAdverts(this.#table, routers, peers)]);
  }

  /** Milliseconds by virtual router, at the least; without those that have not been heard. Errors: COMMAND_FAILED. */
  async read(): Promise<ReadonlyMap<number, number>> {
    return agesIn(await this.#nft(['list', 'table', 'inet', this.#table]));
  }

  /** Errors: COMMAND_FAILED. */
  async end(): Promise<void> {
    await this.#nft(['delete', 'table', 'inet', this.#table]);
  }

  async #nft(words: readonly string[]): Promise<string> {
    const [program, args] = inNamespace(this.#netns, 'nft', words);
    const { exitCode, stdout, stderr } = await runCommand(program, args, { timeout: PATIENCE });
    if (exitCode === 0) return stdout;
    throw new HeadgateError(
      'COMMAND_FAILED',
      `Program "nft" failed: ${stderr.trim().split('\n')[0]?.slice(0, 200)}`,
    );
  }
}

/** The rules, in place of those that are there. `peers` are all of one family. */
export function renderAdverts(table: string, routers: readonly number[], peers: readonly string[]): string {
  const isV6 = peers[0]?.includes(':') ?? false;
  const [ip, type] = isV6 ? ['ip6', 'ipv6_addr'] : ['ip', 'ipv4_addr'];
  const words = { ip, type, seconds: SECONDS, peers: peers.join(', ') };
  return template({ table, routers: routers.map((id) => ({ id, ...words })) });
}

/**
 * From what `nft list table` says. Its JSON has whole seconds only (1.0.6); its text has `expires 9s996ms`, `expires 9s`
 * or `expires 996ms`.
 */
export function agesIn(text: string): ReadonlyMap<number, number> {
  const ages = new Map<number, number>();
  for (const [, id, set = ''] of text.matchAll(/^\s*set heard_(\d{1,3}) \{\n([^{}]*(?:\{[^{}]*\})?)/gm)) {
    // Of several hosts that advertise, as two masters do, the latest counts.
    for (const [, seconds = 0, milliseconds = 0] of set.matchAll(
      / expires (?:(\d{1,2})s)?(?:(\d{1,3})ms)?/g,
    )) {
      const age = SECONDS * 1_000 - Number(seconds) * 1_000 - Number(milliseconds);
      ages.set(Number(id), Math.min(age, ages.get(Number(id)) ?? age));
    }
  }
  return ages;
}
