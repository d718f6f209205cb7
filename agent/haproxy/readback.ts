// Reads from a HAProxy worker what it runs: all of it when the agent adopts a worker, one listener when a reply was
// not what it should be, all servers at an audit.

import type { LoadBalancer } from '../model.ts';
import { Slice } from '../slice.ts';
import type { Worker } from './apply.ts';
import { allowedLines, isServed, structureOf } from './listener-config.ts';
import { parseAcl, parseServersState, type ServerState } from './readings.ts';
import { Running, type RunningListener, type RunningServer } from './running.ts';
import type { Runtime } from './runtime.ts';

/**
 * Everything, for a worker that this agent did not boot. `isOurs`: its description says that it booted from the
 * structure of `loadBalancers`; otherwise only its servers are known and every structure is ''.
 */
export async function readRunning(
  runtime: Runtime,
  loadBalancers: readonly LoadBalancer[],
  isOurs: boolean,
  aclId: (listener: string, line: number) => number,
): Promise<Running> {
  const backends = await readServers(runtime);
  const running = new Running();
  if (!isOurs) {
    for (const [name, servers] of backends) running.put(name, { structure: '', allowed: [], servers });
    return running;
  }
  const reads = loadBalancers
    .flatMap(({ listeners }) => listeners)
    .filter(isServed)
    .map(async (listener) => {
      const ids = allowedLines(listener).map((_, line) => aclId(listener.name, line));
      const allowed = await readAllowed(runtime, ids);
      running.put(listener.name, {
        structure: structureOf(listener),
        allowed,
        servers: backends.get(listener.name) ?? new Map(),
      });
    });
  await Promise.all(reads);
  return running;
}

/**
 * Replaces what is known of one listener's servers and allowed clients by what the worker says, if `isWanted` still
 * holds when the answer is there.
 */
export async function readListener(
  { runtime, running }: Worker,
  name: string,
  isWanted: () => boolean = () => true,
): Promise<void> {
  const current = running.get(name);
  if (current === undefined) return;
  const ids = current.allowed.map(({ id }) => id);
  const [state, allowed] = await Promise.all([
    runtime.ask(`show servers state ${name}`),
    readAllowed(runtime, ids),
  ]);
  const servers = new Map<string, RunningServer>();
  for (const row of parseServersState(state)) servers.set(row.server, runningServer(row));
  if (isWanted()) running.put(name, { ...(running.get(name) ?? current), allowed, servers });
}

/** By listener; in slices, and behind everything urgent. */
export async function readServers(
  runtime: Runtime,
): Promise<ReadonlyMap<string, ReadonlyMap<string, RunningServer>>> {
  const text = await runtime.ask('show servers state', { lane: 'bulk' });
  const slice = new Slice();
  const backends = new Map<string, Map<string, RunningServer>>();
  for (const row of parseServersState(text)) {
    const servers = backends.get(row.backend) ?? new Map<string, RunningServer>();
    servers.set(row.server, runningServer(row));
    backends.set(row.backend, servers);
    if (slice.isOver) await slice.breathe();
  }
  return backends;
}

function readAllowed(runtime: Runtime, ids: readonly number[]): Promise<RunningListener['allowed']> {
  return Promise.all(
    ids.map(async (id) => ({ id, cidrs: new Set(parseAcl(await runtime.ask(`show acl #${id}`))) })),
  );
}

function runningServer({ id, weight, state }: ServerState): RunningServer {
  return { id, weight, state };
}
