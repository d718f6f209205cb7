// Starts a HAProxy without an agent, as a member or as a reference.

import { writeFileSync } from 'node:fs';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { type Running, start } from './processes.ts';
import type { Scratch } from './scratch.ts';
import { until } from './until.ts';

export interface OwnHaproxy extends Running {
  readonly config: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
}

/**
 * `body` follows the global and defaults sections. Resolves when HAProxy answers on its admin socket.
 * `within` is a command that executes the words after it.
 */
export async function startHaproxy(
  scratch: Scratch,
  name: string,
  executable: string,
  body: string,
  { globals = '', master = false, within = [] as readonly string[] } = {},
): Promise<OwnHaproxy> {
  const [config, adminSocket, masterSocket] = ['cfg', 'sock', 'master'].map((end) =>
    scratch.path(`${name}.${end}`),
  ) as [string, string, string];
  writeFileSync(config, `${globalSection(adminSocket, globals)}${body}`);
  const args = master ? ['-W', '-S', masterSocket, '-f', config] : ['-db', '-f', config];
  // Its own session, as the agent's HAProxy has: the kernel shares processors between sessions (sched_autogroup).
  const [program = executable, ...rest] = [...within, executable, ...args];
  const running = start(scratch, name, program, rest, { detached: true });
  await until(`HAProxy ${name} answers\n${running.output()}`, async () => {
    if (running.child.exitCode !== null) throw new Error(`HAProxy ${name} has ended:\n${running.output()}`);
    return (await askOnce(adminSocket, 'show info').catch(() => '')) !== '';
  });
  return { ...running, config, adminSocket, masterSocket };
}

export function globalSection(adminSocket: string, globals = ''): string {
  return `global
    stats socket ${adminSocket} mode 600 level admin
    stats timeout 1h
${globals}
defaults
    mode tcp
    timeout connect 1s
    timeout client 50s
    timeout server 50s
`;
}

/** A HAProxy that answers every HTTP request on `bind` with the address that received it. */
export function responder(bind: string, threads = 1): { readonly body: string; readonly globals: string } {
  return {
    globals: `    nbthread ${threads}\n    maxconn 4000\n`,
    body: `
frontend responder
    mode http
    timeout client 10s
    timeout http-keep-alive 10s
    bind ${bind} backlog 4096
    http-request return status 200 content-type text/plain lf-string "%[dst]"
`,
  };
}
