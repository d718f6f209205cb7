// What replies have proved about one HAProxy worker: its listeners, their servers and allowed clients.
// Changes only by `fold`, one acknowledged command at a time, or by what was read back from the worker.
// Of a listener that has not changed since the worker booted nothing is kept but what the file says of it: a worker of
// thousands is then no work while endpoints change beside a reload, and no second copy of them in memory.

import type { Listener, LoadBalancer, Member } from '../model/load-balancer.ts';
import { allowedLines, backendsOf, isForHaproxy, structureOf } from './config/listener-config.ts';
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
  allowed: { id: number; cidrs: Set<string> }[];
  servers: Map<string, RunningServer>;
}

type AclId = (listener: string, line: number) => number;

/** Still as in the file that the worker booted from. */
interface Booted {
  readonly listener: Listener;
  /** One for each line of its allowed clients. */
  readonly acls: readonly number[];
}

export class Running {
  /** By the backend's name. */
  readonly #listeners = new Map<string, MutableListener | Booted>();
  /** ACL id to its listener's name. */
  readonly #acls = new Map<number, string>();
  /** Who asks for one that is as it booted mostly asks for it more than once. */
  #lastMade: { readonly booted: Booted; readonly made: MutableListener } | undefined;
  /** Counts changes per listener, so that an audit can tell what moved while it was reading. */
  readonly #changes = new Map<string, number>();

  /** As it is now. */
  get(name: string): RunningListener | undefined {
    const listener = this.#listeners.get(name);
    return listener !== undefined && isBooted(listener) ? this.#made(name, listener) : listener;
  }

  has(name: string): boolean {
    return this.#listeners.has(name);
  }

  names(): IterableIterator<string> {
    return this.#listeners.keys();
  }

  /** Those of which something else was told, or read, than the worker booted from. */
  *changed(): Generator<[name: string, listener: RunningListener], void, void> {
    for (const [name, listener] of this.#listeners) if (!isBooted(listener)) yield [name, listener];
  }

  listenerOfAcl(id: number): string | undefined {
    return this.#acls.get(id);
  }

  changesOf(name: string): number {
    return this.#changes.get(name) ?? 0;
  }

  /** What a worker runs that has just booted from a file with these load balancers. */
  static booted(loadBalancers: Iterable<LoadBalancer>, aclId: AclId): Running {
    const running = new Running();
    for (const loadBalancer of loadBalancers) running.boot(loadBalancer, aclId);
    return running;
  }

  /** The same for one of them. */
  boot({ listeners }: LoadBalancer, aclId: AclId): void {
    for (const listener of listeners) {
      if (!isForHaproxy(listener)) continue;
      const acls = allowedLines(listener).map((_, line) => aclId(listener.name, line));
      for (const { name } of backendsOf(listener)) this.#listeners.set(name, { listener, acls });
      for (const id of acls) this.#acls.set(id, listener.name);
    }
  }

  /** Replaces what is known of a listener by what was read from the worker. */
  put(name: string, listener: RunningListener): void {
    const { structure, allowed, servers } = listener;
    this.#listeners.set(name, {
      structure,
      allowed: allowed.map(({ id, cidrs }) => ({ id, cidrs: new Set(cidrs) })),
      servers: new Map(servers),
    });
    for (const { id } of allowed) this.#acls.set(id, name);
    this.#touch(name);
  }

  putServers(name: string, servers: ReadonlyMap<string, RunningServer>): void {
    const listener = this.#own(name);
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
    if (this.get(backend)?.servers.get(server)?.state !== 'gone') return;
    this.#setServer(backend, server, { state: 'maint' });
  }

  #foldServer(command: AddServer | SetServerState | EnableHealth | SetServerWeight | DeleteServer): void {
    const { backend, server } = command;
    switch (command.kind) {
      case 'AddServer':
        this.#own(backend)?.servers.set(server, addedServer(command.keywords));
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
        this.#own(backend)?.servers.delete(server);
        this.#touch(backend);
        return;
    }
  }

  #setServer(backend: string, name: string, change: Partial<RunningServer>): void {
    const servers = this.#own(backend)?.servers;
    const server = servers?.get(name);
    if (server !== undefined) servers?.set(name, { ...server, ...change });
    this.#touch(backend);
  }

  #cidrs(acl: number): Set<string> | undefined {
    return this.#own(this.#acls.get(acl) ?? '')?.allowed.find(({ id }) => id === acl)?.cidrs;
  }

  /** From now on this listener may differ from what it booted as. */
  #own(name: string): MutableListener | undefined {
    const listener = this.#listeners.get(name);
    if (listener === undefined || !isBooted(listener)) return listener;
    const own = this.#made(name, listener);
    this.#listeners.set(name, own);
    return own;
  }

  #made(name: string, booted: Booted): MutableListener {
    if (this.#lastMade?.booted !== booted) this.#lastMade = { booted, made: madeOf(name, booted) };
    return this.#lastMade.made;
  }

  #touch(name: string): void {
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + 1);
  }
}

function isBooted(listener: MutableListener | Booted): listener is Booted {
  return 'acls' in listener;
}

function madeOf(name: string, { listener, acls }: Booted): MutableListener {
  const { members, monitor } = listener.pool;
  // Clients come to the other backend only by way of the listener, and nobody checks there.
  const isFallback = name !== listener.name;
  const isChecked = monitor !== undefined && !isFallback;
  const lines = isFallback ? [] : allowedLines(listener);
  return {
    structure: structureOf(listener),
    allowed: lines.map((cidrs, line) => ({ id: acls[line] ?? 0, cidrs: new Set(cidrs) })),
    servers: new Map(members.map((member) => [member.name, bootedServer(member, isChecked)])),
  };
}

function bootedServer({ id, weight, state }: Member, isChecked: boolean): RunningServer {
  // The file says `drain` by weight 0.
  return { id, weight: state === 'drain' ? 0 : weight, check: isChecked ? 'on' : 'none', state: 'ready' };
}

function addedServer(keywords: readonly string[]): RunningServer {
  const numberAfter = (word: string): number => {
    const at = keywords.indexOf(word);
    return Number(keywords[at + 1]);
  };
  const check = keywords.includes('check') ? 'off' : 'none';
  return { id: numberAfter('id'), weight: numberAfter('weight'), check, state: 'maint' };
}
