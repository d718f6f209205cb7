// The lower bound of the work on the kernel path: it loads one map from Service and number to member, then sends each change
// directly to `nft -i`. It validates nothing, handles no fault, and moves clients whenever members change.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { NftSession } from '../../agent/nftables/table/session.ts';
import type { Scratch } from '../support/scratch.ts';
import type { PlainService } from './plain-service.ts';

/** Numbers of a Service, which its members share. */
const NUMBERS = 10;

export class BoundKernel {
  readonly #session: NftSession;
  readonly #services = new Map<string, PlainService>();

  private constructor(session: NftSession, services: readonly PlainService[]) {
    this.#session = session;
    for (const service of services) this.#services.set(service.name, service);
  }

  static async start(scratch: Scratch, services: readonly PlainService[]): Promise<BoundKernel> {
    const file = scratch.path('bound.nft');
    const elements = services.map((service) => `add element ip bound members { ${entries(service)} }\n`);
    writeFileSync(file, RULES + elements.join(''));
    execFileSync('nft', ['-f', file]);
    const session = new NftSession({ program: 'nft', netns: '' });
    scratch.defer(() => session.close());
    return new BoundKernel(session, services);
  }

  /** Resolves when nft has answered. */
  async change(service: PlainService): Promise<() => Promise<void>> {
    const before = this.#services.get(service.name) ?? service;
    this.#services.set(service.name, service);
    const line = `delete element ip bound members { ${keys(before)} }; add element ip bound members { ${entries(service)} }`;
    const answer = await this.#session.ask(line);
    if (answer !== '') throw new Error(`nft: ${answer}`);
    return async () => undefined;
  }
}

const RULES = `table ip bound {
  map members { type ipv4_addr . inet_service . mark : ipv4_addr . inet_service; }
  chain out {
    type nat hook output priority -100; policy accept;
    meta mark set numgen random mod ${NUMBERS}
    dnat ip to ip daddr . tcp dport . meta mark map @members
  }
  chain post {
    type nat hook postrouting priority srcnat; policy accept;
    ct status dnat masquerade
  }
}
`;

function keys({ vip, port }: PlainService): string {
  return Array.from({ length: NUMBERS }, (_, at) => `${vip} . ${port} . ${at}`).join(', ');
}

function entries({ vip, port, members }: PlainService): string {
  const all = [...members];
  const entry = (at: number): string =>
    `${vip} . ${port} . ${at} : ${(all[at % all.length] ?? '').replace(':', ' . ')}`;
  return Array.from({ length: NUMBERS }, (_, at) => entry(at)).join(', ');
}
