// Probes a member by UDP: sends an empty datagram from a connected socket, to which the kernel reports an answer of ICMP that
// nothing listens on the port. Silence is no failure, because few servers answer an empty datagram.

import { createSocket } from 'node:dgram';
import { systemClock } from '../../base/clock.ts';
import { isShortage } from '../../host/shortage.ts';

export interface UdpAddress {
  readonly address: string;
  readonly port: number;
}

/** `unknown`: this process has no descriptor for a socket. A text is why the probe failed. */
export type UdpAnswer = 'data' | 'silence' | 'unknown' | { readonly failure: string };

export const REFUSED: UdpAnswer = { failure: 'nothing listens on its UDP port (ICMP port unreachable)' };
const EMPTY = Buffer.alloc(0);

export function probeUdp({ address, port }: UdpAddress, timeoutMs: number): Promise<UdpAnswer> {
  return new Promise((resolve) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4').unref();
    let isOver = false;
    const end = (answer: UdpAnswer): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      socket.close();
      resolve(answer);
    };
    const fail = (error: Error): void => end(answerOf(error));
    const cancel = systemClock.after(timeoutMs, () => end('silence'));
    socket.on('error', fail).on('message', () => end('data'));
    socket.connect(port, address, () => {
      if (!isOver) socket.send(EMPTY, (error) => error && fail(error));
    });
  });
}

function answerOf(error: NodeJS.ErrnoException): UdpAnswer {
  if (isShortage(error)) return 'unknown';
  return error.code === 'ECONNREFUSED' ? REFUSED : { failure: `the datagram cannot be sent (${error.code})` };
}
