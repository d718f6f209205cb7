// Removed servers that HAProxy still lists: deletes them when their connections have ended, however long that takes, because
// Octavia's own agent ends no connection of a removed member either. Owns a timer.

import { backoffMs } from '../base/backoff.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { DueTimer } from '../base/due-timer.ts';
import type { Command } from '../haproxy/socket/commands.ts';
import type { Reply } from '../haproxy/socket/reply.ts';
import type { ServerLine } from './text/server-line.ts';

interface Leaving {
  readonly backend: string;
  readonly line: ServerLine;
  attempts: number;
  due: number;
}

export interface LeavingOptions {
  /** Sends the commands when nothing else changes the worker; undefined if there is none any more. */
  readonly send: (
    commands: () => readonly Command[],
    done: (replies: readonly Reply[]) => void,
  ) => Promise<void>;
  readonly clock?: Clock;
}

/** HAProxy waits a second after a failed connection attempt before it retries; and a margin. */
const CONNECT_RETRY_MS = 1_100;
const RETRIES = { firstMs: 2_000, mostMs: 30_000 };
/** A deletion stops all threads of HAProxy for a moment. */
const BATCH_SIZE = 16;

export class LeavingServers {
  readonly #options: LeavingOptions;
  readonly #clock: Clock;
  readonly #timer: DueTimer;
  /** By backend and name. */
  readonly #servers = new Map<string, Map<string, Leaving>>();

  constructor(options: LeavingOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timer = new DueTimer(this.#delete, this.#nextDue, this.#clock);
  }

  /** By backend and name. */
  get lines(): ReadonlyMap<string, ReadonlyMap<string, ServerLine>> {
    return new Map(
      [...this.#servers].map(([backend, servers]) => [
        backend,
        new Map([...servers].map(([name, { line }]) => [name, line])),
      ]),
    );
  }

  get size(): number {
    return [...this.#servers.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** `connectTimeout`: that of its backend, milliseconds: until then a stream may try to connect to the server. */
  add(backend: string, line: ServerLine, connectTimeout: number): void {
    const due = this.#clock.monotonic() + connectTimeout + CONNECT_RETRY_MS;
    const servers = this.#servers.get(backend) ?? new Map<string, Leaving>();
    servers.set(line.name, { backend, line, attempts: 0, due });
    this.#servers.set(backend, servers);
    this.#timer.wakeAt(due);
  }

  /** It is gone, or a member again. */
  forget(backend: string, name: string): void {
    const servers = this.#servers.get(backend);
    servers?.delete(name);
    if (servers?.size === 0) this.#servers.delete(backend);
  }

  close(): void {
    this.#servers.clear();
    this.#timer.close();
  }

  readonly #nextDue = (): number => {
    let due = Number.POSITIVE_INFINITY;
    for (const each of this.#all()) due = Math.min(due, each.due);
    return due;
  };

  readonly #delete = async (): Promise<void> => {
    let batch: readonly Leaving[] = [];
    const commands = (): readonly Command[] => {
      const now = this.#clock.monotonic();
      batch = [...this.#all()].filter(({ due }) => due <= now).slice(0, BATCH_SIZE);
      return batch.map(({ backend, line }) => ({ kind: 'DeleteServer', backend, server: line.name }));
    };
    await this.#options.send(commands, (replies) => {
      for (const [at, each] of batch.entries()) {
        const reply = replies[at];
        if (reply?.ok || reply?.kind === 'gone') this.forget(each.backend, each.line.name);
      }
    });
    for (const each of batch) each.due = this.#clock.monotonic() + backoffMs(++each.attempts, RETRIES);
  };

  *#all(): Generator<Leaving, void, void> {
    for (const servers of this.#servers.values()) yield* servers.values();
  }
}
