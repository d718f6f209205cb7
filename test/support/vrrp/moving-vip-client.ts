// The client of a VIP that moves, a process in its own network: `moving-vip-client.ts PORT KIND ADDRESS...`. It repeats
// questions on one connection to the first address and, if the kind is `both`, opens new connections to all addresses in
// turn. It prints its results so far as lines of JSON, the last one at SIGTERM.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface MovingVipResult {
  /** New connections with an answer, and the errors of the others. */
  readonly connections: number;
  readonly failures: readonly string[];
  /** Answers on the kept connection, and how it ended; '' if it has not. */
  readonly answers: number;
  readonly end: string;
}

const CONNECTION_INTERVAL_MS = 20;
const QUESTION_INTERVAL_MS = 50;
const PRINT_INTERVAL_MS = 100;
const ANSWER_TIMEOUT_MS = 15_000;

const [port = '', kind = '', ...addresses] = process.argv.slice(2);
const failures: string[] = [];
let [connections, answers, end, isOver] = [0, 0, '', false];

process.once('SIGTERM', () => {
  isOver = true;
});
const printing = setInterval(print, PRINT_INTERVAL_MS);
await Promise.all([keep(addresses[0] ?? ''), kind === 'both' ? make() : undefined]);
clearInterval(printing);
print();
process.stdout.end(() => process.exit());

function print(): void {
  const result: MovingVipResult = { connections, failures, answers, end };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

async function keep(address: string): Promise<void> {
  const socket = connect(Number(port), address);
  try {
    for (; !isOver; await delay(QUESTION_INTERVAL_MS)) {
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
    await delay(CONNECTION_INTERVAL_MS);
  }
  await Promise.all(open);
}

/** Rejects if there is no answer, also if the connection has ended since the last answer. */
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
    const timer = setTimeout(
      () => done(new Error(`No answer within ${ANSWER_TIMEOUT_MS} ms`)),
      ANSWER_TIMEOUT_MS,
    );
    socket.once('error', done).once('close', () => done(new Error('Closed')));
    socket.once('data', () => done());
    socket.write('?');
  });
}
