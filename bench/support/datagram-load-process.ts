// Sends datagrams as fast as they are answered: 32 flows, each with four datagrams on their way. Answers each order with the
// number of answers in a second.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { answer, over } from './parent.ts';

export interface DatagramOrder {
  readonly address: string;
  readonly port: number;
  readonly milliseconds: number;
}

export interface DatagramRate {
  readonly perSecond: number;
}

const FLOWS = 32;
const ON_THEIR_WAY = 4;
const DATAGRAM = Buffer.alloc(64, '?');
/** A flow whose datagrams are lost begins again. */
const SILENCE_MS = 100;

async function load({ address, port, milliseconds }: DatagramOrder): Promise<number> {
  let answers = 0;
  const began = performance.now();
  const flows = Array.from({ length: FLOWS }, () => createSocket('udp4'));
  await Promise.all(
    flows.map(async (socket) => {
      socket.connect(port, address);
      await once(socket, 'connect');
      let before = -1;
      let own = 0;
      const fill = (): void => {
        if (own === before) for (let each = 0; each < ON_THEIR_WAY; each++) socket.send(DATAGRAM, () => 0);
        before = own;
      };
      socket.on('error', () => undefined);
      socket.on('message', () => {
        own++;
        answers++;
        socket.send(DATAGRAM, () => 0);
      });
      before = own;
      fill();
      const timer = setInterval(fill, SILENCE_MS);
      await new Promise((resolve) => setTimeout(resolve, began + milliseconds - performance.now()));
      clearInterval(timer);
      socket.close();
    }),
  );
  return (1_000 * answers) / (performance.now() - began);
}

process.on('message', async (order: DatagramOrder) => {
  const rate: DatagramRate = { perSecond: await load(order) };
  answer(rate);
});
await over;
process.exit();
