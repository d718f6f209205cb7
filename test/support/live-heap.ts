// What an agent still holds, asked over Node's inspector, so that the agent itself has no door for it: what its objects
// take once everything that is unused has been collected (unlike resident memory that does not depend on when the collector
// last ran, so that a leak of a few hundred bytes per event shows), and what keeps its event loop going.

import { once } from 'node:events';
import type { RunningAgent } from './agent.ts';

/** The environment of an agent that can be asked. */
export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes. */
export function liveHeap(agent: RunningAgent): Promise<number> {
  return inspected(agent, async (ask) => {
    await ask('HeapProfiler.collectGarbage');
    return (await ask('Runtime.getHeapUsage')).usedSize as number;
  });
}

/** How many timers, sockets, watchers and the like are open: Node's name of the kind → count. */
export function activeResources(agent: RunningAgent): Promise<ReadonlyMap<string, number>> {
  return inspected(agent, async (ask) => {
    const expression = 'process.getActiveResourcesInfo().join()';
    const { result } = await ask('Runtime.evaluate', { expression, returnByValue: true });
    const counts = new Map<string, number>();
    for (const kind of (result as { value: string }).value.split(','))
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts;
  });
}

type Ask = (method: string, params?: object) => Promise<Readonly<Record<string, unknown>>>;

async function inspected<T>(agent: RunningAgent, use: (ask: Ask) => Promise<T>): Promise<T> {
  const [, url] = /Debugger listening on (ws:\S+)/.exec(agent.text) ?? [];
  if (url === undefined) throw new Error('The agent was not started with INSPECTED');
  const socket = new WebSocket(url);
  await once(socket, 'open');
  let asked = 0;
  const ask: Ask = async (method, params = {}) => {
    const id = ++asked;
    socket.send(JSON.stringify({ id, method, params }));
    for (;;) {
      const [{ data }] = (await once(socket, 'message')) as [{ readonly data: string }];
      const answer = JSON.parse(data);
      if (answer.id === id) return answer.result;
    }
  };
  try {
    return await use(ask);
  } finally {
    socket.close();
  }
}
