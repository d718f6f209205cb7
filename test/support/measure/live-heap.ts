// Reads over Node's inspector what an agent holds: the memory of its objects after a garbage collection, and its open
// timers, sockets and watchers. Unlike resident memory, this shows a leak of a few hundred bytes per event.

import { once } from 'node:events';
import type { RunningAgent } from '../host/agent.ts';

/** The environment of an agent with an inspector. */
export const INSPECTED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes of the objects, without compiled code, which grows with use. */
export function liveHeap(agent: RunningAgent): Promise<number> {
  return inspected(agent, async (ask) => {
    await ask('HeapProfiler.collectGarbage');
    const expression = `process.getBuiltinModule('v8').getHeapSpaceStatistics()
      .filter(({ space_name }) => /^(new|old|(new_)?large_object)/.test(space_name))
      .reduce((sum, { space_used_size }) => sum + space_used_size, 0)`;
    return evaluated<number>(ask, expression);
  });
}

/** Node's name of a kind of resource → number of open ones: timers, sockets, watchers. */
export function activeResources(agent: RunningAgent): Promise<ReadonlyMap<string, number>> {
  return inspected(agent, async (ask) => {
    const kinds = await evaluated<string>(ask, 'process.getActiveResourcesInfo().join()');
    const counts = new Map<string, number>();
    for (const kind of kinds.split(',')) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts;
  });
}

/** The number of set timers, including those that do not keep the event loop running. */
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
    // The inspector removes both when the connection ends.
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
  if (url === undefined) throw new Error('The agent has been started without INSPECTED');
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
