// A socket like systemd's for sd_notify(3), which collects messages. Python opens it, because Node has no unix datagram
// sockets. It closes the descriptors of a message, so a sender's barrier ends.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ExecutionContext } from 'ava';

const LISTEN = `
import json, os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
print(json.dumps("bound"), flush=True)
while True:
    print(json.dumps(receiver.recv(65536).decode()), flush=True)
`;

import { Deadline } from '../basics/deadline.ts';

export class NotifySocket {
  readonly path: string;
  /** The variables of each message, in order. */
  readonly messages: string[][] = [];

  /** The socket is removed with the test. */
  static async open(t: ExecutionContext<unknown>): Promise<NotifySocket> {
    const directory = await mkdtemp(join(tmpdir(), 'hg-notify-'));
    const path = join(directory, 'notify');
    const child = spawn('python3', ['-c', LISTEN, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await rm(directory, { recursive: true, force: true });
    });
    const socket = new NotifySocket(path);
    await socket.#listen(child);
    return socket;
  }

  private constructor(path: string) {
    this.path = path;
  }

  /** All variables since message `from`. */
  told(from = 0): readonly string[] {
    return this.messages.slice(from).flat();
  }

  async until(what: string, condition: () => boolean, timeout = 15_000): Promise<void> {
    for (const deadline = new Deadline(timeout, 30); !condition(); await deadline.pause())
      if (deadline.isOver)
        throw new Error(`Not within ${timeout} ms: ${what}; received: ${JSON.stringify(this.messages)}`);
  }

  async #listen({ stdout }: ChildProcess): Promise<void> {
    if (stdout === null) throw new Error('Python has no output');
    const lines = createInterface({ input: stdout });
    const bound = once(lines, 'line');
    await bound;
    lines.on('line', (line) => {
      const text = JSON.parse(line) as string;
      if (text !== 'BARRIER=1') this.messages.push(text.split('\n'));
    });
  }
}
