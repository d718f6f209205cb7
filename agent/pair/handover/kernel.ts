// The kernel's part of a planned failover, by `ip`, `nft` and `ss`: addresses on the loopback interface that time out,
// the rules that pass connections on, and the list of connections. Errors of every method: COMMAND_FAILED.

import { unlink, writeFile } from 'node:fs/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { parseAddress } from '../../base/ip.ts';
import { boolean, listOf, number, object, string } from '../../base/validate.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { Link } from '../peers/report.ts';
import { type Connection, connectionsIn, SS_ARGUMENTS } from './connections.ts';
import { type Diversion, renderDiversion, renderRemoval } from './diversion.ts';

export interface KernelSettings {
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  /** The program: another version than that of the kernel path could not read its tables. */
  readonly nft: string;
  /** The interface of the VIPs and this host's own address on it, now. */
  readonly place: () => { readonly interface: string; readonly address: string };
  /** The name of the table, which only this agent uses. */
  readonly table: string;
  /** A folder for temporary files. */
  readonly scratch: string;
}

/** A Diversion of this host. */
export type OwnDiversion = Omit<Diversion, 'table' | 'device'>;

const COMMAND_TIMEOUT_MS = 10_000;

export class HandoverKernel {
  readonly #settings: KernelSettings;
  #files = 0;

  constructor(settings: KernelSettings) {
    this.#settings = settings;
  }

  /** Why this host cannot serve VIPs that the peer has, '' if it can. */
  async whyNotLend(): Promise<string> {
    const { device } = this.#place;
    const read = (name: string) => this.#run('cat', [`/proc/sys/net/ipv4/conf/${name}/arp_ignore`]);
    try {
      const ignore = Math.max(...(await Promise.all(['all', device].map(read))).map(Number));
      if (ignore === 1 || ignore === 2) return '';
      return `It would answer ARP for them: set net/ipv4/conf/${device}/arp_ignore to 1, it is ${ignore}`;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Why this host cannot pass connections on, '' if it can. */
  async whyNotDivert(): Promise<string> {
    const peer = { ether: '02:00:00:00:00:01', v4: '192.0.2.1', v6: 'fe80::1' };
    const sample = { peer, vips: [], forwarded: [], own: [], seconds: 1, ...this.#place };
    return this.#nft(renderDiversion(sample), ['-c']).then(() => '', messageOf);
  }

  /** The place of this host on the network of the VIPs. */
  async link(): Promise<Link> {
    const { interface: device, address } = this.#settings.place();
    const shown = await this.#run('ip', ['-j', 'address', 'show', 'dev', device]);
    return parseLink(shown, address);
  }

  /** Lets this host receive packets to these addresses and send from them for so many seconds, also if the peer has them. */
  async lend(vips: readonly string[], seconds: number): Promise<void> {
    const others = permanentIn(await this.#run('ip', ['-j', 'address', 'show', 'dev', 'lo']));
    const lines = vips
      .filter((vip) => !others.has(vip))
      .map((vip) => `address replace ${single(vip)} valid_lft ${seconds} preferred_lft 0\n`);
    await this.#ip(lines);
  }

  /** Ends lend(); an address that has timed out is no fault. */
  async takeBack(vips: readonly string[]): Promise<void> {
    const lent = lentIn(await this.#run('ip', ['-j', 'address', 'show', 'dev', 'lo']));
    const lines = vips.filter((vip) => lent.has(vip)).map((vip) => `address del ${single(vip)}\n`);
    if (lines.length > 0) await this.#ip(lines);
  }

  /** Passes connections on; replaces the rules if there are any. */
  divert(diversion: OwnDiversion): Promise<void> {
    return this.#nft(renderDiversion({ ...diversion, ...this.#place }));
  }

  endDiversion(): Promise<void> {
    return this.#nft(renderRemoval(this.#settings.table));
  }

  /** The open connections of clients to these addresses. */
  async connections(vips: readonly string[]): Promise<readonly Connection[]> {
    return connectionsIn(await this.#run('ss', SS_ARGUMENTS), new Set(vips));
  }

  get #place(): { readonly table: string; readonly device: string } {
    const { table, place } = this.#settings;
    return { table, device: place().interface };
  }

  #ip(lines: readonly string[]): Promise<void> {
    return this.#withFile('addresses', lines.join(''), (path) => this.#run('ip', ['-force', '-batch', path]));
  }

  #nft(text: string, flags: readonly string[] = []): Promise<void> {
    return this.#withFile('rules', text, (path) => this.#run(this.#settings.nft, [...flags, '-f', path]));
  }

  async #withFile(name: string, text: string, use: (path: string) => Promise<unknown>): Promise<void> {
    // A check and a handover may be under way at once.
    const path = `${this.#settings.scratch}/handover-${name}-${++this.#files}`;
    await writeFile(path, text, { mode: 0o600 });
    await use(path).finally(() => unlink(path));
  }

  /** Gives the standard output. */
  async #run(program: string, words: readonly string[]): Promise<string> {
    const [outer, args] = inNamespace(this.#settings.netns, program, words);
    const { exitCode, stdout, stderr } = await runCommand(outer, args, { timeout: COMMAND_TIMEOUT_MS });
    if (exitCode === 0) return stdout;
    const [firstLine = ''] = stderr.trim().split('\n');
    const why = firstLine.slice(0, 200) || `exit status ${exitCode}`;
    throw new HeadgateError('COMMAND_FAILED', `Program "${program}" failed: ${why}`);
  }
}

/** IPv4 with the scope `host`, so that the kernel does not choose it as a source address. */
function single(vip: string): string {
  return vip.includes(':') ? `${vip}/128 dev lo nodad` : `${vip}/32 dev lo scope host`;
}

const shownInterfaces = listOf(
  object({
    address: string().nullish(),
    addr_info: listOf(
      object({
        local: string().nullish(),
        prefixlen: number().nullish(),
        scope: string().nullish(),
        dynamic: boolean().nullish(),
      }),
    ).nullish(),
  }),
);

/** From `ip -j address show`: the address of VRRP, and one of the other family that is not a VIP. */
export function parseLink(json: string, own: string): Link {
  const [{ address: ether = '', addr_info = [] } = {}] = shownInterfaces.parse(JSON.parse(json));
  const found = addr_info.map(({ local = '', ...rest }) => ({ ...rest, ...parseAddress(local) }));
  const v4 = found.find(({ family, prefixlen = 32 }) => family === 'v4' && prefixlen < 32);
  const v6 = found.find(({ family, scope }) => family === 'v6' && scope === 'link');
  const isV6 = own.includes(':');
  return {
    ether: ether.toLowerCase(),
    v4: isV6 ? (v4?.address ?? '') : own,
    v6: isV6 ? own : (v6?.address ?? ''),
  };
}

/** From `ip -j address show dev lo`: the addresses that time out. */
export function lentIn(json: string): ReadonlySet<string> {
  return addressesIn(json, true);
}

function permanentIn(json: string): ReadonlySet<string> {
  return addressesIn(json, false);
}

function addressesIn(json: string, isLent: boolean): ReadonlySet<string> {
  const all = shownInterfaces.parse(JSON.parse(json)).flatMap(({ addr_info = [] }) => addr_info);
  const matching = all.filter(({ dynamic = false }) => dynamic === isLent);
  return new Set(matching.map(({ local = '' }) => parseAddress(local)?.address ?? ''));
}
