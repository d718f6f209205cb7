// What replies have proved about one HAProxy worker: its listeners, their servers and allowed clients.
// Changes only by `fold`, one acknowledged command at a time, or by what was read back from the worker.

import type { LoadBalancer } from '../model.ts';
import { allowedLines, type Backend, backendsOf, isServed, structureOf } from './config/listener-config.ts';
import type {
  AddServer,
  Command,
  DeleteServer,
  EnableHealth,
  SetServerState,
  SetServerWeight,
} from './socket/commands.ts';

export interface RunningServer {
  readonly id: number;
  readonly weight: number;
  /** `off`: it has one that waits to be enabled. */
  readonly check: 'none' | 'off' | 'on';
  /** At another address than its name says: somebody has moved it. */
  readonly isMoved?: true;
  /** `gone`: told to be deleted, no reply yet. */
  readonly state: 'ready' | 'drain' | 'maint' | 'gone';
}

export interface RunningListener {
  /** As `structureOf`; '' where this worker booted from a file that we do not know. */
  readonly structure: string;
  /** One set per line of the file; ids are the ACLs'. */
  readonly allowed: readonly { readonly id: number; readonly cidrs: ReadonlySet<string> }[];
  /** By name; those in `maint` wait for their connections to end, then to be deleted. */
  readonly servers: ReadonlyMap<string, RunningServer>;
}

interface MutableListener extends RunningListener {
  readonly name: string;
  allowed: { id: number; cidrs: Set<string> }[];
  servers: Map<string, RunningServer>;
}

export class Running {
  readonly #listeners = new Map<string, MutableListener>();
  /** ACL id to its listener's name and line. */
  readonly #acls = new Map<number, MutableListener>();
  /** Counts changes per listener, so that an audit can tell what moved while it was reading. */
  readonly #changes = new Map<string, number>();

  get(name: string): RunningListener | undefined {
    return this.#listeners.get(name);
  }

  names(): IterableIterator<string> {
    return this.#listeners.keys();
  }

  listenerOfAcl(id: number): string | undefined {
    return this.#acls.get(id)?.name;
  }

  changesOf(name: string): number {
    return this.#changes.get(name) ?? 0;
  }

  /** What a worker runs that has just booted from a file with these load balancers. */
  static booted(
    loadBalancers: Iterable<LoadBalancer>,
    aclId: (listener: string, line: number) => number,
  ): Running {
    const running = new Running();
    for (const loadBalancer of loadBalancers) running.boot(loadBalancer, aclId);
    return running;
  }

  /** The same for one of them. */
  boot({ listeners }: LoadBalancer, aclId: (listener: string, line: number) => number): void {
    for (const listener of listeners)
      if (isServed(listener))
        for (const backend of backendsOf(listener)) this.put(backend.name, bootedBackend(backend, aclId));
  }

  /** Replaces what is known of a listener by what was read from the worker. */
  put(name: string, listener: RunningListener): void {
    const mutable: MutableListener = {
      name,
      structure: listener.structure,
      allowed: listener.allowed.map(({ id, cidrs }) => ({ id, cidrs: new Set(cidrs) })),
      servers: new Map(listener.servers),
    };
    this.#listeners.set(name, mutable);
    for (const { id } of mutable.allowed) this.#acls.set(id, mutable);
    this.#touch(name);
  }

  putServers(name: string, servers: ReadonlyMap<string, RunningServer>): void {
    const listener = this.#listeners.get(name);
    if (listener === undefined) return;
    listener.servers = new Map(servers);
    this.#touch(name);
  }

  /** Takes in one command that the worker has acknowledged (or, for `gone`, that is on its way). */
  fold(command: Command): void {
    switch (command.kind) {
      case 'AddCidr':
        this.#cidrs(command.acl)?.add(command.cidr);
        this.#touch(this.listenerOfAcl(command.acl) ?? '');
        return;
      case 'DeleteCidr':
        this.#cidrs(command.acl)?.delete(command.cidr);
        this.#touch(this.listenerOfAcl(command.acl) ?? '');
        return;
      case 'AssumeHealth':
      case 'ForgetClients':
      case 'ShutdownSessions':
        return;
      default:
        this.#foldServer(command);
    }
  }

  /** A deletion is on its way. */
  markGone(backend: string, server: string): void {
    this.#setServer(backend, server, { state: 'gone' });
  }

  /**
   * The deletion was refused: the server is still there, in maintenance, unless a command before the deletion has
   * brought it back into use and is why it was refused.
   */
  markKept(backend: string, server: string): void {
    if (this.#listeners.get(backend)?.servers.get(server)?.state !== 'gone') return;
    this.#setServer(backend, server, { state: 'maint' });
  }

  #foldServer(command: AddServer | SetServerState | EnableHealth | SetServerWeight | DeleteServer): void {
    const { backend, server } = command;
    switch (command.kind) {
      case 'AddServer':
        this.#listeners.get(backend)?.servers.set(server, addedServer(command.keywords));
        this.#touch(backend);
        return;
      case 'SetServerState':
        this.#setServer(backend, server, { state: command.state });
        return;
      case 'EnableHealth':
        this.#setServer(backend, server, { check: 'on' });
        return;
      case 'SetServerWeight':
        this.#setServer(backend, server, { weight: command.weight });
        return;
      case 'DeleteServer':
        this.#listeners.get(backend)?.servers.delete(server);
        this.#touch(backend);
        return;
    }
  }

  #setServer(backend: string, name: string, change: Partial<RunningServer>): void {
    const servers = this.#listeners.get(backend)?.servers;
    const server = servers?.get(name);
    if (server !== undefined) servers?.set(name, { ...server, ...change });
    this.#touch(backend);
  }

  #cidrs(acl: number): Set<string> | undefined {
    return this.#acls.get(acl)?.allowed.find(({ id }) => id === acl)?.cidrs;
  }

  #touch(name: string): void {
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + 1);
  }
}

function bootedBackend(
  { name, pool, listener }: Backend,
  aclId: (listener: string, line: number) => number,
): RunningListener {
  // Clients come to the other backend only by way of the listener.
  const lines = name === listener.name ? allowedLines(listener) : [];
  return {
    structure: structureOf(listener),
    allowed: lines.map((cidrs, line) => ({ id: aclId(name, line), cidrs: new Set(cidrs) })),
    servers: new Map(
      pool.members.map((member) => [
        member.name,
        {
          id: member.id,
          // The file says `drain` by weight 0.
          weight: member.state === 'drain' ? 0 : member.weight,
          check: pool.monitor === undefined ? 'none' : 'on',
          state: 'ready',
        },
      ]),
    ),
  };
}

function addedServer(keywords: readonly string[]): RunningServer {
  const numberAfter = (word: string): number => {
    const at = keywords.indexOf(word);
    return Number(keywords[at + 1]);
  };
  const check = keywords.includes('check') ? 'off' : 'none';
  return { id: numberAfter('id'), weight: numberAfter('weight'), check, state: 'maint' };
}
