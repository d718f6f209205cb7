// A machine on which Nova plugs interfaces of an amphora: its own namespace, where they appear, and the amphora's, which the
// agent makes. All on one bridge with a client.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { Network } from '../../../agent/octavia/network/amphora-network.ts';
import type { Topology } from '../../../agent/octavia/network/wanted-interface.ts';
import { TestNetwork } from '../host/namespaces.ts';
import { nftExecutable } from '../host/nft.ts';
import { silentLog } from '../values/silent-log.ts';

export class AmphoraHost {
  readonly network: TestNetwork;
  readonly folder: string;

  /** `amphorae`: the names of their namespaces. */
  static async create(
    t: Pick<ExecutionContext<unknown>, 'teardown'>,
    amphorae: readonly string[] = ['amphora'],
    clients: readonly string[] = ['client'],
  ): Promise<AmphoraHost> {
    const folder = await mkdtemp(join(tmpdir(), 'am-')); // paths of sockets are short;
    const network = await TestNetwork.create(t, [...clients, 'node', ...amphorae]);
    t.teardown(() => rm(folder, { recursive: true }));
    const host = new AmphoraHost(network, folder);
    // Only their names are of use: the agent makes them.
    for (const each of amphorae) await network.run('bridge', 'ip', 'netns', 'delete', network.netns(each));
    return host;
  }

  private constructor(network: TestNetwork, folder: string) {
    this.network = network;
    this.folder = folder;
  }

  /** What Nova does. `name`: as the kernel of the machine calls the interface first. */
  async plug(name: string, mac: string): Promise<void> {
    const peer = ['peer', 'name', name, 'address', mac, 'netns', this.network.netns('node')];
    await this.network.run('bridge', 'ip', 'link', 'add', `of-${name}`, 'type', 'veth', ...peer);
    await this.network.run('bridge', 'ip', 'link', 'set', `of-${name}`, 'master', 'br0', 'up');
  }

  /** The agent's part, as after a start of the agent: it knows what the file has. */
  networkOf(amphora = 'amphora', topology: Topology = 'SINGLE'): Network {
    return new Network({
      netns: this.network.netns(amphora),
      file: join(this.folder, `${amphora}-interfaces.json`),
      topology: () => topology,
      nft: nftExecutable,
      log: silentLog(),
      hostNetns: this.network.netns('node'),
      rescanFile: join(this.folder, 'rescan'),
    });
  }

  /** What `ip -json` shows in a namespace. */
  async show<T>(host: string, ...words: readonly string[]): Promise<readonly T[]> {
    const text = await this.network.run(host, 'ip', '-N', '-json', ...words);
    return text.trim() === '' ? [] : (JSON.parse(text) as readonly T[]);
  }

  /** All addresses but those of the link, with the interface and the prefix, sorted. */
  async addresses(host = 'amphora'): Promise<readonly string[]> {
    const shown = await this.show<{
      ifname?: string;
      addr_info?: readonly { local: string; prefixlen: number; scope: string }[];
    }>(host, 'address', 'show');
    return shown
      .flatMap(({ ifname, addr_info = [] }) =>
        addr_info
          .filter(({ scope }) => scope === '0' || scope === 'global')
          .map(({ local, prefixlen }) => `${ifname} ${local}/${prefixlen}`),
      )
      .sort();
  }

  /** Routes of protocol `static`, in the words of ip, sorted. */
  async routes(host = 'amphora'): Promise<readonly string[]> {
    const families = await Promise.all(
      ['-4', '-6'].map((family) =>
        this.network.run(host, 'ip', family, 'route', 'show', 'table', 'all', 'proto', 'static'),
      ),
    );
    return families
      .join('')
      .split('\n')
      .map((line) => line.replace(/ (metric|pref) \w+/g, '').trim())
      .filter((line) => line !== '')
      .sort();
  }

  async rules(host = 'amphora'): Promise<readonly string[]> {
    const families = await Promise.all(
      ['-4', '-6'].map((family) => this.network.run(host, 'ip', family, 'rule', 'show', 'table', '1')),
    );
    return families
      .join('')
      .split('\n')
      .map((line) => line.replace(/^\d+:\s+/, '').trim())
      .filter((line) => line !== '')
      .sort();
  }
}
