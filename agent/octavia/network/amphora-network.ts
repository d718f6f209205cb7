// The network of an amphora: finds interfaces by MAC, moves them into the namespace, and keeps addresses, routes and rules as
// Octavia's controller has plugged them, also over a reboot. Requests run one after another.

import { writeFile } from 'node:fs/promises';
import { sleep } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { parseAddress } from '../../base/ip.ts';
import { type Serial, serial } from '../../base/serial.ts';
import type { Log } from '../../host/log.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { AmphoraNetwork, InterfaceRule, NetworkPlug, VipPlug } from '../parts.ts';
import { announceAddresses } from './announce-addresses.ts';
import { applyInterface } from './apply-interface.ts';
import { checkNetworkPlug, checkRules, checkVipPlug } from './check-plug.ts';
import type { Link } from './found-network.ts';
import { IpProgram } from './ip-program.ts';
import { makeNamespace } from './make-namespace.ts';
import { packetRules } from './packet-rules.ts';
import { readPlugged, writePlugged } from './plugged-file.ts';
import { type Plugged, type Topology, vipsOf, wantedInterface } from './wanted-interface.ts';

export interface NetworkOptions {
  /** The name of the namespace. */
  readonly netns: string;
  /** The file that remembers what was plugged. */
  readonly file: string;
  readonly topology: () => Topology;
  /** The program. */
  readonly nft: string;
  readonly log: Log;
  /** The namespace in which Nova's interfaces appear; the agent's own by default. */
  readonly hostNetns?: string;
  /** Makes the kernel look for interfaces. */
  readonly rescanFile?: string;
}

/** By the reference: a controller's `keepalived.conf` may have this name in it before the plug. */
const VIP_INTERFACE = 'eth1';
const RESCAN_FILE = '/sys/bus/pci/rescan';
const NFT_TIMEOUT_MS = 10_000;

