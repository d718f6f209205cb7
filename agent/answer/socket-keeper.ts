// Keeps the agent's socket where those who ask look for it: it is made again soon after somebody has removed it, its
// folder, or put something else in its place.

import { lstatSync } from 'node:fs';
import type { Server } from 'node:http';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../host/log.ts';
import { type Answers, type Orders, serveAgentSocket } from './agent-socket.ts';

export interface SocketKeeperOptions {
  readonly path: string;
  readonly answers: Answers;
  readonly orders: Orders;
  readonly onRepair: () => void;
  readonly log: Log;
  readonly clock?: Clock;
}

/** Milliseconds. */
const EVERY = 1_000;

export class SocketKeeper {
  readonly #options: SocketKeeperOptions;
  #server: Server | undefined;
  #inode: bigint | undefined;
  #fault = '';
  #cancelLook = (): void => undefined;
  #isOpen = false;

  constructor(options: SocketKeeperOptions) {
    this.#options = options;
  }

  /** Errors: as of serveAgentSocket(). */
  async open(): Promise<void> {
    this.#isOpen = true;
    await this.#serve();
    this.#lookLater();
  }

  close(): void {
    this.#isOpen = false;
    this.#cancelLook();
    this.#server?.close();
  }

  #lookLater(): void {
    const { clock = systemClock } = this.#options;
    if (this.#isOpen) this.#cancelLook = clock.after(EVERY, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { path } = this.#options;
    if (inodeOf(path) !== this.#inode) await this.#restore();
    this.#lookLater();
  }

  async #restore(): Promise<void> {
    const { path, onRepair, log } = this.#options;
    try {
      await this.#serve();
      log.warn("The agent's socket was removed: made again", { path });
      onRepair();
      this.#fault = '';
    } catch (error) {
      const fault = messageOf(error);
      if (fault !== this.#fault)
        log.error("The agent's socket is gone: no command reaches it", { error: fault });
      this.#fault = fault;
    }
  }

  async #serve(): Promise<void> {
    const { path, answers, orders } = this.#options;
    this.#server = await serveAgentSocket(path, answers, orders, this.#server);
    this.#inode = inodeOf(path);
    if (!this.#isOpen) this.#server.close();
  }
}

/** Synchronous: asked every second, and many times as cheap as by the thread pool. */
function inodeOf(path: string): bigint | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
  } catch {
    return undefined;
  }
}
