// Starts a real HAProxy (master and worker) in its own directory, for tests. `HAPROXY` names the executable;
// test/support/haproxy/debian-matrix.sh unpacks other versions.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { askOnce } from '../../../agent/haproxy/socket/ask-once.ts';
import { showProc } from '../../../agent/haproxy/socket/master.ts';
import { parseInfo } from '../../../agent/haproxy/socket/readings.ts';
import type { Version } from '../../../agent/haproxy/socket/version.ts';
import { Deadline } from '../basics/deadline.ts';

export const haproxyExecutable = process.env.HAPROXY ?? 'haproxy';

/** A reload executes argv[0] again, which is a test's script unless HAProxy itself has a wrapper. */
export const isBehindScript =
  haproxyExecutable.includes('/') && readFileSync(haproxyExecutable).subarray(0, 2).toString() === '#!';

export interface RunningHaproxy {
  readonly directory: string;
  readonly configPath: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
  readonly masterPid: number;
  /** The pid of the first worker. */
  readonly workerPid: number;
  readonly version: Version;
  /** The file that the next reload reads. */
  readonly write: (body: string) => Promise<void>;
  /** HAProxy's standard error so far. */
  readonly log: () => Promise<string>;
  /** Ends HAProxy and removes its directory; may be called twice. */
  readonly stop: () => Promise<void>;
}

/**
 * `body` follows the global and defaults sections; a function gets the directory, for `bind unix@DIRECTORY/...`, which
 * needs no port. Resolves when the worker answers on both sockets.
 */
export async function startHaproxy(
  body: string | ((directory: string) => string),
  { description = 'test', globals = '' }: { readonly description?: string; readonly globals?: string } = {},
): Promise<RunningHaproxy> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-haproxy-'));
  const [configPath, adminSocket, masterSocket, logPath] = [
    'haproxy.cfg',
    'admin.sock',
    'master.sock',
    'log',
  ].map((name) => join(directory, name)) as [string, string, string, string];
  const write = (text: string): Promise<void> =>
    writeFile(
      configPath,
      `global
  maxconn 500
  description ${description}
  stats socket ${adminSocket} mode 600 level admin
  stats timeout 1h
  hard-stop-after 20s
${globals}
defaults
  mode tcp
  timeout connect 2s
  timeout client 30s
  timeout server 30s
${text}
`,
    );
  await write(typeof body === 'string' ? body : body(directory));
  const args = ['-W', '-S', `${masterSocket},mode,600`, '-f', configPath];
  // Ends with this process, even if the test runner kills it.
  const script = 'exec setpriv --pdeathsig TERM "$0" "$@" 2>"$LOG"';
  const child = spawn('sh', ['-c', script, haproxyExecutable, ...args], {
    stdio: 'ignore',
    env: { ...process.env, LOG: logPath },
  });
  const log = (): Promise<string> => readFile(logPath, 'utf8').catch(() => '');
  const stop = async (): Promise<void> => {
    await ended(child);
    // A new worker of a reload may still create its socket.
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await once(child, 'spawn');
    const { pid, version } = parseInfo(await answered(child, () => askOnce(adminSocket, 'show info')));
    await answered(child, () => showProc(masterSocket));
    const { pid: masterPid = 0 } = child;
    return {
      directory,
      configPath,
      adminSocket,
      masterSocket,
      masterPid,
      workerPid: pid,
      version,
      write,
      log,
      stop,
    };
  } catch (cause) {
    const said = await log();
    await stop();
    throw new Error(`Cannot start ${haproxyExecutable}:\n${said}`, { cause });
  }
}

/** Resolves with a connection when it is accepted. */
export async function connection(target: string | number): Promise<ReturnType<typeof connect>> {
  const socket = typeof target === 'string' ? connect(target) : connect(target, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function answered<T>(child: ChildProcess, ask: () => Promise<T>): Promise<T> {
  for (const deadline = new Deadline(30_000, 30); ; await deadline.pause()) {
    try {
      return await ask();
    } catch (error) {
      if (deadline.isOver || child.exitCode !== null || child.signalCode !== null) throw error;
    }
  }
}

async function ended(child: ChildProcess): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await Promise.race([once(child, 'exit'), delay(5_000, undefined, { ref: false })]);
  }
}
