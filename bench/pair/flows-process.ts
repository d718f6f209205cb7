// The clients of `kernel-failover`: connections of TCP and flows of UDP, on each of which a message is sent every 50 ms.

import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { monotonic } from '../api/monotonic.ts';
import { answer } from '../support/parent.ts';

export interface FlowsOrder {
  readonly address: string;
  readonly port: number;
  readonly connections: number;
  readonly datagrams: number;
}

export interface Flows {
  readonly connections: number;
  readonly datagrams: number;
  /** Flows without an answer in the last second, or whose connection has ended. */
  readonly broken: number;
  /** The longest time without an answer of any other flow. */
  readonly longestMs: number;
}

interface Flow {
  readonly isTcp: boolean;
  lastAt: number;
  longest: number;
  isEnded: boolean;
}

const INTERVAL_MS = 50;
const flows: Flow[] = [];

process.on('message', async (question: FlowsOrder | { readonly end: true }) => {
  if ('address' in question) {
    const { address, port, connections, datagrams } = question;
    for (let n = 0; n < connections; n++) await openConnection(address, port);
    for (let n = 0; n < datagrams; n++) await openDatagrams(address, port);
  }
  answer(result());
});

function result(): Flows {
  const now = monotonic();
  const isBroken = ({ isEnded, lastAt }: Flow): boolean => isEnded || now - lastAt > 1_000;
  const whole = flows.filter((flow) => !isBroken(flow));
  const connections = flows.filter(({ isTcp }) => isTcp).length;
  return {
    connections,
    datagrams: flows.length - connections,
    broken: flows.length - whole.length,
    longestMs: Math.max(0, ...whole.map(({ longest }) => longest)),
  };
}

function newFlow(isTcp: boolean): Flow & { readonly answered: () => void } {
  const flow = {
    isTcp,
    lastAt: monotonic(),
    longest: 0,
    isEnded: false,
    answered: () => {
      const now = monotonic();
      flow.longest = Math.max(flow.longest, now - flow.lastAt);
      flow.lastAt = now;
    },
  };
  flows.push(flow);
  return flow;
}

/** Resolves at the first answer; tries again until the VIP is served. */
async function openConnection(address: string, port: number): Promise<void> {
  for (;;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, address).setNoDelay();
      let flow: ReturnType<typeof newFlow> | undefined;
      socket.once('error', () => undefined);
      socket.once('connect', () => socket.write('?'));
      socket.on('data', () => {
        if (flow === undefined) setInterval(() => socket.write('?'), INTERVAL_MS);
        flow ??= newFlow(true);
        flow.answered();
        resolve(true);
      });
      socket.once('close', () => {
        if (flow !== undefined) flow.isEnded = true;
        resolve(false);
      });
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function openDatagrams(address: string, port: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    let flow: ReturnType<typeof newFlow> | undefined;
    socket.on('error', () => undefined);
    socket.on('message', () => {
      flow ??= newFlow(false);
      flow.answered();
      resolve();
    });
    socket.connect(port, address, () => setInterval(() => socket.send('?', () => undefined), INTERVAL_MS));
  });
}
