// Pods and the server of `egress-new-pod`. `egress-process.ts server PORT` notes when the first datagram with a pod's address in
// it came from a VIP; `egress-process.ts pods` sends one datagram a millisecond, each from a new port, as the pod that it is told.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { monotonic } from '../api/monotonic.ts';
import { answer, over } from './parent.ts';

export interface PodOrder {
  /** '' ends the last pod. */
  readonly pod: string;
  readonly to: string;
  readonly port: number;
}

export interface SeenOrder {
  readonly pod: string;
  readonly vip: string;
}

/** `at`: monotonic; 0 if no datagram has come. */
export interface Seen {
  readonly at: number;
}

if (process.argv[2] === 'server') await server(Number(process.argv[3]));
else await pods();

async function server(port: number): Promise<void> {
  const first = new Map<string, number>();
  const socket = createSocket('udp4').on('message', (text, { address }) => {
    const key = `${text} ${address}`;
    if (!first.has(key)) first.set(key, monotonic());
  });
  socket.bind(port);
  await once(socket, 'listening');
  process.on('message', ({ pod, vip }: SeenOrder) => answer({ at: first.get(`${pod} ${vip}`) ?? 0 }));
  await over;
  process.exit();
}

async function pods(): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  process.on('message', ({ pod, to, port }: PodOrder) => {
    clearInterval(timer);
    const send = (): void => {
      const socket = createSocket('udp4').on('error', () => undefined);
      socket.bind({ address: pod }, () => socket.send(pod, port, to, () => socket.close()));
    };
    if (pod !== '') timer = setInterval(send, 1);
    answer({});
  });
  await over;
  process.exit();
}
