// Members and clients of UDP: members answer with their address, and clients send a packet every few milliseconds, each on a
// flow of its own.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { pause } from '../support/until.ts';

const INTERVAL_MS = 5;
/** For the answers on their way. */
const LAST_MS = 500;

/** Answers each packet; the returned function ends it. */
export async function echoes(addresses: readonly string[], port: number): Promise<() => void> {
  const sockets = await Promise.all(
    addresses.map(async (address) => {
      const socket = createSocket('udp4');
      socket.on('message', (text, from) => socket.send(`${text} ${address}`, from.port, from.address));
      socket.bind(port, address);
      await once(socket, 'listening');
      return socket;
    }),
  );
  return () => {
    for (const socket of sockets) socket.close();
  };
}

export interface Flows {
  /** Packets without an answer, and flows that more than one member has answered. */
  readonly end: () => Promise<{ readonly sent: number; readonly lost: number; readonly moved: number }>;
}

export async function datagramFlows(address: string, port: number, count: number): Promise<Flows> {
  let [sent, answered] = [0, 0];
  const members: Set<string>[] = [];
  const sockets: Socket[] = [];
  for (let n = 0; n < count; n++) {
    const socket = createSocket('udp4');
    const seen = new Set<string>();
    members.push(seen);
    socket.on('error', () => undefined);
    socket.on('message', (text) => {
      answered++;
      seen.add(String(text).split(' ')[1] ?? '');
    });
    socket.connect(port, address);
    await once(socket, 'connect');
    sockets.push(socket);
  }
  const timer = setInterval(() => {
    for (const socket of sockets) {
      sent++;
      socket.send(String(sent));
    }
  }, INTERVAL_MS);
  return {
    end: async () => {
      clearInterval(timer);
      await pause(LAST_MS);
      for (const socket of sockets) socket.close();
      return { sent, lost: sent - answered, moved: members.filter((seen) => seen.size > 1).length };
    },
  };
}
