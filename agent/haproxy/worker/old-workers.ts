// Ends the connections of draining workers to removed servers when their drain timeout is over, as the reaper does in the
// active worker. A draining worker refuses all commands about servers ("Proxy is disabled."), so its sessions are listed
// and ended one by one, through the master.

import { type Clock, systemClock } from '../../base/clock.ts';
import { DueTimer } from '../../base/due-timer.ts';
import { messageOf } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import type { Worker } from '../booted-worker.ts';
import { askOnce } from '../socket/ask-once.ts';
import type { BackendNames } from '../socket/backend-names.ts';
import type { Command } from '../socket/commands.ts';
import { showProc } from '../socket/master.ts';
import { parseSessions } from '../socket/readings.ts';

export interface OldWorkersOptions {
  readonly masterSocket: string;
  /** Milliseconds for which connections to a removed server may continue. */
  readonly drainTimeout: () => number;
  /** Milliseconds after which HAProxy ends a draining worker. */
  readonly hardStopAfter: () => number;
  /** Another HAProxy serves this backend now: its connections here continue. */
  readonly isElsewhere: (backend: string) => boolean;
  readonly onEnded: (sessions: number) => void;
  readonly onError: (message: string) => void;
  readonly clock?: Clock;
}

/** The wait between two runs: a minimum, and a multiple of the duration of a run, which grows with the sessions. */
const MIN_WAIT_MS = 1_000;
const WAIT_PER_WORK = 20;
/** For the list of all sessions of a worker. */
const LIST_TIMEOUT_MS = 10_000;
/** Commands in one line, some 5 KB. */
const COMMANDS_PER_LINE = 100;

export class OldWorkers {
  readonly #options: OldWorkersOptions;
  readonly #clock: Clock;
  readonly #timer: DueTimer;
  /** Key: `backend server`; value: when it was removed. */
  readonly #removed = new Map<string, number>();
  #current: Worker | undefined;
  /** Names of backends in draining workers. Key: a pid. */
  readonly #names = new Map<number, BackendNames>();
  /** No work before this time, so that it does not load HAProxy. */
  #earliest = Number.NEGATIVE_INFINITY;

  constructor(options: OldWorkersOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timer = new DueTimer(this.#work, this.#nextDue, this.#clock);
  }

  /** Servers whose connections are still to be ended. */
  get waiting(): number {
    return this.#removed.size;
  }

  /** Another worker is active: the servers that only the replaced worker had are removed. */
  replaced(next: Worker, before: Worker | undefined): void {
    this.#current = next;
    if (before !== undefined) this.#names.set(before.runtime.worker.pid, before.runtime.names);
    for (const backend of before?.running.names() ?? []) {
      if (next.running.has(backend) || this.#options.isElsewhere(backend)) continue;
      for (const server of before?.running.get(backend)?.servers.keys() ?? []) {
        const name = `${backend} ${server}`;
        if (!this.#removed.has(name)) this.#note(name);
      }
    }
    // Servers that an earlier agent removed are known to the draining workers only.
    if (before === undefined) void this.#adopt();
    this.#timer.wakeAt(this.#nextDue());
  }

  /** Notes the servers that these commands put into maintenance. */
  watch(acknowledged: readonly Command[]): void {
    for (const command of acknowledged)
      if (command.kind === 'SetServerState' && command.state === 'maint')
        this.#note(`${command.backend} ${command.server}`);
    this.#timer.wakeAt(this.#nextDue());
  }

  close(): void {
    this.#timer.close();
  }

  /** Keeps the map in the order of removal. */
  #note(name: string): void {
    this.#removed.delete(name);
    this.#removed.set(name, this.#clock.monotonic());
  }

  readonly #nextDue = (): number => {
    const [first = Number.POSITIVE_INFINITY] = this.#removed.values();
    return Math.max(first + this.#options.drainTimeout(), this.#earliest);
  };

  readonly #work = async (): Promise<void> => {
    const began = this.#clock.monotonic();
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
      // The master does not answer while it reloads: try again later.
      this.#options.onError(messageOf(error));
      const { drainTimeout, hardStopAfter } = this.#options;
      for (const name of due)
        if ((this.#removed.get(name) ?? 0) + drainTimeout() + hardStopAfter() < began)
          this.#removed.delete(name);
    }
    this.#earliest =
      this.#clock.monotonic() + Math.max(MIN_WAIT_MS, WAIT_PER_WORK * (this.#clock.monotonic() - began));
  };

  /** A server that came back keeps its connections. */
  #isInUse(name: string): boolean {
    const [backend = '', server = ''] = name.split(' ');
    const state = this.#current?.running.get(backend)?.servers.get(server)?.state;
    return state === 'ready' || state === 'drain';
  }

  async #end(due: ReadonlySet<string>): Promise<void> {
    const { masterSocket, onEnded } = this.#options;
    const { oldWorkers } = await showProc(masterSocket);
    const pids = new Set(oldWorkers.map(({ pid }) => pid));
    for (const pid of this.#names.keys()) if (!pids.has(pid)) this.#names.delete(pid);
    for (const pid of pids) {
      const pointers = await this.#sessions(pid, (name) => due.has(name));
      for (let at = 0; at < pointers.length; at += COMMANDS_PER_LINE) {
        const commands = pointers
          .slice(at, at + COMMANDS_PER_LINE)
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
          const isElsewhere = this.#options.isElsewhere(name.split(' ', 1)[0] ?? '');
          if (!this.#isInUse(name) && !isElsewhere && !this.#removed.has(name)) this.#note(name);
          return false;
        });
      }
      this.#timer.wakeAt(this.#nextDue());
    } catch (error) {
      this.#options.onError(messageOf(error));
    }
  }

  /** Pointers of the sessions whose `backend server` is chosen. */
  async #sessions(pid: number, isChosen: (name: string) => boolean): Promise<readonly string[]> {
    const slice = new Slice();
    const options = { timeoutMs: LIST_TIMEOUT_MS };
    const text = await askOnce(this.#options.masterSocket, `@!${pid} show sess;quit`, options);
    const pointers: string[] = [];
    for (const { pointer, backend, server } of parseSessions(text)) {
      const name = this.#names.get(pid)?.inAgent(backend) ?? backend;
      if (isChosen(`${name} ${server}`)) pointers.push(pointer);
      if (slice.isOver) await slice.breathe();
    }
    return pointers;
  }
}
