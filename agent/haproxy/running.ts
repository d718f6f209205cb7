// The state of one HAProxy worker as far as its replies prove it: listeners, servers and allowed clients. Changes only by
// fold(), one acknowledged command at a time, or by reading the worker.
// Unchanged listeners are not stored; they are derived from the configuration that the worker booted with.

import type { Certificate, Listener, LoadBalancer, Member } from '../model/load-balancer.ts';
import { allowedLines, backendsOf, hasSection, isRouted, structureOf } from './config/listener-config.ts';
import { spareProfile } from './config/spare-pools.ts';
import { allCertificates } from './config/tls-config.ts';
import type { RowTables } from './routes/patched-tables.ts';
import { RunningRows } from './routes/running-rows.ts';
import { tablesOf } from './routes/tables.ts';
import type {
  AddServer,
  Command,
  CrtListCommand,
  DeleteServer,
  EnableHealth,
  MapEntryCommand,
  RowPosition,
  SetServerState,
  SetServerWeight,
} from './socket/commands.ts';
import { SPARE_TABLE, Spares } from './spares.ts';

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
  /** The names in its crt-list, the default one first; empty without TLS. */
  readonly certificates: ReadonlySet<string>;
  /** Its sockets refuse connections. */
  readonly isDisabled: boolean;
}

interface MutableListener extends RunningListener {
  certificates: Set<string>;
  allowed: { id: number; cidrs: Set<string> }[];
  servers: Map<string, RunningServer>;
  isDisabled: boolean;
}

const EMPTY = {
  allowed: [],
  servers: new Map<string, never>(),
  certificates: new Set<string>(),
  isDisabled: false,
};

type AclId = (listener: string, line: number) => number;

/** A listener as in the file that the worker booted from. */
interface Booted {
  readonly listener: Listener;
  /** One id for each line of its allowed clients. */
  readonly acls: readonly number[];
}

export class Running {
  /** Rows of the maps of routes. */
  readonly rows = new RunningRows();
  /** Spare backends of the file that the worker booted from. */
  spares = new Spares(undefined);
  /** Listeners that refuse connections until the next worker, because this one has refused a row that guards them. */
  readonly unguarded = new Set<string>();
  /** By the name of the backend. */
  readonly #listeners = new Map<string, MutableListener | Booted>();
  /** ACL id to its listener's name. */
  readonly #acls = new Map<number, string>();
  /** The certificates that the worker has in memory, by name. */
  readonly #certificates = new Map<string, Certificate>();
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

  /** Listeners whose sockets refuse connections. */
  disabled(): readonly string[] {
    return [...this.changed()].flatMap(([name, { isDisabled }]) => (isDisabled ? [name] : []));
  }

  listenerOfAcl(id: number): string | undefined {
    return this.#acls.get(id);
  }

  certificate(name: string): Certificate | undefined {
    return this.#certificates.get(name);
  }

  /** All that the worker has in memory. */
  certificates(): readonly Certificate[] {
    return [...this.#certificates.values()];
  }

  /** undefined: the worker has another one of that name than this agent knows. */
  putCertificate(name: string, certificate: Certificate | undefined): void {
    if (certificate === undefined) this.#certificates.delete(name);
    else this.#certificates.set(name, certificate);
  }

  changesOf(name: string): number {
    return this.#changes.get(name) ?? 0;
  }

  /** The state of a worker that has just booted from a file with these load balancers. */
  static booted(
    loadBalancers: Iterable<LoadBalancer>,
    aclId: AclId,
    tables: (listener: Listener) => RowTables = tablesOf,
  ): Running {
    const running = new Running();
    const all = [...loadBalancers];
    for (const loadBalancer of all) running.boot(loadBalancer, aclId, tables);
    running.spares = new Spares(spareProfile(all));
    return running;
  }

  /** Adds one load balancer of the file. */
  boot(
    { listeners }: LoadBalancer,
    aclId: AclId,
    tables: (listener: Listener) => RowTables = tablesOf,
  ): void {
    for (const listener of listeners) {
      if (!hasSection(listener)) continue;
      const acls = allowedLines(listener).map((_, line) => aclId(listener.name, line));
      if (isRouted(listener)) {
        this.#listeners.set(listener.name, { listener, acls });
        this.rows.boot(listener.name, tables(listener));
      }
      for (const { name } of backendsOf(listener)) this.#listeners.set(name, { listener, acls });
      for (const id of acls) this.#acls.set(id, listener.name);
      // HAProxy reads the certificate of members with the first one.
      const isRead = listener.tls !== undefined || listener.pool.members.length > 0;
      for (const certificate of isRead ? allCertificates(listener) : [])
        this.#certificates.set(certificate.name, certificate);
    }
  }

  /** Replaces the record of a listener by the state that was read from the worker. */
  put(name: string, listener: RunningListener): void {
    const { allowed, servers, certificates } = listener;
    this.#listeners.set(name, {
      ...listener,
      allowed: allowed.map(({ id, cidrs }) => ({ id, cidrs: new Set(cidrs) })),
      servers: new Map(servers),
      certificates: new Set(certificates),
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

  setDisabled(name: string, isDisabled: boolean): void {
    const listener = this.#own(name);
    if (listener !== undefined) listener.isDisabled = isDisabled;
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
      case 'AssumeFailure':
      case 'ForgetClients':
      case 'SetCookieKey':
      case 'RememberClient':
      case 'ShutdownSessions':
      case 'ClearMap':
      case 'NewCertificate':
      case 'StageCertificate':
      case 'AbortCertificate':
        return;
      case 'DisableFrontend':
      case 'EnableFrontend':
        this.setDisabled(command.listener, command.kind === 'DisableFrontend');
        return;
      case 'CommitCertificate':
        this.#certificates.set(command.certificate.name, command.certificate);
        return;
      case 'AddToList':
      case 'RemoveFromList':
        this.#foldList(command);
        return;
      case 'AddMapEntry':
      case 'SetMapEntry':
      case 'DeleteMapEntry':
        if (command.position !== undefined) this.#foldRow(command.kind, command.position);
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

  #foldList({ kind, listener, certificate }: CrtListCommand): void {
    const own = this.#own(listener);
    if (own === undefined) return;
    // HAProxy adds a line at the end.
    own.certificates.delete(certificate);
    if (kind === 'AddToList') own.certificates.add(certificate);
    this.#touch(listener);
  }

  #foldRow(kind: MapEntryCommand['kind'], { listener, table, row, structure }: RowPosition): void {
    if (kind === 'DeleteMapEntry') this.rows.remove(listener, table, row);
    else this.rows.put(listener, table, row);
    if (kind === 'AddMapEntry' && table === SPARE_TABLE && !this.has(listener))
      this.put(listener, { ...EMPTY, structure: structure ?? '' });
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
    certificates: new Set(isFallback ? [] : certificateNames(listener)),
    isDisabled: false,
  };
}

/** The names of its crt-list, and of the certificate for its members. */
export function certificateNames(listener: Listener): readonly string[] {
  return allCertificates(listener).map(({ name }) => name);
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
