// Serves load balancers by the kernel path alone, without the agent's loop: each change is planned and applied at once, and
// again when the dataplane asks for it. Owns the dataplane.

import { sleep } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { serial } from '../../base/serial.ts';
import type { MemberFact } from '../../dataplane/forwarder.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer, OwnerKey } from '../../model/load-balancer.ts';
import { NftablesDataplane, type NftablesSettings } from '../../nftables/dataplane.ts';

export interface KernelServerOptions {
  readonly settings: NftablesSettings;
  /** The results of checks for the members of a listener. */
  readonly checkedMembers: (listener: string) => ReadonlyMap<string, MemberFact>;
  readonly log: Log;
}

/** Totals of one listener. */
export interface Traffic {
  readonly received: number;
  readonly sent: number;
  readonly flows: number;
}

/** The first load of all rules takes a second or two on a busy host. */
const SERVED_TIMEOUT_MS = 20_000;
const POLL_INTERVAL_MS = 10;
const NO_SOURCES = { groups: [], groupOf: () => 0 };

export class KernelServer {
  readonly #dataplane: NftablesDataplane;
  readonly #desired = new Map<OwnerKey, LoadBalancer>();
  readonly #turns = serial();
  readonly #log: Log;
  #isClosed = false;

  constructor({ settings, checkedMembers, log }: KernelServerOptions) {
    this.#log = log;
    this.#dataplane = new NftablesDataplane({
      settings,
      desired: this.#desired,
      replan: (keys) => void this.#apply([...keys]),
      onChanged: () => undefined,
      // Members see the address of the interface that leads to them.
      sources: () => NO_SOURCES,
      checkedMembers,
      metrics: { repaired: () => undefined },
      log,
    });
  }

  /** Replaces the rules of an agent before this one. */
  async start(balancers: readonly LoadBalancer[]): Promise<void> {
    for (const each of balancers) this.#desired.set(each.key, each);
    await this.#dataplane.start();
    await this.#apply(balancers.map(({ key }) => key));
  }

  /** Resolves when it is served. Errors: NFT_FAILED. */
  async put(balancer: LoadBalancer): Promise<void> {
    const { key } = balancer;
    this.#desired.set(key, balancer);
    for (const until = performance.now() + SERVED_TIMEOUT_MS; ; await sleep(POLL_INTERVAL_MS)) {
      await this.#apply([key]);
      const served = this.#dataplane.served(key);
      if (served === balancer || this.#desired.get(key) !== balancer) return;
      const [problem] = this.#dataplane.problemsOf(balancer).filter(({ reason }) => SEVERE.has(reason));
      if (served === 'pending' && performance.now() < until) continue;
      throw new HeadgateError('NFT_FAILED', problem?.message ?? 'The kernel does not have the rules in time');
    }
  }

  remove(key: OwnerKey): Promise<void> {
    this.#desired.delete(key);
    return this.#apply([key]);
  }

  /** There are other results of checks for this load balancer. */
  checked(key: OwnerKey): void {
    this.#dataplane.checked([key]);
  }

  serves(listener: string): boolean {
    return this.#dataplane.serves(listener);
  }

  members(listener: string): ReadonlyMap<string, MemberFact> {
    return this.#dataplane.members(listener);
  }

  /** Milliseconds since members have refused a packet of a client, by member. Never rejects. */
  refusals(): Promise<ReadonlyMap<string, number>> {
    return this.#dataplane.refusals();
  }

  /** By listener. */
  async traffic(): Promise<ReadonlyMap<string, Traffic>> {
    // This reads the counters.
    await this.#dataplane.families();
    return new Map(
      Array.from(this.#dataplane.traffic(), ({ name, total, bytesIn, bytesOut }) => [
        name,
        { flows: total, received: bytesIn, sent: bytesOut },
      ]),
    );
  }

  /** The rules stay. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turns.idle();
    await this.#dataplane.close();
  }

  /** Removes the rules, for tests. */
  stop(): Promise<void> {
    return this.#dataplane.stop();
  }

  #apply(keys: readonly OwnerKey[]): Promise<void> {
    return this.#turns
      .run(async () => {
        if (!this.#isClosed) await this.#dataplane.apply(this.#dataplane.plan(keys));
      })
      .catch((error: unknown) =>
        this.#log.error('Cannot change the rules of the kernel', { error: messageOf(error) }),
      );
  }
}

const SEVERE: ReadonlySet<string> = new Set(['ProtocolNotServed', 'ConfigurationRejected']);
