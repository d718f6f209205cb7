// Starts a second HAProxy with the configuration that the agent has rendered, on sockets and a port of its own.

import { readFileSync, writeFileSync } from 'node:fs';
import type { Agent } from './agent.ts';
import { type Running, start } from './processes.ts';
import type { Scratch } from './scratch.ts';
import { until } from './until.ts';
import { listeningSockets } from './usage.ts';

/** The port of every listener of the copy; those of the agent have 8080. */
export const COPY_PORT = 8085;

/** `edit` changes the text of the copy. Resolves when HAProxy listens on all `vips`. */
export async function startCopy(
  scratch: Scratch,
  haproxy: string,
  agent: Agent,
  vips: readonly string[],
  edit: (text: string) => string = (text) => text,
): Promise<Running> {
  const config = scratch.path('copy.cfg');
  const text = readFileSync(agent.config, 'utf8')
    .replaceAll(`${agent.runtime}/haproxy`, scratch.directory)
    .replaceAll(/^( {4}bind \S+):8080\b/gm, `$1:${COPY_PORT}`);
  writeFileSync(config, edit(text));
  const copy = start(scratch, 'copy', haproxy, ['-W', '-f', config], { detached: true });
  await until('The copy listens', () => listeningSockets(COPY_PORT, vips) >= vips.length);
  return copy;
}
