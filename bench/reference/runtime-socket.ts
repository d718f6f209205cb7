// A minimal client of HAProxy's runtime socket: it writes lines and counts prompts, and ignores the replies.

import { connect, type Socket } from 'node:net';

export class RuntimeSocket {
  readonly #socket: Socket;
  #due = 0;
  #last = '';
  #done: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const text = this.#last + chunk;
      this.#due -= text.split('\n> ').length - 1;
      this.#last = text.slice(-2);
      if (this.#due <= 0) this.#done?.();
    });
    socket.on('error', () => this.#done?.());
  }

  static async open(path: string): Promise<RuntimeSocket> {
    const socket = connect(path);
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    const opened = new RuntimeSocket(socket);
    await opened.send(['prompt']);
    return opened;
  }

  /** Resolves when HAProxy has replied to each line. Callers must wait before the next call. */
  send(lines: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      this.#due = lines.length;
      this.#done = resolve;
      this.#socket.write(`${lines.join('\n')}\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
