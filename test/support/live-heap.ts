// What an agent's objects take once everything that is unused has been collected, asked over Node's inspector. Unlike
// resident memory it does not depend on when the collector last ran, so that a leak of a few hundred bytes per event shows.

import { once } from 'node:events';
import type { RunningAgent } from './agent.ts';

/** The environment of an agent that can be asked. */
export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes. */
export async function liveHeap(agent: RunningAgent): Promise<number> {
  const [, url] = /Debugger listening on (ws:\S+)/.exec(agent.text) ?? [];
  if (url === undefined) throw new Error('The agent was not started with INSPECTED');
  const socket = new WebSocket(url);
  await once(socket, 'open');
  let asked = 0;
  const ask = async (method: string): Promise<{ readonly usedSize: number }> => {
    const id = ++asked;
    socket.send(JSON.stringify({ id, method }));
    for (;;) {
      const [{ data }] = (await once(socket, 'message')) as [{ readonly data: string }];
      const answer = JSON.parse(data);
      if (answer.id === id) return answer.result;
    }
  };
  try {
    await ask('HeapProfiler.collectGarbage');
    return (await ask('Runtime.getHeapUsage')).usedSize;
  } finally {
    socket.close();
  }
}
