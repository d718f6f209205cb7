// Deletes servers that are out of use, off the path of every change: not before their connections have ended, or
// their time to drain is over, and never in a hurry: HAProxy 3.3 and newer refuse right after maintenance, and older ones
// do not know of streams whose attempt to connect to the server has just failed (docs/design/haproxy-versions.md).

import { messageOf } from '../../base/errors.ts';
import type { Command } from '../socket/commands.ts';
import type { Worker } from '../worker.ts';

interface Waiting {
  readonly backend: string;
  readonly server: string;
  /** Milliseconds on the clock. */
  readonly since: number;
  /** From when no stream can be about to try it once more. */
  readonly deletable: number;
  /** Of late: since its connections were told to end, where they were. */
  attempts: number;
  isShutDown: boolean;
  due: number;
}

export interface ReaperOptions {
  /** Milliseconds a removed server's connections may go on. */
  readonly drainTimeout: () => number;
  /** Milliseconds that an attempt to connect to a server of this backend may take. */
  readonly connectTimeout: (backend: string) => number;
  readonly onDeleted: (count: number) => void;
  readonly onError: (message: string) => void;
  readonly now?: () => number;
}

/** HAProxy waits a second after a failed attempt before it tries again (back_handle_st_cer()); and some slack. */
const TURN_AROUND = 1_100;
/** After an attempt to delete that failed. */
const RETRY = 1_000;
/** What falls due within this is deleted together: nobody waits for it, and each wake-up costs more than a deletion. */
const TOGETHER = 1_000;
const LONGEST_WAIT = 30_000;
/** From when connections were told to end until they have. */
const SHUTDOWN_WAIT = 100;
/** Deletions stop all of HAProxy's threads for a moment: few at a time, so that an urgent change fits between. */
const BATCH = 16;

export class Reaper {
  readonly #worker: Worker;
  readonly #options: ReaperOptions;
  readonly #now: () => number;
  /** `backend server` to what is known of it. */
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer goes off. */
  #wakes = Number.POSITIVE_INFINITY;
  #isReaping = false;
  #closed = false;

  /** One worker's reaper; takes over the servers that are already in maintenance there. */
  constructor(worker: Worker, options: ReaperOptions) {
    this.#worker = worker;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    // No file says maintenance.
    for (const [backend, { servers }] of worker.running.changed())
      for (const [server, { state }] of servers) if (state === 'maint') this.#add(backend, server);
    this.#schedule();
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes note of servers that these commands have put into maintenance. */
  watch(acknowledged: readonly Command[]): void {
    let due = Number.POSITIVE_INFINITY;
    for (const command of acknowledged) {
      if (command.kind !== 'SetServerState' || command.state !== 'maint') continue;
      due = Math.min(due, this.#add(command.backend, command.server));
    }
    this.#wakeAt(due);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** When it is due. */
  #add(backend: string, server: string): number {
    const { drainTimeout, connectTimeout } = this.#options;
    const since = this.#now();
    const deletable = since + connectTimeout(backend) + TURN_AROUND;
    const due = Math.min(since + drainTimeout(), Math.ceil(deletable / TOGETHER) * TOGETHER);
    const name = `${backend} ${server}`;
    this.#waiting.set(name, { backend, server, since, deletable, attempts: 0, isShutDown: false, due });
    return due;
  }

  /** Wakes up when the first one is due. */
  #schedule(): void {
    let due = Number.POSITIVE_INFINITY;
    for (const each of this.#waiting.values()) due = Math.min(due, each.due);
    this.#wakeAt(due);
  }

  #wakeAt(due: number): void {
    if (this.#closed || this.#isReaping || due >= this.#wakes) return;
    clearTimeout(this.#timer);
    this.#wakes = due;
    this.#timer = setTimeout(() => void this.#reap(), Math.max(0, due - this.#now()));
  }

  async #reap(): Promise<void> {
    this.#isReaping = true;
    this.#wakes = Number.POSITIVE_INFINITY;
    try {
      for (let batch = this.#takeDue(); batch.length > 0 && !this.#closed; batch = this.#takeDue()) {
        await this.#delete(batch);
      }
    } catch (error) {
      // The connection is gone: the next worker has a reaper of its own.
      this.#options.onError(messageOf(error));
      this.close();
    }
    this.#isReaping = false;
    this.#schedule();
  }

  /** Those that are due and still in maintenance; one that has come back into use is forgotten. */
  #takeDue(): readonly Waiting[] {
    const now = this.#now();
    const due: Waiting[] = [];
    for (const [name, each] of this.#waiting) {
      if (this.#worker.running.get(each.backend)?.servers.get(each.server)?.state !== 'maint')
        this.#waiting.delete(name);
      else if (each.due <= now && due.length < BATCH) due.push(each);
    }
    return due;
  }

  async #delete(batch: readonly Waiting[]): Promise<void> {
    const { runtime, running } = this.#worker;
    const now = this.#now();
    const overdue = batch.filter(({ since }) => now - since >= this.#options.drainTimeout());
    const deletable = batch.filter((each) => each.deletable <= now);
    for (const each of batch) if (each.deletable > now) each.due = each.deletable;
    const commands: Command[] = [
      ...overdue.map(({ backend, server }) => ({ kind: 'ShutdownSessions', backend, server }) as const),
      ...deletable.map(({ backend, server }) => ({ kind: 'DeleteServer', backend, server }) as const),
    ];
    // From here a plan must take these for absent: an addition that follows stands behind the deletion in the queue.
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
        each.due = this.#now() + this.#waitAfter(each);
        running.markKept(command.backend, command.server);
      }
    }
    if (deleted > 0) this.#options.onDeleted(deleted);
  }

  /** Until the next attempt after one that failed: longer and longer, but never past the end of the drain timeout. */
  #waitAfter(each: Waiting): number {
    const left = each.since + this.#options.drainTimeout() - this.#now();
    const isShutDown = left <= 0;
    if (isShutDown && !each.isShutDown) each.attempts = 0;
    each.isShutDown = isShutDown;
    each.attempts++;
    if (isShutDown) return Math.min(LONGEST_WAIT, SHUTDOWN_WAIT * 2 ** each.attempts);
    return Math.min(LONGEST_WAIT, RETRY * 2 ** each.attempts, left);
  }
}
