// Deletes removed servers in the background, when their connections have ended or their drain timeout is over. Deletion
// waits: HAProxy 3.3 and newer refuse it right after maintenance, and older versions do not count streams whose connection
// attempt has just failed (docs/design/haproxy-versions.md).

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { DueTimer } from '../../base/due-timer.ts';
import { messageOf } from '../../base/errors.ts';
import type { Worker } from '../booted-worker.ts';
import type { Command } from '../socket/commands.ts';

interface Waiting {
  readonly backend: string;
  readonly server: string;
  /** When it was removed, by the monotonic clock. */
  readonly since: number;
  /** When no stream can retry a connection to it any more. */
  readonly deletable: number;
  /** Failed attempts to delete it, counted from the shutdown of its connections if they were shut down. */
  attempts: number;
  isShutDown: boolean;
  due: number;
}

export interface ReaperOptions {
  /** Milliseconds for which connections to a removed server may continue. */
  readonly drainTimeout: () => number;
  /** The connect timeout of this backend, milliseconds. */
  readonly connectTimeout: (backend: string) => number;
  readonly onDeleted: (count: number) => void;
  readonly onError: (message: string) => void;
  readonly clock?: Clock;
}

/** HAProxy waits a second after a failed connection attempt before it retries (back_handle_st_cer()); and a margin. */
const CONNECT_RETRY_MS = 1_100;
/** The first wait after a failed deletion. */
const RETRY_DELAY_MS = 1_000;
/** Servers that fall due within this time are deleted together, because a wake-up costs more than a deletion. */
const COALESCE_MS = 1_000;
const MAX_WAIT_MS = 30_000;
/** The first wait after a shutdown of connections. */
const SHUTDOWN_DELAY_MS = 100;
/** A deletion stops all threads of HAProxy for a moment: small batches leave room for urgent changes. */
const BATCH_SIZE = 16;

export class Reaper {
  readonly #worker: Worker;
  readonly #options: ReaperOptions;
  readonly #clock: Clock;
  readonly #timer: DueTimer;
  /** By `backend server`. */
  readonly #waiting = new Map<string, Waiting>();
  #isClosed = false;

  /** The reaper of one worker. Takes over servers that are already in maintenance there. */
  constructor(worker: Worker, options: ReaperOptions) {
    this.#worker = worker;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timer = new DueTimer(this.#reap, this.#nextDue, this.#clock);
    // The configuration never puts a server into maintenance, so these are changes of an agent.
    for (const [backend, { servers }] of worker.running.changed())
      for (const [server, { state }] of servers) if (state === 'maint') this.#add(backend, server);
    this.#timer.wakeAt(this.#nextDue());
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Notes the servers that these commands put into maintenance. */
  watch(acknowledged: readonly Command[]): void {
    let due = Number.POSITIVE_INFINITY;
    for (const command of acknowledged) {
      if (command.kind !== 'SetServerState' || command.state !== 'maint') continue;
      due = Math.min(due, this.#add(command.backend, command.server));
    }
    this.#timer.wakeAt(due);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer.close();
  }

  /** Returns when the server is due. */
  #add(backend: string, server: string): number {
    const { drainTimeout, connectTimeout } = this.#options;
    const since = this.#clock.monotonic();
    const deletable = since + connectTimeout(backend) + CONNECT_RETRY_MS;
    const due = Math.min(since + drainTimeout(), Math.ceil(deletable / COALESCE_MS) * COALESCE_MS);
    const name = `${backend} ${server}`;
    this.#waiting.set(name, { backend, server, since, deletable, attempts: 0, isShutDown: false, due });
    return due;
  }

  readonly #nextDue = (): number => {
    let due = Number.POSITIVE_INFINITY;
    for (const each of this.#waiting.values()) due = Math.min(due, each.due);
    return due;
  };

  readonly #reap = async (): Promise<void> => {
    try {
      for (let batch = this.#takeDue(); batch.length > 0 && !this.#isClosed; batch = this.#takeDue()) {
        await this.#delete(batch);
      }
    } catch (error) {
      // The connection is lost: the next worker gets its own reaper.
      this.#options.onError(messageOf(error));
      this.close();
    }
  };

  /** Servers that are due and still in maintenance; servers that came back are forgotten. */
  #takeDue(): readonly Waiting[] {
    const now = this.#clock.monotonic();
    const due: Waiting[] = [];
    for (const [name, each] of this.#waiting) {
      if (this.#worker.running.get(each.backend)?.servers.get(each.server)?.state !== 'maint')
        this.#waiting.delete(name);
      else if (each.due <= now && due.length < BATCH_SIZE) due.push(each);
    }
    return due;
  }

  async #delete(batch: readonly Waiting[]): Promise<void> {
    const { runtime, running } = this.#worker;
    const now = this.#clock.monotonic();
    const overdue = batch.filter(({ since }) => now - since >= this.#options.drainTimeout());
    const deletable = batch.filter((each) => each.deletable <= now);
    for (const each of batch) if (each.deletable > now) each.due = each.deletable;
    const commands: Command[] = [
      ...overdue.map(({ backend, server }) => ({ kind: 'ShutdownSessions', backend, server }) as const),
      ...deletable.map(({ backend, server }) => ({ kind: 'DeleteServer', backend, server }) as const),
    ];
    // From now on plans treat these servers as absent: an addition follows the deletion in the queue.
    for (const { backend, server } of deletable) running.markGone(backend, server);
    const replies = await runtime.send(commands);
    let deleted = 0;
    for (const [at, command] of commands.entries()) {
      if (command.kind !== 'DeleteServer') continue;
      const each = this.#waiting.get(`${command.backend} ${command.server}`);
      const reply = replies[at];
      if (reply?.ok || reply?.kind === 'gone') {
        this.#waiting.delete(`${command.backend} ${command.server}`);
        running.fold(command);
        deleted++;
      } else if (each !== undefined) {
        each.due = this.#clock.monotonic() + this.#waitAfter(each);
        running.markKept(command.backend, command.server);
      }
    }
    if (deleted > 0) this.#options.onDeleted(deleted);
  }

  /** The wait after a failed attempt: grows, but ends with the drain timeout. */
  #waitAfter(each: Waiting): number {
    const left = each.since + this.#options.drainTimeout() - this.#clock.monotonic();
    const isShutDown = left <= 0;
    if (isShutDown && !each.isShutDown) each.attempts = 0;
    each.isShutDown = isShutDown;
    each.attempts++;
    if (isShutDown) return backoffMs(each.attempts, { firstMs: 2 * SHUTDOWN_DELAY_MS, mostMs: MAX_WAIT_MS });
    return Math.min(left, backoffMs(each.attempts, { firstMs: 2 * RETRY_DELAY_MS, mostMs: MAX_WAIT_MS }));
  }
}
