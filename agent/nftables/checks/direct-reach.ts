// Which direct members this host reaches without a router, by its routes: a router would send a packet to the VIP back here. A
// member that is not known to be on a network of this host gets nothing.

import { Rounds } from '../../base/rounds.ts';
import { sameValue } from '../../base/same-value.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { Listener, LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { DownMembers } from '../rules/kernel-listener.ts';

export interface DirectReachOptions {
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  readonly netns: string;
  /** Members of these load balancers can be reached, or no longer. */
  readonly onChanged: (keys: readonly OwnerKey[]) => void;
  readonly routes?: typeof readRoutes;
}

const INTERVAL_MS = 5_000;
const TIMEOUT_MS = 5_000;
const UNKNOWN = 'its route is not known yet';
const NONE: DownMembers = new Map();

export class DirectReach {
  readonly #options: DirectReachOptions;
  readonly #rounds: Rounds;
  /** Key: an address; value: why it cannot be reached, '' if it can. */
  #known: ReadonlyMap<string, string> = new Map();
  readonly #values = new WeakMap<Listener, DownMembers>();

  constructor(options: DirectReachOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: () => this.check(),
      onFailed: () => undefined,
    });
  }

  /** Resolves when the members of the moment are known. */
  async start(): Promise<void> {
    this.#rounds.start();
    if (this.#addresses().size > 0) await this.#rounds.now();
  }

  close(): void {
    this.#rounds.close();
  }

  /** Members that get nothing, by name, with the cause; the same value until one changes. */
  unreached(listener: Listener): DownMembers {
    if (listener.sourceAddress !== 'direct') return NONE;
    const last = this.#values.get(listener);
    if (last !== undefined) return last;
    const value = new Map<string, string>();
    let isUnknown = false;
    for (const { name, address } of listener.pool.members) {
      const why = this.#known.get(address);
      isUnknown ||= why === undefined;
      if (why !== '') value.set(name, why ?? UNKNOWN);
    }
    this.#values.set(listener, value);
    if (isUnknown) void this.#rounds.now();
    return value;
  }

  problemsOf({ key, listeners }: LoadBalancer): readonly Problem[] {
    return listeners.flatMap((listener) => {
      const [first] = [...this.unreached(listener)].filter(([, why]) => why !== UNKNOWN);
      if (first === undefined) return [];
      const { protocol, port } = listener;
      const message = `Member ${first[0]} of ${protocol} port ${port} gets nothing: ${first[1]}; "headgate.io/members": "direct" needs members on a network of the load balancer`;
      return [
        { object: objectOf(key), reason: 'InvalidEndpoint' as const, message, port: { protocol, port } },
      ];
    });
  }

  /** Errors: COMMAND_FAILED. */
  async check(): Promise<void> {
    const { desired, netns, onChanged, routes = readRoutes } = this.#options;
    const addresses = this.#addresses();
    const known = addresses.size === 0 ? new Map<string, string>() : await routes(netns, [...addresses]);
    const before = this.#known;
    this.#known = known;
    const changed: OwnerKey[] = [];
    for (const { key, listeners } of desired.values())
      for (const listener of listeners) {
        const last = this.#values.get(listener);
        if (last === undefined) continue;
        this.#values.delete(listener);
        if (!sameValue([...last], [...this.unreached(listener)]) && !changed.includes(key)) changed.push(key);
      }
    if (before !== known && changed.length > 0) onChanged(changed);
  }

  #addresses(): ReadonlySet<string> {
    const addresses = new Set<string>();
    for (const { listeners } of this.#options.desired.values())
      for (const { sourceAddress, pool } of listeners)
        if (sourceAddress === 'direct') for (const { address } of pool.members) addresses.add(address);
    return addresses;
  }
}

/** By address, why it cannot be reached without a router; '' if it can. Errors: COMMAND_FAILED. */
export async function readRoutes(
  netns: string,
  addresses: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>(addresses.map((each) => [each, 'this host has no route to it']));
  for (const family of ['-4', '-6']) {
    const own = addresses.filter((each) => each.includes(':') === (family === '-6'));
    if (own.length === 0) continue;
    const [program, args] = inNamespace(netns, 'ip', [family, '-force', '-oneline', '-batch', '-']);
    const input = own.map((each) => `route get ${each}\n`).join('');
    const { stdout } = await runCommand(program, args, { timeout: TIMEOUT_MS, input });
    for (const line of stdout.split('\n')) {
      const [, kind = '', address = '', router = ''] =
        /^(local |blackhole |unreachable |prohibit )?(\S+) (?:from \S+ )?(?:via (?:inet6? )?(\S+) )?.*?dev /.exec(
          line,
        ) ?? [];
      if (!found.has(address)) continue;
      if (kind === 'local ') found.set(address, 'it is an address of this host');
      else if (router !== '') found.set(address, `the router ${router} is on the way to it`);
      else if (kind === '') found.set(address, '');
    }
    const [lister, words] = inNamespace(netns, 'ip', [family, 'route', 'show', 'table', 'all']);
    const routes = await runCommand(lister, words, { timeout: TIMEOUT_MS });
    for (const [, router = ''] of routes.stdout.matchAll(/ via (?:inet6? )?(\S+)/g))
      if (found.get(router) === '')
        found.set(router, 'it is a router of this host, which would send packets back');
  }
  return found;
}
