// A HAProxy of the benchmark's own: as a member, as a reference, as a responder. Not the agent's.

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
 * `body` is everything after the global section, which has the sockets. Returns once it answers.
 * `within`: a command that becomes what follows it.
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
  // In a session of its own, as the agent's: the kernel shares the processors out by sessions (sched_autogroup).
  const [program = executable, ...rest] = [...within, executable, ...args];
  const running = start(scratch, name, program, rest, { detached: true });
  await until(`HAProxy ${name} answers\n${running.said()}`, async () => {
    if (running.child.exitCode !== null) throw new Error(`HAProxy ${name} has ended:\n${running.said()}`);
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

/** Answers every HTTP request on `bind` with its own address; a `name` of more than that tells members apart. */
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
