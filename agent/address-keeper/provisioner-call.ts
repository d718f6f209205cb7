// One call of the operator's program for one address. No shell, a minimal environment, a deadline. A failure is a text, never
// an exception.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import { quote } from '../base/quote.ts';
import { isMapping } from '../base/validate.ts';
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
  /** The program's answer to `assign` names the public address. */
  readonly isAnswered?: boolean;
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
  /** Gives why the answer of a program that has ended well cannot be used; undefined if it can. */
  readonly onAnswer?: (answer: string | undefined) => string | undefined;
}

const MAX_OUTPUT_BYTES = 4096;
/** After the end of the program, for the rest of its output. */
const LAST_OUTPUT_MS = 200;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Why the call failed, to follow the name of the program; undefined if it succeeded. */
export function callProvisioner(
  { program, log, clock, deadlineMs, children, isClosed, onAnswer }: ProvisionerCallOptions,
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
    const [errors, output] = [tailOf(child.stderr), tailOf(child.stdout)];
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
      clock.after(LAST_OUTPUT_MS, () => {
        child.stderr?.destroy();
        child.stdout?.destroy();
      });
    });
    child.on('close', (code, signal) => {
      if (child.pid === undefined) return;
      const why = code === null ? `was ended by ${signal}` : `failed with status ${code}`;
      if (isLate) end(`did not end within ${deadlineMs} ms`);
      else if (code !== 0) end(`${why}${lastLine(errors())}`);
      else if (request.isAnswered !== true || action !== 'assign' || isClosed()) end(undefined);
      else end(onAnswer?.(answerIn(output())));
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
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    return error as Error;
  }
}

function notStarted(error: NodeJS.ErrnoException): string {
  return `cannot be started: ${error.code ?? error.message}`;
}

/** The public address in its last line; undefined if there is none. */
function answerIn(output: string): string | undefined {
  try {
    const answer: unknown = JSON.parse(output.slice(output.lastIndexOf('\n') + 1));
    return isMapping(answer) && typeof answer.public === 'string' ? answer.public : undefined;
  } catch {
    return undefined;
  }
}

/** The end of what it has written. */
function tailOf(stream: Readable | null): () => string {
  let tail = Buffer.alloc(0);
  stream?.on('error', () => undefined);
  stream?.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([tail, chunk]);
    tail = all.subarray(Math.max(0, all.length - MAX_OUTPUT_BYTES));
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
