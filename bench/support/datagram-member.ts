// A member that answers each datagram with itself. `datagram-member.ts PORT`; answers any message when it serves.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { answer, over } from './parent.ts';

const socket = createSocket('udp4');
socket.on('message', (data, { address, port }) => socket.send(data, port, address));
socket.bind(Number(process.argv[2]));
await once(socket, 'listening');
process.on('message', () => answer({}));
await over;
process.exit();