export class Network implements AmphoraNetwork {
  readonly #options: NetworkOptions;
  readonly #ip: IpProgram;
  readonly #host: IpProgram;
  readonly #turns: Serial = serial();
  #plugged: readonly Plugged[] = [];
  #isRead = false;

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.#ip = new IpProgram(options.netns);
    this.#host = new IpProgram(options.hostNetns ?? '');
  }

  /** An interface that is missing or cannot be set up is logged. Errors: COMMAND_FAILED, FILE_READ. */
  restore(): Promise<void> {
    return this.#turns.run(async () => {
      await this.#prepare();
      // First, because an SR-IOV interface must not be open for a moment.
      await this.#filter();
      for (const plugged of this.#plugged) {
        try {
          await this.#moveIn(plugged.mac, plugged.name);
          await this.#apply(plugged);
        } catch (error) {
          this.#options.log.error(`Cannot make ${plugged.name} again`, { error: messageOf(error) });
        }
      }
    });
  }

  /** Errors: OCTAVIA_INVALID, OCTAVIA_NO_INTERFACE; OCTAVIA_EXISTS if it is plugged already; COMMAND_FAILED, FILE_WRITE. */
  plugVip(plug: VipPlug): Promise<string> {
    return this.#turns.run(async () => {
      const { mac, mtu, isSriov, ...vip } = checkVipPlug(plug);
      await this.#prepare();
      const known = this.#plugged.find((each) => each.mac === mac);
      if (known !== undefined && (await this.#linkOf(mac)) !== undefined) {
        // An agent that was killed in the middle of the first request has left it half done.
        await this.#filter();
        await this.#apply(known);
        throw new HeadgateError('OCTAVIA_EXISTS', 'Interface already exists', { retry: 'never' });
      }
      const fields = { mac, mtu, isSriov, vip, fixed: known?.fixed ?? [], rules: known?.rules };
      await this.#plug({ name: VIP_INTERFACE, ...fields });
      return VIP_INTERFACE;
    });
  }

  /** Errors: OCTAVIA_INVALID, OCTAVIA_NO_INTERFACE, COMMAND_FAILED, FILE_WRITE. */
  plugNetwork(plug: NetworkPlug): Promise<{ readonly name: string; readonly isKnown: boolean }> {
    return this.#turns.run(async () => {
      const { mac, mtu, fixed, vip, isSriov } = checkNetworkPlug(plug);
      await this.#prepare();
      const link = await this.#linkOf(mac);
      const known = this.#plugged.find((each) => each.mac === mac);
      const name = link?.name ?? known?.name ?? (await this.#nextName());
      const isVips = vip !== undefined || known?.vip !== undefined;
      await this.#plug({
        name,
        mac,
        mtu: mtu ?? known?.mtu,
        fixed,
        // What the plug of the VIPs has said stays if this request is about subnets of members alone.
        vip: isVips ? (vip ?? known?.vip) : undefined,
        isSriov: isVips ? (vip?.isSriov ?? known?.isSriov ?? false) : isSriov,
        rules: known?.rules,
      });
      await this.#announce(
        name,
        fixed.map(({ address }) => address),
      );
      return { name, isKnown: link !== undefined };
    });
  }

  async interfaceOf(address: string): Promise<string | undefined> {
    const canonical = parseAddress(address)?.address;
    const { addresses } = await this.#ip.found();
    return addresses.find((each) => each.address === canonical)?.device;
  }

  /** Errors: OCTAVIA_INVALID; OCTAVIA_NOT_FOUND if no interface has the address; COMMAND_FAILED, FILE_WRITE. */
  setRules(address: string, rules: readonly InterfaceRule[]): Promise<void> {
    return this.#turns.run(async () => {
      const checked = checkRules(rules);
      await this.#prepare();
      const name = await this.interfaceOf(address);
      const plugged = this.#plugged.find((each) => each.name === name);
      if (plugged === undefined)
        throw new HeadgateError('OCTAVIA_NOT_FOUND', 'Error interface not found for IP address');
      await this.#remember({ ...plugged, isSriov: true, rules: checked });
      await this.#filter();
    });
  }

  async announce(): Promise<void> {
    if (this.#options.topology() !== 'SINGLE') return;
    for (const plugged of this.#plugged) await this.#announce(plugged.name, vipsOf(plugged));
  }

  traffic(): Promise<ReadonlyMap<string, { readonly tx: number; readonly rx: number }>> {
    return this.#ip.traffic();
  }

  async #prepare(): Promise<void> {
    await makeNamespace(this.#options.netns, this.#host, this.#ip);
    if (this.#isRead) return;
    const { file, log } = this.#options;
    this.#plugged = await readPlugged(file).catch((error: unknown) => {
      // The controller plugs again what it misses, which writes the file again.
      if (!(error instanceof HeadgateError) || error.retry !== 'never') throw error;
      log.error('Begins without the interfaces that were plugged', { error: messageOf(error) });
      return [];
    });
    this.#isRead = true;
  }

  /** Remembers it first, so that an agent that is killed meanwhile finishes it at its next start. */
  async #plug(plugged: Plugged): Promise<void> {
    if ((await this.#linkOf(plugged.mac)) === undefined && (await this.#outside(plugged.mac)) === undefined)
      return this.#missing();
    await this.#remember(plugged);
    await this.#moveIn(plugged.mac, plugged.name);
    await this.#filter();
    await this.#apply(plugged);
  }

  async #remember(plugged: Plugged): Promise<void> {
    const others = this.#plugged.filter(({ mac, name }) => mac !== plugged.mac && name !== plugged.name);
    const all = [...others, plugged].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
    await writePlugged(this.#options.file, all);
    this.#plugged = all;
  }

  async #moveIn(mac: string, name: string): Promise<void> {
    const inside = await this.#linkOf(mac);
    if (inside?.name === name) return;
    if (inside !== undefined) {
      await this.#ip.run('link', 'set', 'dev', inside.name, 'down');
      await this.#ip.run('link', 'set', 'dev', inside.name, 'name', name);
      return;
    }
    const outside = await this.#outside(mac);
    if (outside === undefined) return this.#missing();
    const { netns } = this.#options;
    await this.#host.run('link', 'set', 'dev', outside.name, 'netns', netns, 'name', name);
  }

  /** The kernel may not have noticed yet what Nova has plugged. */
  async #missing(): Promise<never> {
    const { rescanFile = RESCAN_FILE } = this.#options;
    await writeFile(rescanFile, '1', { flag: 'r+' }).catch(() => undefined);
    throw new HeadgateError('OCTAVIA_NO_INTERFACE', 'No suitable network interface found', {
      retry: 'later',
    });
  }

  async #apply(plugged: Plugged): Promise<void> {
    const { topology, log } = this.#options;
    const wanted = wantedInterface(plugged, topology());
    if (await applyInterface(wanted, { ip: this.#ip, wait: sleep, log }))
      log.info(`Set ${plugged.name} up`, { mac: plugged.mac });
  }

  async #filter(): Promise<void> {
    const { netns, nft } = this.#options;
    const [program, args] = inNamespace(netns, nft, ['-f', '-']);
    const input = packetRules(this.#plugged);
    const { exitCode, stderr } = await runCommand(program, args, { timeout: NFT_TIMEOUT_MS, input });
    if (exitCode !== 0)
      throw new HeadgateError('COMMAND_FAILED', `Cannot load the rules of the interfaces: ${stderr.trim()}`);
  }

  /** A machine beside that is not told finds out by itself, so that this fails nothing. */
  async #announce(name: string, addresses: readonly string[]): Promise<void> {
    const { netns, log } = this.#options;
    try {
      const link = (await this.#ip.links()).find((each) => each.name === name);
      if (link !== undefined) await announceAddresses(netns, link, addresses);
    } catch (error) {
      log.warn(`Cannot announce the addresses of ${name}`, { error: messageOf(error) });
    }
  }

  async #linkOf(mac: string): Promise<Link | undefined> {
    return (await this.#ip.links()).find((each) => each.mac === mac);
  }

  async #outside(mac: string): Promise<Link | undefined> {
    return (await this.#host.links()).find((each) => each.mac === mac);
  }

  /** The lowest that neither is there nor was plugged. */
  async #nextName(): Promise<string> {
    const taken = new Set([...(await this.#ip.links()), ...this.#plugged].map(({ name }) => name));
    for (let number = 2; ; number++) if (!taken.has(`eth${number}`)) return `eth${number}`;
  }
}
