// What an agent still holds, asked over Node's inspector, so that the agent itself has no door for it: what its objects
// take once everything that is unused has been collected (unlike resident memory that does not depend on when the collector
// last ran, so that a leak of a few hundred bytes per event shows), and what keeps its event loop going.

import { once } from 'node:events';
import type { RunningAgent } from '../host/agent.ts';

/** The environment of an agent that can be asked. */
export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes of its objects; without those of code, of which there is more the oftener it has run. */
export function liveHeap(agent: RunningAgent): Promise<number> {
  return inspected(agent, async (ask) => {
    await ask('HeapProfiler.collectGarbage');
    const expression = `process.getBuiltinModule('v8').getHeapSpaceStatistics()
      .filter(({ space_name }) => /^(new|old|(new_)?large_object)/.test(space_name))
      .reduce((sum, { space_used_size }) => sum + space_used_size, 0)`;
    return evaluated<number>(ask, expression);
  });
}

/** How many timers, sockets, watchers and the like are open: Node's name of the kind → count. */
export function activeResources(agent: RunningAgent): Promise<ReadonlyMap<string, number>> {
  return inspected(agent, async (ask) => {
    const kinds = await evaluated<string>(ask, 'process.getActiveResourcesInfo().join()');
    const counts = new Map<string, number>();
    for (const kind of kinds.split(',')) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts;
  });
}

/** How many timers are set, also those that do not keep the event loop going. */
export function setTimers(agent: RunningAgent): Promise<number> {
  return inspected(agent, async (ask) => {
    const expression =
      '(() => { const own = setTimeout(() => 0, 0); clearTimeout(own); return Object.getPrototypeOf(own); })()';
    const prototype = (await ask('Runtime.evaluate', { expression })).result as RemoteObject;
    const timers = (await ask('Runtime.queryObjects', { prototypeObjectId: prototype.objectId }))
      .objects as RemoteObject;
    const functionDeclaration = 'function () { return this.filter((timer) => !timer._destroyed).length; }';
    const count = await ask('Runtime.callFunctionOn', {
      ...{ objectId: timers.objectId, functionDeclaration, returnByValue: true },
    });
    // The connection's end forgets both.
    return (count.result as { value: number }).value;
  });
}

interface RemoteObject {
  readonly objectId: string;
}

type Ask = (method: string, params?: object) => Promise<Readonly<Record<string, unknown>>>;

async function evaluated<T>(ask: Ask, expression: string): Promise<T> {
  const { result, exceptionDetails } = await ask('Runtime.evaluate', { expression, returnByValue: true });
  if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
  return (result as { value: T }).value;
}

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
