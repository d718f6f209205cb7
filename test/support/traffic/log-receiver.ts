// Receivers of the connection log: syslog by UDP, and the datagram socket of a syslog server, which Python opens, because Node
// has no unix datagram sockets.

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { ExecutionContext } from 'ava';

export interface LogReceiver {
  /** As in the setting `connectionLogTarget`. */
  readonly target: string;
  /** The messages so far, with their syslog headers. */
  readonly messages: readonly string[];
  /** The JSON of each message of the severity of traffic, parsed. Errors: one is not JSON. */
  readonly lines: () => readonly LogLine[];
}

export type LogLine = Readonly<Record<string, string | number>>;

/** Ends with the test. */
export async function udpReceiver(t: ExecutionContext<unknown>, address: string): Promise<LogReceiver> {
  const messages: string[] = [];
  const socket = createSocket('udp4').on('message', (bytes) => messages.push(bytes.toString('latin1')));
  socket.bind(0, address);
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return receiver(`${address}:${socket.address().port}`, messages);
}

const LISTEN = `
import json, os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
print(json.dumps("bound"), flush=True)
while True:
    print(json.dumps(receiver.recv(65536).decode("latin1")), flush=True)
`;

export interface SocketReceiver extends LogReceiver {
  /** Reads no more: the kernel's queue fills. */
  readonly pause: () => void;
  readonly resume: () => void;
}

/** Ends with the test. */
export async function socketReceiver(t: ExecutionContext<unknown>, path: string): Promise<SocketReceiver> {
  const messages: string[] = [];
  const child = spawn('python3', ['-c', LISTEN, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  lines.on('line', (line) => messages.push(JSON.parse(line) as string));
  const pause = (): void => void child.kill('SIGSTOP');
  return { ...receiver(`socket:${path}`, messages), pause, resume: () => void child.kill('SIGCONT') };
}

/** Severity 6 of facility 16, `local0`, and 3 for what failed beside other lines. */
const OF_TRAFFIC = /^<13[14]>/;

function receiver(target: string, messages: readonly string[]): LogReceiver {
  const lines = (): readonly LogLine[] =>
    messages
      .filter((message) => OF_TRAFFIC.test(message))
      .map((message) => JSON.parse(message.slice(message.indexOf('{'))) as LogLine);
  return { target, messages, lines };
}
