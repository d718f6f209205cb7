// The lower bound of the work of an agent: it renders once, then sends each change directly to HAProxy's runtime socket.
// It validates nothing and handles no fault, so no agent can be faster.

import { type OwnHaproxy, startHaproxy } from '../support/haproxy.ts';
import type { Scratch } from '../support/scratch.ts';
import { type PlainService, plainConfig } from './plain-service.ts';
import { RuntimeSocket } from './runtime-socket.ts';

export class Bound {
  readonly haproxy: OwnHaproxy;
  readonly #socket: RuntimeSocket;
  readonly #services = new Map<string, PlainService>();

  private constructor(haproxy: OwnHaproxy, socket: RuntimeSocket, services: readonly PlainService[]) {
    this.haproxy = haproxy;
    this.#socket = socket;
    for (const service of services) this.#services.set(service.name, service);
  }

  static async start(
    scratch: Scratch,
    executable: string,
    services: readonly PlainService[],
  ): Promise<Bound> {
    const haproxy = await startHaproxy(scratch, 'bound', executable, plainConfig(services), { master: true });
    const socket = await RuntimeSocket.open(haproxy.adminSocket);
    scratch.defer(() => socket.close());
    return new Bound(haproxy, socket, services);
  }

  /** Resolves when HAProxy has answered, with a function that deletes the servers out of use. */
  async change(service: PlainService): Promise<() => Promise<void>> {
    const before = this.#services.get(service.name)?.members ?? new Set();
    this.#services.set(service.name, service);
    const added = [...service.members].filter((member) => !before.has(member));
    const gone = [...before].filter((member) => !service.members.has(member));
    const path = (member: string): string => `${service.name}/${member}`;
    await this.#socket.send([
      ...added.flatMap((member) => [
        `add server ${path(member)} ${member}`,
        `set server ${path(member)} state ready`,
      ]),
      ...gone.map((member) => `set server ${path(member)} state maint`),
    ]);
    return () => this.#socket.send(gone.map((member) => `del server ${path(member)}`));
  }
}
