// The state of one HAProxy worker as far as its replies prove it: listeners, servers and allowed clients. Changes only by
// fold(), one acknowledged command at a time, or by reading the worker.
// Unchanged listeners are not stored; they are derived from the configuration that the worker booted with.

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
  /** `off`: the server has a check that is not enabled yet. */
  readonly check: 'none' | 'off' | 'on';
  /** Another process moved the server to another address than its name says. */
  readonly isMoved?: true;
  /** `gone`: its deletion is under way. */
  readonly state: 'ready' | 'drain' | 'maint' | 'gone';
}

export interface RunningListener {
  /** See structureOf(); '' if the worker booted from an unknown file. */
  readonly structure: string;
  /** One set for each line of the file, with the id of its ACL. */
  readonly allowed: readonly { readonly id: number; readonly cidrs: ReadonlySet<string> }[];
  /** By name; servers in `maint` are removed ones that wait for their deletion. */
  readonly servers: ReadonlyMap<string, RunningServer>;
}

interface MutableListener extends RunningListener {
  allowed: { id: number; cidrs: Set<string> }[];
  servers: Map<string, RunningServer>;
}

type AclId = (listener: string, line: number) => number;

/** A listener as in the file that the worker booted from. */
interface Booted {
  readonly listener: Listener;
  /** One id for each line of its allowed clients. */
  readonly acls: readonly number[];
}

export class Running {
  /** By the name of the backend. */
  readonly #listeners = new Map<string, MutableListener | Booted>();
  /** ACL id to its listener's name. */
  readonly #acls = new Map<number, string>();
  /** Changes by listener, so that an audit can see which listeners changed while it read them. */
  readonly #changes = new Map<string, number>();

  get(name: string): RunningListener | undefined {
    const listener = this.#listeners.get(name);
    return listener !== undefined && isBooted(listener) ? derived(name, listener) : listener;
  }

  has(name: string): boolean {
    return this.#listeners.has(name);
  }

  names(): IterableIterator<string> {
    return this.#listeners.keys();
  }

  /** Listeners that may differ from the file that the worker booted from. */
  *changed(): Generator<[name: string, listener: RunningListener], void, void> {
    for (const [name, listener] of this.#listeners) if (!isBooted(listener)) yield [name, listener];
  }

  listenerOfAcl(id: number): string | undefined {
    return this.#acls.get(id);
  }

  changesOf(name: string): number {
    return this.#changes.get(name) ?? 0;
  }

  /** The state of a worker that has just booted from a file with these load balancers. */
  static booted(loadBalancers: Iterable<LoadBalancer>, aclId: AclId): Running {
    const running = new Running();
    for (const loadBalancer of loadBalancers) running.boot(loadBalancer, aclId);
    return running;
  }

  /** Adds one load balancer of the file. */
  boot({ listeners }: LoadBalancer, aclId: AclId): void {
    for (const listener of listeners) {
      if (!isForHaproxy(listener)) continue;
      const acls = allowedLines(listener).map((_, line) => aclId(listener.name, line));
      for (const { name } of backendsOf(listener)) this.#listeners.set(name, { listener, acls });
      for (const id of acls) this.#acls.set(id, listener.name);
    }
  }

  /** Replaces the record of a listener by the state that was read from the worker. */
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

  /** Records one acknowledged command. */
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

  /** The deletion of a server is under way. */
  markGone(backend: string, server: string): void {
    this.#setServer(backend, server, { state: 'gone' });
  }

  /** The deletion was refused: the server is in maintenance, unless a command before the deletion brought it back. */
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

  /** The stored listener, which may differ from the file from now on. */
  #own(name: string): MutableListener | undefined {
    const listener = this.#listeners.get(name);
    if (listener === undefined || !isBooted(listener)) return listener;
    const own = derived(name, listener);
    this.#listeners.set(name, own);
    return own;
  }

  #touch(name: string): void {
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + 1);
  }
}

function isBooted(listener: MutableListener | Booted): listener is Booted {
  return 'acls' in listener;
}

function derived(name: string, { listener, acls }: Booted): MutableListener {
  const { members, monitor } = listener.pool;
  // The fallback has no allow-list and no checks.
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
  // In the file a draining server has weight 0.
  return { id, weight: state === 'drain' ? 0 : weight, check: isChecked ? 'on' : 'none', state: 'ready' };
}

function addedServer(keywords: readonly string[]): RunningServer {
  const numberAfter = (word: string): number => Number(keywords[keywords.indexOf(word) + 1]);
  const check = keywords.includes('check') ? 'off' : 'none';
  return { id: numberAfter('id'), weight: numberAfter('weight'), check, state: 'maint' };
}
