// The agent's socket in the file system: opened at the start, and opened again when its file is gone or another one.

import { lstatSync } from 'node:fs';
import type { Server } from 'node:http';
import type { OwnFile } from '../host/own-files.ts';
import { type Answers, type Orders, serveAgentSocket } from './agent-socket.ts';

export class AgentSocketFile implements OwnFile {
  readonly kind = 'socket';
  readonly path: string;
  readonly #answers: Answers;
  readonly #orders: Orders;
  #server: Server | undefined;
  #inode: bigint | undefined;
  #isClosed = false;

  constructor(path: string, answers: Answers, orders: Orders) {
    this.path = path;
    this.#answers = answers;
    this.#orders = orders;
  }

  /** Errors: as serveAgentSocket(). */
  readonly open = async (): Promise<void> => {
    this.#server = await serveAgentSocket(this.path, this.#answers, this.#orders, this.#server);
    this.#inode = inodeOf(this.path);
    if (this.#isClosed) this.#server.close();
  };

  readonly restore = this.open;

  readonly isIntact = (): boolean => inodeOf(this.path) === this.#inode;

  close(): void {
    this.#isClosed = true;
    this.#server?.close();
  }
}

function inodeOf(path: string): bigint | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
  } catch {
    return undefined;
  }
}
