// The network of a pair for benchmarks: two hosts, a client and a member, each in a network namespace of its own, on one
// bridge in the namespace of this process (isolated.ts). A namespace is there for as long as a process holds it, so that
// nothing is left behind, however the benchmark ends.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { start } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';

export type HostName = 'a' | 'b';
type Place = HostName | 'client' | 'member';

const PLACES: readonly Place[] = ['a', 'b', 'client', 'member'];
/** Goes where the VIPs go. */
export const ANCHOR = '10.9.0.1';
/** As docs/high-availability.md asks for. */
const SYSCTLS = ['ip_nonlocal_bind=1', 'conf.all.arp_announce=2', 'conf.all.arp_ignore=1'];

export class PairNetwork {
  readonly #holders = new Map<Place, number>();

  static async make(scratch: Scratch): Promise<PairNetwork> {
    const network = new PairNetwork();
    run(['ip', 'link', 'set', 'lo', 'up']);
    run(['ip', 'link', 'add', 'br0', 'type', 'bridge']);
    scratch.defer(() => void run(['ip', 'link', 'delete', 'br0']));
    run(['ip', 'link', 'set', 'br0', 'up']);
    for (const place of PLACES) await network.#add(scratch, place);
    // The client is its own router: four of five VIPs are behind the anchor, the others are its neighbours.
    run([...network.within('client'), 'ip', 'route', 'add', '10.10.0.0/16', 'via', ANCHOR]);
    return network;
  }

  /** A command that becomes what follows it, there. */
  within(place: Place): readonly string[] {
    return ['nsenter', `--net=/proc/${this.#holders.get(place)}/ns/net`];
  }

  address(place: Place): string {
    return `10.9.0.${11 + PLACES.indexOf(place)}`;
  }

  /** The addresses on a host's interface besides its own. */
  held(host: HostName): readonly string[] {
    const text = run([...this.within(host), 'ip', '-o', 'address', 'show', 'dev', 'eth0']);
    return [...text.matchAll(/ inet (\S+)\/32 /g)].map(([, address = '']) => address);
  }

  /** The processes of a host. */
  processes(host: HostName): readonly number[] {
    const holder = this.#holders.get(host) ?? 0;
    const network = networkOf(holder);
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== holder && networkOf(pid) === network);
  }

  /** Those of them that run keepalived, its parent first. */
  keepalived(host: HostName): readonly number[] {
    return this.processes(host).filter((pid) => nameOf(pid) === 'keepalived');
  }

  /** As its power would be lost: nothing runs there any more, and nothing gets out. */
  fail(host: HostName): void {
    this.freeze(host);
    this.cut(host);
  }

  recover(host: HostName): void {
    this.join(host);
    this.thaw(host);
  }

  /** Nothing runs there any more, but for the kernel, which goes on answering for the addresses that it has. */
  freeze(host: HostName): void {
    for (const pid of this.processes(host)) signal(pid, 'SIGSTOP');
  }

  thaw(host: HostName): void {
    for (const pid of this.processes(host)) signal(pid, 'SIGCONT');
  }

  /** Nothing gets in or out. Its link stays up, as behind a switch. */
  cut(host: HostName): void {
    run(['ip', 'link', 'set', portOf(host), 'nomaster']);
  }

  join(host: HostName): void {
    run(['ip', 'link', 'set', portOf(host), 'master', 'br0']);
  }

  async #add(scratch: Scratch, place: Place): Promise<void> {
    const own = readlinkSync('/proc/self/ns/net');
    const holder = start(scratch, `net-${place}`, 'unshare', ['--net', 'sleep', 'infinity']);
    await until(`The network of ${place} is there`, () => networkOf(holder.pid) !== own);
    this.#holders.set(place, holder.pid);
    const there = ['peer', 'name', 'eth0', 'netns', String(holder.pid)];
    run(['ip', 'link', 'add', portOf(place), 'type', 'veth', ...there]);
    // A namespace that has ended keeps its links for a moment.
    scratch.defer(() => void run(['ip', 'link', 'delete', portOf(place)]));
    run(['ip', 'link', 'set', portOf(place), 'master', 'br0', 'up']);
    for (const sysctl of SYSCTLS) run([...this.within(place), 'sysctl', '-qw', `net.ipv4.${sysctl}`]);
    run([...this.within(place), 'ip', 'link', 'set', 'lo', 'up']);
    run([...this.within(place), 'ip', 'address', 'add', `${this.address(place)}/16`, 'dev', 'eth0']);
    run([...this.within(place), 'ip', 'link', 'set', 'eth0', 'up']);
  }
}

/** Of the bridge. */
function portOf(place: Place): string {
  return `to-${place}`;
}

function networkOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return '';
  }
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

function run([program = '', ...args]: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}
