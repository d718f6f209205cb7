// A member for demonstrations: a small HTTP server that answers with its name. member.ts ADDRESS PORT [NAME]
// On SIGTERM it ends as a pod should: it serves for a moment, so that the load balancer can drain it, tells clients to
// reconnect, and exits when its connections have ended.

import { createServer } from 'node:http';

/** From SIGTERM to the end of listening, like a pod's `preStop: sleep`. */
const GRACE_MS = 500;

const [address = '127.0.0.2', port = '8081', name = `${address}:${port}`] = process.argv.slice(2);
let isLeaving = false;

const server = createServer((request, response) => {
  response.setHeader('x-member', name);
  if (isLeaving) response.setHeader('connection', 'close');
  // A slow answer shows that a draining member finishes its answers.
  const wait = request.url === '/slow' ? 1_000 : 0;
  if (wait === 0) return void response.end(`Hello from ${name}\n`);
  // The client sees that the answer has begun.
  response.flushHeaders();
  setTimeout(() => response.end(`Hello from ${name}, after ${wait} ms\n`), wait);
});

process.once('SIGTERM', () => {
  isLeaving = true;
  // After a stall Node runs timers first, so this accepts the connections of the stall before it stops listening.
  setTimeout(() => setImmediate(() => server.close(() => process.exit(0))), GRACE_MS);
});
// The process that started it has ended.
process.once('disconnect', () => process.exit(0));
server.once('error', (error) => {
  console.error(`Cannot listen on ${address} port ${port}: ${error.message}`);
  process.exit(1);
});
server.listen(Number(port), address, () => {
  if (process.send === undefined) console.log(`${name} listens on ${address} port ${port}`);
  else process.send('ready');
});
