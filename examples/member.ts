// A member for demonstrations: a small HTTP server on one address and port that says who it is.
// member.ts ADDRESS PORT [NAME]
// SIGTERM ends it as a pod should end: it serves on for a moment, so that the load balancer can take it out first,
// asks clients to reconnect meanwhile, and leaves when its connections have ended.
// SIGUSR2 makes it die without a word, but between two requests: one that it has in hand would be lost with it,
// whatever stands before it.

import { createServer } from 'node:http';
import type { Socket } from 'node:net';

/** Milliseconds from SIGTERM to the end of listening: what `preStop: sleep` is for a pod. */
const GRACE = 500;

const [address = '127.0.0.2', port = '8081', name = `${address}:${port}`] = process.argv.slice(2);
let isLeaving = false;
/** Requests without an answer, and new connections without a request. */
let inHand = 0;
const fresh = new Set<Socket>();

const server = createServer((request, response) => {
  if (!fresh.delete(request.socket)) inHand++;
  response.once('close', () => inHand--);
  response.setHeader('x-member', name);
  if (isLeaving) response.setHeader('connection', 'close');
  // /slow takes its time, to be seen to come to its end while the member drains.
  const wait = request.url === '/slow' ? 1_000 : 0;
  if (wait === 0) response.end(`Hello from ${name}\n`);
  else setTimeout(() => response.end(`Hello from ${name}, after ${wait} ms\n`), wait);
});

process.once('SIGTERM', () => {
  isLeaving = true;
  setTimeout(() => server.close(() => process.exit(0)), GRACE);
});
process.once('SIGUSR2', () => {
  // Each turn takes in what has arrived meanwhile: after some without any there is none.
  const whenIdle = (act: () => void, idleTurns = 0): void => {
    if (idleTurns === 3) act();
    else setImmediate(whenIdle, act, inHand === 0 ? idleTurns + 1 : 0);
  };
  whenIdle(() => {
    // While the kernel takes the memory of a killed process apart it goes on accepting connections for it.
    server.close();
    whenIdle(() => process.kill(process.pid, 'SIGKILL'));
  });
});
server.on('connection', (socket: Socket) => {
  inHand++;
  fresh.add(socket);
  socket.once('close', () => {
    if (fresh.delete(socket)) inHand--;
  });
});
// Whoever started it with a channel has gone.
process.once('disconnect', () => process.exit(0));
server.once('error', (error) => {
  console.error(`Cannot listen on ${address} port ${port}: ${error.message}`);
  process.exit(1);
});
server.listen(Number(port), address, () => {
  if (process.send === undefined) console.log(`${name} listens on ${address} port ${port}`);
  else process.send('ready');
});
