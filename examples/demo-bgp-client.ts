// The client of `make demo-bgp`, a process in a network of its own: keeps connections open on which bytes come back, and opens
// a new one every 10 ms. `demo-bgp-client.ts ADDRESS PORT`; each message has an answer.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface ClientReport {
  /** New connections. */
  readonly opened: number;
  readonly failed: number;
  /** Milliseconds between the starts of the first and the last connection that failed. */
  readonly during: number;
  /** Connections that were open when the act began. */
  readonly kept: number;
  readonly broken: number;
  /** Why, each once. */
  readonly causes: readonly string[];
}

/** `keep` opens connections until all are there; `visit` begins to open new ones; `report` ends that. */
export type ClientOrder = 'keep' | 'visit' | 'report';

interface Kept {
  readonly socket: Socket;
  heard: number;
  broken: string;
}

const [address = '', port = ''] = process.argv.slice(2);
const COUNT = 200;
const INTERVAL_MS = 10;
/** Shorter than the second until a SYN that was lost is sent again. */
const TIMEOUT_MS = 700;
const BYTE_INTERVAL_MS = 200;
/** A connection that was silent for so long is broken. */
const SILENT_MS = 1_500;

let kept: Kept[] = [];
let isVisiting = false;
let opened = 0;
let failures: { readonly began: number; readonly cause: string }[] = [];
let visiting: Promise<void> = Promise.resolve();

setInterval(() => {
  for (const { broken, socket } of kept) if (broken === '') socket.write('x');
}, BYTE_INTERVAL_MS).unref();
process.on('message', async (order: ClientOrder) => {
  if (order === 'keep') await keepAll();
  if (order === 'visit') {
    [isVisiting, opened, failures] = [true, 0, []];
    visiting = visit();
  }
  process.send?.(order === 'report' ? await report() : {});
});
process.on('disconnect', () => process.exit());

async function keepAll(): Promise<void> {
  kept = kept.filter(({ broken }) => broken === '');
  while (kept.length < COUNT) kept.push(keep());
  const end = performance.now() + 10_000;
  while (kept.some(({ heard }) => heard === 0)) {
    const cause = kept.find(({ broken }) => broken !== '')?.broken;
    if (cause !== undefined || performance.now() > end)
      throw new Error(`Connections cannot be opened: ${cause ?? 'no answer'}`);
    await delay(20);
  }
}

function keep(): Kept {
  const socket = connect({ host: address, port: Number(port), noDelay: true });
  const one: Kept = { socket, heard: 0, broken: '' };
  socket.on('data', () => {
    one.heard = performance.now();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    one.broken ||= error.code ?? error.message;
  });
  socket.on('close', () => {
    one.broken ||= 'closed';
  });
  return one;
}

async function visit(): Promise<void> {
  const open: Promise<void>[] = [];
  for (; isVisiting; await delay(INTERVAL_MS)) {
    opened++;
    const began = performance.now();
    open.push(
      once().then((cause) => {
        if (cause !== '') failures.push({ began, cause });
      }),
    );
  }
  await Promise.all(open);
}

/** Opens a connection, sends a byte and gets it back; why not, or ''. */
function once(): Promise<string> {
  return new Promise((resolve) => {
    let cause = 'closed without an answer';
    const socket = connect({ host: address, port: Number(port), noDelay: true });
    const late = setTimeout(() => {
      cause = 'no answer';
      socket.destroy();
    }, TIMEOUT_MS);
    socket.on('connect', () => socket.write('x'));
    socket.on('data', () => {
      cause = '';
      socket.end();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (cause !== '') cause = error.code ?? error.message;
    });
    socket.on('close', () => {
      clearTimeout(late);
      resolve(cause);
    });
  });
}

async function report(): Promise<ClientReport> {
  isVisiting = false;
  await visiting;
  const now = performance.now();
  for (const one of kept) if (one.broken === '' && now - one.heard > SILENT_MS) one.broken = 'silent';
  const broken = kept.flatMap((one) => (one.broken === '' ? [] : [one.broken]));
  for (const { socket } of kept.filter((one) => one.broken !== '')) socket.destroy();
  const starts = failures.map(({ began }) => began);
  return {
    opened,
    failed: failures.length,
    during: failures.length === 0 ? 0 : Math.max(...starts) - Math.min(...starts),
    kept: kept.length,
    broken: broken.length,
    causes: [...new Set([...failures.map(({ cause }) => cause), ...broken])],
  };
}
