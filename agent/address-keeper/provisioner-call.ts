// One call of the operator's program for one address. No shell, a minimal environment, a deadline. A failure is a text, never
// an exception.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../base/clock.ts';
import { quote } from '../base/quote.ts';
import type { Log } from '../host/log.ts';
import type { OwnerKey, Protocol } from '../model/load-balancer.ts';

export interface ProvisionRequest {
  readonly action: 'assign' | 'release';
  readonly address: string;
  /** The address that clients use, if it is another one. */
  readonly public?: string | undefined;
  readonly pool: string;
  /** `namespace/name` of a Service; the key of another owner. */
  readonly service: OwnerKey;
  /** Empty: the whole address. */
  readonly ports: readonly { readonly protocol: Protocol; readonly port: number }[];
}

export interface ProvisionerCallOptions {
  readonly program: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** The programs that run now. */
  readonly children: Set<ChildProcess>;
  /** The failure of a call that was ended on purpose is not logged. */
  readonly isClosed: () => boolean;
}

const MAX_STDERR_BYTES = 4096;
/** After the end of the program, for the rest of its output. */
const LAST_OUTPUT_MS = 200;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Why the call failed, to follow the name of the program; undefined if it succeeded. */
export function callProvisioner(
  { program, log, clock, deadlineMs, children, isClosed }: ProvisionerCallOptions,
  request: ProvisionRequest & { readonly others: readonly string[] },
): Promise<string | undefined> {
  const { action, address, public: outside, pool, service, ports, others } = request;
  return new Promise((resolve) => {
    const child = started(program);
    if (child instanceof Error) {
      const failure = notStarted(child);
      log.warn(`The provisioner ${failure}`, { program, action, address, service });
      resolve(failure);
      return;
    }
    children.add(child);
    let isLate = false;
    const cancelDeadline = clock.after(deadlineMs, () => {
      isLate = true;
      killGroup(child);
    });
    const errors = tailOf(child);
    const end = (failure: string | undefined) => {
      cancelDeadline();
      children.delete(child);
      const stderr = errors();
      const fields = { program, action, address, service, ...(stderr === '' ? {} : { stderr }) };
      if (failure === undefined) log.info('The provisioner succeeded', fields);
      else if (!isClosed()) log.warn(`The provisioner ${failure}`, fields);
      resolve(failure);
    };
    child.on('error', (error) => {
      if (child.pid === undefined) end(notStarted(error));
    });
    child.on('exit', () => {
      // A process that inherited the pipe must not delay the end.
      clock.after(LAST_OUTPUT_MS, () => child.stderr?.destroy());
    });
    child.on('close', (code, signal) => {
      if (child.pid === undefined) return;
      const why = code === null ? `was ended by ${signal}` : `failed with status ${code}`;
      if (isLate) end(`did not end within ${deadlineMs} ms`);
      else end(code === 0 ? undefined : `${why}${lastLine(errors())}`);
    });
    // A program may close its input without reading it; only its exit status counts.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(
      `${JSON.stringify({ action, address, public: outside, pool, service, ports, others })}\n`,
    );
  });
}

/** A failure is thrown, or comes as the event `error` if the agent has too many open files. */
function started(program: string): ChildProcess | Error {
  try {
    // Its own process group, so that the deadline also ends the processes that it has started.
    return spawn(program, [], {
      env: { PATH, LANG: 'C.UTF-8' },
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
  } catch (error) {
    return error as Error;
  }
}

function notStarted(error: NodeJS.ErrnoException): string {
  return `cannot be started: ${error.code ?? error.message}`;
}

/** The end of its standard error. */
function tailOf(child: ChildProcess): () => string {
  let tail = Buffer.alloc(0);
  child.stderr?.on('error', () => undefined);
  child.stderr?.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([tail, chunk]);
    tail = all.subarray(Math.max(0, all.length - MAX_STDERR_BYTES));
  });
  return () => tail.toString('utf8').trim();
}

function lastLine(text: string): string {
  const line = text.slice(text.lastIndexOf('\n') + 1).trim();
  return line === '' ? '' : `: ${quote(line)}`;
}

export function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}
