// A member for flows of TCP and UDP: answers each message with itself. `flows-member.ts PORT`.

import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { answer } from '../support/parent.ts';

const port = Number(process.argv[2]);
createServer((socket) => socket.on('error', () => undefined).on('data', (data) => socket.write(data))).listen(
  port,
);
const datagrams = createSocket('udp4');
datagrams.on('message', (text, { address, port: from }) => datagrams.send(text, from, address));
datagrams.bind(port);
process.once('message', () => answer({}));
