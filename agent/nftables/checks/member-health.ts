// Which members of the kernel's listeners fail their checks, by the results of HAProxy or of the agent's own datagrams. A
// result counts until there is another, so that neither a HAProxy that is away nor a restart of the agent moves a slot.
// Why: docs/design/decisions/0039-kernel-members-checked-by-haproxy.md

import type { Clock } from '../../base/clock.ts';
import { sameValue } from '../../base/same-value.ts';
import type { MemberFact } from '../../dataplane/forwarder.ts';
import type { Listener, LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { objectOf, ownerOfListener } from '../../model/names.ts';
import { type DownMembers, isForKernel } from '../rules/kernel-listener.ts';
import { ProbeProgram } from './probe-program.ts';
import { isCheckedByUdp, UdpChecks, type UdpChecksOptions } from './udp-checks.ts';
import { probeUdp } from './udp-probe.ts';

type Result = Pick<MemberFact, 'isDown' | 'cause'>;

export interface MemberHealthOptions {
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** HAProxy's results for the members of a listener, by name. */
  readonly resultsOf: (listener: string) => ReadonlyMap<string, Result>;
  readonly refusals: UdpChecksOptions['refusals'];
  /** The network namespace of the VIPs; '' for the agent's own. */
  readonly netns: string;
  /** Members of these load balancers went down or up. */
  readonly onChanged: (keys: readonly OwnerKey[]) => void;
  readonly probe?: NonNullable<UdpChecksOptions['probe']>;
  readonly clock?: Clock;
}

const NONE: DownMembers = new Map();
const BEFORE = 'it failed its checks before the agent started';

export class MemberHealth {
  readonly #options: MemberHealthOptions;
  /** By listener; also those without a member that is down. A value does not change. */
  readonly #down = new Map<string, DownMembers>();
  readonly #udp: UdpChecks;
  /** Sends from another network namespace. */
  readonly #program: ProbeProgram | undefined;

  constructor(options: MemberHealthOptions) {
    const { desired, netns, probe, onChanged } = options;
    this.#options = options;
    this.#program = netns === '' || probe !== undefined ? undefined : new ProbeProgram(netns);
    this.#udp = new UdpChecks({
      ...options,
      probe: probe ?? this.#program?.udp ?? probeUdp,
      wasDown: (listener, member) => this.down(listener).has(member),
      onChecked: (listener, checks) => {
        if (this.#learn(listener, checks) && desired.has(ownerOfListener(listener.name)))
          onChanged([ownerOfListener(listener.name)]);
      },
    });
  }

  /** Members that an agent before this one has found down, by listener. */
  restore(down: ReadonlyMap<string, readonly string[]>): void {
    for (const [listener, members] of down)
      this.#down.set(listener, new Map(members.map((member) => [member, BEFORE])));
  }

  /** The same value until a result changes it. Of a listener that HAProxy has served, HAProxy has results already. */
  down(listener: Listener): DownMembers {
    const { name } = listener;
    if (!this.#isChecked(listener)) return NONE;
    if (!this.#down.has(name)) this.#learn(listener, this.#options.resultsOf(name));
    return this.#down.get(name) ?? NONE;
  }

  /** Members of these load balancers, or their monitors, have changed. */
  changed(keys: Iterable<OwnerKey>): void {
    this.#udp.changed(keys);
  }

  /** HAProxy has other results for these load balancers. */
  checked(keys: readonly OwnerKey[]): void {
    const { desired, resultsOf, onChanged } = this.#options;
    const changed = keys.filter((key) => {
      const listeners = desired.get(key)?.listeners.filter((each) => this.#isCheckedByHaproxy(each)) ?? [];
      return listeners.map((each) => this.#learn(each, resultsOf(each.name))).includes(true);
    });
    if (changed.length > 0) onChanged(changed);
  }

  forget(listener: string): void {
    this.#down.delete(listener);
  }

  /** The program that sends from another network namespace does not run. */
  problemsOf({ key, listeners }: LoadBalancer): readonly Problem[] {
    const fault = this.#program?.fault ?? '';
    if (fault === '' || !listeners.some(isCheckedByUdp)) return [];
    const message = `Cannot check its members by UDP from network namespace "${this.#options.netns}": ${fault}`;
    return [{ object: objectOf(key), reason: 'MonitorNotUsed', message }];
  }

  close(): void {
    this.#udp.close();
    this.#program?.close();
  }

  #isChecked(listener: Listener): boolean {
    return isCheckedByUdp(listener) || this.#isCheckedByHaproxy(listener);
  }

  #isCheckedByHaproxy(listener: Listener): boolean {
    return listener.pool.monitor !== undefined && isForKernel(listener) && !isCheckedByUdp(listener);
  }

  /** True if a member went down or up, or fails for another cause. */
  #learn({ name, pool }: Listener, results: ReadonlyMap<string, Result>): boolean {
    const before = this.#down.get(name) ?? NONE;
    this.#down.set(name, before);
    const after = new Map<string, string>();
    for (const member of pool.members) {
      const result = results.get(member.name);
      const last = before.get(member.name);
      if (result?.isDown === undefined) {
        if (last !== undefined) after.set(member.name, last);
      } else if (result.isDown) after.set(member.name, result.cause);
    }
    if (sameValue([...before], [...after])) return false;
    this.#down.set(name, after);
    return true;
  }
}
