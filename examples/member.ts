// A member for demonstrations: a small HTTP server on one address and port that says who it is.
// member.ts ADDRESS PORT [NAME]
// SIGTERM ends it as a pod should end: it serves on for a moment, so that the load balancer can take it out first,
// asks clients to reconnect meanwhile, and leaves when its connections have ended.

import { createServer } from 'node:http';

/** Milliseconds from SIGTERM to the end of listening: what `preStop: sleep` is for a pod. */
const GRACE = 500;

const [address = '127.0.0.2', port = '8081', name = `${address}:${port}`] = process.argv.slice(2);
let isLeaving = false;

const server = createServer((request, response) => {
  response.setHeader('x-member', name);
  if (isLeaving) response.setHeader('connection', 'close');
  // /slow takes its time, to be seen to come to its end while the member drains.
  const wait = request.url === '/slow' ? 1_000 : 0;
  if (wait === 0) return void response.end(`Hello from ${name}\n`);
  // Whoever asks sees that it has begun.
  response.flushHeaders();
  setTimeout(() => response.end(`Hello from ${name}, after ${wait} ms\n`), wait);
});

process.once('SIGTERM', () => {
  isLeaving = true;
  // Timers come first after a stall: those who have connected meanwhile are let in before nobody is any more.
  setTimeout(() => setImmediate(() => server.close(() => process.exit(0))), GRACE);
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
