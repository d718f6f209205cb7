// The bound, the least that can be done: render once, then send each change straight to HAProxy's runtime socket.
// Validates nothing, survives nothing: no product, but the floor that a product can be measured against.

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

  /** Resolves when HAProxy has answered; deletes what is out of use behind that. */
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
