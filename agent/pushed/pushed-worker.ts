// A worker that runs a pushed text: the connection to it, and what it is known to run.

import type { Command } from '../haproxy/socket/commands.ts';
import type { Runtime } from '../haproxy/socket/runtime.ts';
import type { BootRecord } from './boot-record.ts';
import type { LeavingServers } from './leaving-servers.ts';
import type { PushedText } from './text/pushed-text.ts';

export interface PushedWorker {
  readonly runtime: Runtime;
  readonly leaving: LeavingServers;
  record: BootRecord;
  /** What it booted from and what commands have made of it. */
  text: PushedText;
  /** Why it may run something else, so that the next text needs a reload; '' if it runs `text`. */
  doubt: string;
}

const DEFAULT_CONNECT_TIMEOUT_MS = 5_000;

/** What HAProxy did not carry out; '' if it carried out all. Errors: those of Runtime.send(). */
export async function sendAll({ runtime }: PushedWorker, commands: readonly Command[]): Promise<string> {
  const replies = await runtime.send(commands);
  for (const [at, command] of commands.entries()) {
    const reply = replies[at];
    if (reply !== undefined && !reply.ok) return `HAProxy refused ${command.kind}: ${reply.text}`;
  }
  return '';
}

/** Commands have brought the worker to the text `next`. */
export function carriedOut(worker: PushedWorker, next: PushedText): void {
  const { leaving, text } = worker;
  for (const [backend, servers] of leaving.lines)
    for (const name of servers.keys())
      if (next.sections.get(`backend ${backend}`)?.servers.has(name)) leaving.forget(backend, name);
  for (const [key, { name: backend, servers }] of text.sections) {
    const section = next.sections.get(key);
    for (const line of servers.values())
      if (section !== undefined && !section.servers.has(line.name))
        leaving.add(backend, line, connectTimeout(section.lines));
  }
  worker.text = next;
}

/** Milliseconds. */
export function connectTimeout(lines: readonly string[]): number {
  const line = lines.find((each) => /^timeout connect \d+$/.test(each));
  return line === undefined ? DEFAULT_CONNECT_TIMEOUT_MS : Number(line.split(' ')[2]);
}
