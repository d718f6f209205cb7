// The client of a VIP that moves, a process in a network of its own: `moving-vip-client.ts PORT KIND ADDRESS...`. It keeps
// a connection to the first address, on which it asks again and again, and, where the kind is `both`, makes new ones to
// all in turn. It says what has come of it so far, a line of JSON each time, for the last time when it is told to end
// (SIGTERM).

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface MovingVipResult {
  /** New connections on which the question was answered, and why others failed. */
  readonly connections: number;
  readonly failures: readonly string[];
  /** Questions that were answered on the connection that is kept, and how it ended; '' where it has not. */
  readonly answers: number;
  readonly end: string;
}

/** Milliseconds between two new connections, between two questions, between two lines, and for each answer. */
const EVERY = 20;
const ASK = 50;
const TELL = 100;
const PATIENCE = 15_000;

const [port = '', kind = '', ...addresses] = process.argv.slice(2);
const failures: string[] = [];
let [connections, answers, end, isOver] = [0, 0, '', false];

process.once('SIGTERM', () => {
  isOver = true;
});
const telling = setInterval(tell, TELL);
await Promise.all([keep(addresses[0] ?? ''), kind === 'both' ? make() : undefined]);
clearInterval(telling);
tell();
process.stdout.end(() => process.exit());

function tell(): void {
  const result: MovingVipResult = { connections, failures, answers, end };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

async function keep(address: string): Promise<void> {
  const socket = connect(Number(port), address);
  try {
    for (; !isOver; await delay(ASK)) {
      await ask(socket);
      answers++;
    }
  } catch (error) {
    end = String(error);
  } finally {
    socket.destroy();
  }
}

async function make(): Promise<void> {
  const open = new Set<Promise<void>>();
  for (let at = 0; !isOver; at = (at + 1) % addresses.length) {
    const began = new Date().toISOString();
    const socket = connect(Number(port), addresses[at] ?? '');
    const one = ask(socket)
      .then(() => void connections++)
      .catch((error) => void failures.push(`${began} ${addresses[at]}: ${error}`))
      .finally(() => {
        socket.destroy();
        open.delete(one);
      });
    open.add(one);
    await delay(EVERY);
  }
  await Promise.all(open);
}

/** Rejects where there is no answer, also where the connection has ended since the last one: nobody has heard of it. */
function ask(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.reject(socket.errored ?? new Error('Closed'));
  return new Promise((resolve, reject) => {
    const done = (error?: Error): void => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      if (error === undefined) resolve();
      else reject(error);
    };
    const timer = setTimeout(() => done(new Error(`No answer within ${PATIENCE} ms`)), PATIENCE);
    socket.once('error', done).once('close', () => done(new Error('Closed')));
    socket.once('data', () => done());
    socket.write('?');
  });
}
