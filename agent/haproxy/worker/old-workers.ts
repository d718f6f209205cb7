// Ends what old workers still serve although it is out of use: connections to a server that was removed, once its time
// to drain is over, as the reaper does in the worker that serves. An old worker refuses every command about a server
// ("Proxy is disabled."), so its sessions are listed and those of the server are ended one by one, through the master.

import { messageOf } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import { askOnce } from '../socket/ask-once.ts';
import type { Command } from '../socket/commands.ts';
import { showProc } from '../socket/master.ts';
import { parseSessions } from '../socket/readings.ts';
import type { Worker } from '../worker.ts';

export interface OldWorkersOptions {
  readonly masterSocket: string;
  /** Milliseconds a removed server's connections may go on. */
  readonly drainTimeout: () => number;
  /** Milliseconds after which HAProxy itself ends an old worker. */
  readonly hardStopAfter: () => number;
  readonly onEnded: (sessions: number) => void;
  readonly onError: (message: string) => void;
  readonly now?: () => number;
}

/** Between two looks at least, and longer the longer a look takes: an old worker may have very many sessions. */
const SHORTEST_WAIT = 1_000;
const SHARE = 20;
/** HAProxy is given this long for the list of all its sessions. */
const LIST_TIMEOUT = 10_000;
/** Commands in one line, each with its `@!PID`: some 5 KB. */
const BATCH = 100;

export class OldWorkers {
  readonly #options: OldWorkersOptions;
  readonly #now: () => number;
  /** `backend server` to when it was removed. */
  readonly #removed = new Map<string, number>();
  #current: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer goes off. */
  #wakes = Number.POSITIVE_INFINITY;
  #isAtWork = false;
  #earliest = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: OldWorkersOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** How many servers' connections are to be ended, should an old worker have some. */
  get waiting(): number {
    return this.#removed.size;
  }

  /** Another worker is active. What only the one before it had is out of use from now on. */
  replaced(next: Worker, before: Worker | undefined): void {
    this.#current = next;
    for (const backend of before?.running.names() ?? []) {
      if (next.running.has(backend)) continue;
      for (const server of before?.running.get(backend)?.servers.keys() ?? []) {
        const name = `${backend} ${server}`;
        if (!this.#removed.has(name)) this.#note(name);
      }
    }
    // An agent before this one may have left some behind, of which only the old workers know.
    if (before === undefined) void this.#adopt();
    this.#schedule();
  }

  /** Takes note of servers that these commands have put into maintenance. */
  watch(acknowledged: readonly Command[]): void {
    for (const command of acknowledged)
      if (command.kind === 'SetServerState' && command.state === 'maint')
        this.#note(`${command.backend} ${command.server}`);
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** The latest is the last in the map. */
  #note(name: string): void {
    this.#removed.delete(name);
    this.#removed.set(name, this.#now());
  }

  #schedule(): void {
    if (this.#closed || this.#isAtWork || this.#removed.size === 0) return;
    // In the order in which they were removed.
    const [first = 0] = this.#removed.values();
    const due = Math.max(first + this.#options.drainTimeout(), this.#earliest);
    // Too early does no harm, and the first one changes with every removal of what had come back.
    if (due >= this.#wakes) return;
    clearTimeout(this.#timer);
    this.#wakes = due;
    this.#timer = setTimeout(() => void this.#work(), Math.max(0, due - this.#now()));
    this.#timer.unref();
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    this.#wakes = Number.POSITIVE_INFINITY;
    const began = this.#now();
    const due = new Set<string>();
    for (const [name, since] of this.#removed) {
      if (since + this.#options.drainTimeout() > began) break;
      if (this.#isInUse(name)) this.#removed.delete(name);
      else due.add(name);
    }
    try {
      if (due.size > 0) await this.#end(due);
      for (const name of due) this.#removed.delete(name);
    } catch (error) {
      // While the master reloads it cannot be asked: later. Until then nothing is lost but time.
      this.#options.onError(messageOf(error));
      const { drainTimeout, hardStopAfter } = this.#options;
      for (const name of due)
        if ((this.#removed.get(name) ?? 0) + drainTimeout() + hardStopAfter() < began)
          this.#removed.delete(name);
    }
    this.#earliest = this.#now() + Math.max(SHORTEST_WAIT, SHARE * (this.#now() - began));
    this.#isAtWork = false;
    this.#schedule();
  }

  /** One that came back keeps the connections that it has. */
  #isInUse(name: string): boolean {
    const [backend = '', server = ''] = name.split(' ');
    const state = this.#current?.running.get(backend)?.servers.get(server)?.state;
    return state === 'ready' || state === 'drain';
  }

  async #end(due: ReadonlySet<string>): Promise<void> {
    const { masterSocket, onEnded } = this.#options;
    const { oldWorkers } = await showProc(masterSocket);
    for (const { pid } of oldWorkers) {
      const pointers = await this.#sessions(pid, (name) => due.has(name));
      for (let at = 0; at < pointers.length; at += BATCH) {
        const commands = pointers
          .slice(at, at + BATCH)
          .map((pointer) => `@!${pid} shutdown session ${pointer}`);
        await askOnce(masterSocket, `${commands.join(';')};quit`);
      }
      if (pointers.length > 0) onEnded(pointers.length);
    }
  }

  async #adopt(): Promise<void> {
    try {
      const { oldWorkers } = await showProc(this.#options.masterSocket);
      for (const { pid } of oldWorkers) {
        await this.#sessions(pid, (name) => {
          if (!this.#isInUse(name) && !this.#removed.has(name)) this.#note(name);
          return false;
        });
      }
      this.#schedule();
    } catch (error) {
      this.#options.onError(messageOf(error));
    }
  }

  /** Of sessions with a server those whose `backend server` is chosen. */
  async #sessions(pid: number, isChosen: (name: string) => boolean): Promise<readonly string[]> {
    const slice = new Slice();
    const options = { timeoutMs: LIST_TIMEOUT };
    const text = await askOnce(this.#options.masterSocket, `@!${pid} show sess;quit`, options);
    const pointers: string[] = [];
    for (const { pointer, backend, server } of parseSessions(text)) {
      if (isChosen(`${backend} ${server}`)) pointers.push(pointer);
      if (slice.isOver) await slice.breathe();
    }
    return pointers;
  }
}
