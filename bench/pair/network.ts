// The network of a pair: two hosts, a client and a member, each in its own network namespace, on one bridge in the
// namespace of this process (isolated.ts). A namespace exists only while a process holds it, so nothing remains after the
// benchmark.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { start } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';

export type HostName = 'a' | 'b';
type Place = HostName | 'client' | 'member';

const PLACES: readonly Place[] = ['a', 'b', 'client', 'member'];
/** The address that moves with the VIPs and is the next hop of most of them. */
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
    // Four of five VIPs are behind the anchor; the others are neighbours of the client.
    run([...network.within('client'), 'ip', 'route', 'add', '10.10.0.0/16', 'via', ANCHOR]);
    return network;
  }

  /** A command that executes the words after it in the place's network. */
  within(place: Place): readonly string[] {
    return ['nsenter', `--net=/proc/${this.#holders.get(place)}/ns/net`];
  }

  address(place: Place): string {
    return `10.9.0.${11 + PLACES.indexOf(place)}`;
  }

  /** The addresses on a host's interface except its own. */
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

  /** The processes of keepalived on a host, its parent first. */
  keepalived(host: HostName): readonly number[] {
    return this.processes(host).filter((pid) => nameOf(pid) === 'keepalived');
  }

  /** Simulates a loss of power: stops all processes and cuts the link. */
  fail(host: HostName): void {
    this.freeze(host);
    this.cut(host);
  }

  recover(host: HostName): void {
    this.join(host);
    this.thaw(host);
  }

  /** Stops all processes; the kernel still answers for the host's addresses. */
  freeze(host: HostName): void {
    for (const pid of this.processes(host)) signal(pid, 'SIGSTOP');
  }

  thaw(host: HostName): void {
    for (const pid of this.processes(host)) signal(pid, 'SIGCONT');
  }

  /** Cuts the host off. Its link stays up, as behind a switch. */
  cut(host: HostName): void {
    run(['ip', 'link', 'set', portOf(host), 'nomaster']);
  }

  join(host: HostName): void {
    run(['ip', 'link', 'set', portOf(host), 'master', 'br0']);
  }

  async #add(scratch: Scratch, place: Place): Promise<void> {
    const own = readlinkSync('/proc/self/ns/net');
    const holder = start(scratch, `net-${place}`, 'unshare', ['--net', 'sleep', 'infinity']);
    await until(`The network of ${place} exists`, () => networkOf(holder.pid) !== own);
    this.#holders.set(place, holder.pid);
    const there = ['peer', 'name', 'eth0', 'netns', String(holder.pid)];
    run(['ip', 'link', 'add', portOf(place), 'type', 'veth', ...there]);
    // The kernel removes the links of an ended namespace with a delay.
    scratch.defer(() => void run(['ip', 'link', 'delete', portOf(place)]));
    run(['ip', 'link', 'set', portOf(place), 'master', 'br0', 'up']);
    for (const sysctl of SYSCTLS) run([...this.within(place), 'sysctl', '-qw', `net.ipv4.${sysctl}`]);
    run([...this.within(place), 'ip', 'link', 'set', 'lo', 'up']);
    run([...this.within(place), 'ip', 'address', 'add', `${this.address(place)}/16`, 'dev', 'eth0']);
    run([...this.within(place), 'ip', 'link', 'set', 'eth0', 'up']);
  }
}

/** The bridge's port of a place. */
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
    // The process has ended.
  }
}

export function run([program = '', ...args]: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}
