// Compares what a worker says it runs with what we believe, and takes its word: the plans that follow repair what
// differs. Reads behind everything urgent; a listener that changed meanwhile is left for the next time.

import { Slice } from '../../base/slice.ts';
import { isBelieved, readAllowed, readListener, readServers, serversOf } from '../readback.ts';
import type { RunningListener } from '../running.ts';
import type { Worker } from '../worker.ts';
import { clientsInWords, serversInWords } from './drift-words.ts';

/** ACLs are read a few at a time, so that an audit costs the same however many there are. */
const LISTENERS_READ_WHOLE = 50;

export interface AuditResult {
  /** Listeners whose state was not what we believed, with what differed, for the log. */
  readonly drifted: ReadonlyMap<string, string>;
  /** Where the next audit goes on reading whole listeners. */
  readonly next: number;
}

/** `from` is the `next` of the audit before. Errors: those of the connection. */
export async function audit(worker: Worker, from: number): Promise<AuditResult> {
  const { runtime, running } = worker;
  const names = [...running.names()];
  const before = new Map(names.map((name) => [name, running.changesOf(name)]));
  const differs = (name: string, answer: string): boolean =>
    running.changesOf(name) === before.get(name) &&
    !isBelieved(answer, running.get(name)?.servers ?? new Map());
  /** With what HAProxy has answered. */
  const suspects = new Map<string, string>();
  const compare = (name: string, answer: string): void => {
    if (differs(name, answer)) suspects.set(name, answer);
  };
  await readServers(runtime, names, compare);
  if (suspects.size > 0) await settled(worker);
  const drifted = new Map<string, string>();
  for (const [name, answer] of suspects) {
    if (!differs(name, answer)) continue;
    const servers = serversOf(answer);
    drifted.set(name, serversInWords(servers, running.get(name)?.servers ?? new Map()));
    running.putServers(name, servers);
  }
  const some = names.slice(from, from + LISTENERS_READ_WHOLE);
  for (const name of await withOtherClients(worker, some)) {
    const believed = running.get(name)?.allowed ?? [];
    const changes = running.changesOf(name);
    await readListener(worker, name, () => running.changesOf(name) === changes);
    const words = clientsInWords(running.get(name)?.allowed ?? [], believed);
    if (running.changesOf(name) === changes + 1 && words !== '') drifted.set(name, words);
  }
  return { drifted, next: from + some.length >= names.length ? 0 : from + some.length };
}

/** Listeners that let in others than we believe, or did while this was read. */
async function withOtherClients({ runtime, running }: Worker, names: readonly string[]): Promise<string[]> {
  const believed = names.map((name) => running.get(name)?.allowed ?? []);
  const ids = believed.flat().map(({ id }) => id);
  const read = new Map((await readAllowed(runtime, ids, 'bulk')).map(({ id, cidrs }) => [id, cidrs]));
  const isOther = ({ id, cidrs }: RunningListener['allowed'][number]): boolean => {
    const now = read.get(id);
    return now?.size !== cidrs.size || ![...now].every((cidr) => cidrs.has(cidr));
  };
  return names.filter((_, at) => believed[at]?.some(isOther));
}

/**
 * The answers come over another connection than the replies to commands, and may show what these have yet to say:
 * resolves when the replies to all that was under way have been taken in.
 */
async function settled({ runtime }: Worker): Promise<void> {
  await runtime.ask('show version');
  await new Slice().breathe();
}
