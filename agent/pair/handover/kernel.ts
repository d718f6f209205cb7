// What a planned failover asks of the kernel, by `ip`, `nft` and `ss`: addresses on the loopback interface that end by
// themselves, the rules that pass connections on, and how many there are. Fails with COMMAND_FAILED throughout.

import { unlink, writeFile } from 'node:fs/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { parseAddress } from '../../base/ip.ts';
import { boolean, listOf, number, object, string } from '../../base/validate.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { Link } from '../peers/report.ts';
import { CONNECTIONS, type Connection, connectionsIn } from './connections.ts';
import { type Diversion, renderDiversion, renderRemoval } from './diversion.ts';

export interface KernelSettings {
  /** A network namespace by its name in /run/netns; '' for the agent's own. */
  readonly netns: string;
  /** The interface of the VIPs, and this host's own address on it, as they are now. */
  readonly place: () => { readonly interface: string; readonly address: string };
  /** The name of the table that is this agent's alone. */
  readonly table: string;
  /** A folder for files that are there for a moment. */
  readonly scratch: string;
}

/** A Diversion of this host. */
export type OwnDiversion = Omit<Diversion, 'table' | 'device'>;

/** Milliseconds. */
const PATIENCE = 10_000;

export class HandoverKernel {
  readonly #settings: KernelSettings;

  constructor(settings: KernelSettings) {
    this.#settings = settings;
  }

  /** What keeps this host from serving VIPs that the peer has, '' where nothing does. */
  whyNotLend(): Promise<string> {
    const { device } = this.#place;
    return faultOf(async () => {
      const values = await Promise.all(
        ['all', device].map((name) => this.#run('cat', [`/proc/sys/net/ipv4/conf/${name}/arp_ignore`])),
      );
      const ignore = Math.max(...values.map(Number));
      if (ignore === 1 || ignore === 2) return '';
      return `It would answer ARP for them: set net/ipv4/conf/${device}/arp_ignore to 1, it is ${ignore}`;
    });
  }

  /** What keeps this host from passing connections on, '' where nothing does. */
  whyNotDivert(): Promise<string> {
    const peer = { ether: '02:00:00:00:00:01', v4: '192.0.2.1', v6: 'fe80::1' };
    const sample = { peer, vips: [], own: [], seconds: 1, ...this.#place };
    return faultOf(async () => {
      await this.#nft(renderDiversion(sample), ['-c']);
      return '';
    });
  }

  /** Where this host is on the network of the VIPs. */
  async link(): Promise<Link> {
    const { interface: device, address } = this.#settings.place();
    const shown = await this.#run('ip', ['-j', 'address', 'show', 'dev', device]);
    return parseLink(shown, address);
  }

  /** Has this host take packets to these addresses, and send from them, for so many seconds, whoever holds them. */
  async lend(vips: readonly string[], seconds: number): Promise<void> {
    const others = permanentIn(await this.#run('ip', ['-j', 'address', 'show', 'dev', 'lo']));
    const lines = vips
      .filter((vip) => !others.has(vip))
      .map((vip) => `address replace ${single(vip)} valid_lft ${seconds} preferred_lft 0\n`);
    await this.#ip(lines);
  }

  /** Ends that; those that have ended already are no fault. */
  async takeBack(vips: readonly string[]): Promise<void> {
    const lent = lentIn(await this.#run('ip', ['-j', 'address', 'show', 'dev', 'lo']));
    const lines = vips.filter((vip) => lent.has(vip)).map((vip) => `address del ${single(vip)}\n`);
    if (lines.length > 0) await this.#ip(lines);
  }

  /** Replaces the rules that there are. */
  divert(diversion: OwnDiversion): Promise<void> {
    return this.#nft(renderDiversion({ ...diversion, ...this.#place }));
  }

  endDiversion(): Promise<void> {
    return this.#nft(renderRemoval(this.#settings.table));
  }

  /** Of clients to these addresses, without those that have ended. */
  async connections(vips: readonly string[]): Promise<readonly Connection[]> {
    return connectionsIn(await this.#run('ss', CONNECTIONS), new Set(vips));
  }

  get #place(): { readonly table: string; readonly device: string } {
    const { table, place } = this.#settings;
    return { table, device: place().interface };
  }

  #ip(lines: readonly string[]): Promise<void> {
    return this.#withFile('addresses', lines.join(''), (path) => this.#run('ip', ['-force', '-batch', path]));
  }

  #nft(text: string, flags: readonly string[] = []): Promise<void> {
    return this.#withFile('rules', text, (path) => this.#run('nft', [...flags, '-f', path]));
  }

  async #withFile(name: string, text: string, use: (path: string) => Promise<unknown>): Promise<void> {
    const path = `${this.#settings.scratch}/handover-${name}`;
    await writeFile(path, text, { mode: 0o600 });
    await use(path).finally(() => unlink(path));
  }

  /** Its output. */
  async #run(program: string, words: readonly string[]): Promise<string> {
    const [outer, args] = inNamespace(this.#settings.netns, program, words);
    const { exitCode, stdout, stderr } = await runCommand(outer, args, { timeout: PATIENCE });
    if (exitCode === 0) return stdout;
    const said = stderr.trim().split('\n')[0]?.slice(0, 200);
    throw new HeadgateError(
      'COMMAND_FAILED',
      `Program "${program}" failed: ${said || `exit status ${exitCode}`}`,
    );
  }
}

async function faultOf(look: () => Promise<string>): Promise<string> {
  return look().catch(messageOf);
}

/** v4 with the scope of the host, so that nobody takes it for an address to connect from. */
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

/** From `ip -j address show`: the one of VRRP, and of the other family one that no host could share. */
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

/** From `ip -j address show dev lo`: what ends by itself. */
export function lentIn(json: string): ReadonlySet<string> {
  return addressesIn(json, true);
}

function permanentIn(json: string): ReadonlySet<string> {
  return addressesIn(json, false);
}

function addressesIn(json: string, isLent: boolean): ReadonlySet<string> {
  const all = shownInterfaces.parse(JSON.parse(json)).flatMap(({ addr_info = [] }) => addr_info);
  const wanted = all.filter(({ dynamic = false }) => dynamic === isLent);
  return new Set(wanted.map(({ local = '' }) => parseAddress(local)?.address ?? ''));
}
