// Tells a program of the operator's which addresses are given and released: one call per change, one at a time for
// each address, again with back-off until it succeeds. No shell, a minimal environment, a deadline.
// Starts processes and owns their timers; what goes wrong is a Problem, never an exception.

import { type ChildProcess, spawn } from 'node:child_process';
import { backoffMs } from '../base/backoff.ts';
import { quote } from '../base/quote.ts';
import type { Log } from '../host/log.ts';
import type { Problem, Protocol } from '../model/load-balancer.ts';

export interface ProvisionRequest {
  readonly action: 'assign' | 'release';
  readonly address: string;
  readonly pool: string;
  /** `namespace/name`. */
  readonly service: string;
  /** Empty: the whole address. */
  readonly ports: readonly { readonly protocol: Protocol; readonly port: number }[];
}

export interface ProvisionerOptions {
  readonly program: string;
  readonly log: Log;
  /** The other Services that have the address, at the time of the call: a release may have waited for long. */
  readonly others?: (request: ProvisionRequest) => readonly string[];
  /** Milliseconds that one call may take. */
  readonly deadline?: number;
  /** Milliseconds from a failure to the next call: doubled each time, from the first to the second. */
  readonly backOff?: readonly [least: number, most: number];
  /** Calls at the same time, each for another address. */
  readonly concurrency?: number;
  /** A call has ended; `failure` says why it failed. */
  readonly onCall?: (request: ProvisionRequest, failure: string | undefined) => void;
  /** The Problem of an address and Service came, changed or went. */
  readonly onProblem?: (request: ProvisionRequest, problem: Problem | undefined) => void;
}

/** What one address wants, Service by Service, in order. */
interface Lane {
  /** Service → the last request that has not succeeded yet; those that have not been tried come first, in order. */
  wanted: Map<string, ProvisionRequest>;
  /** Those of them that have failed. */
  readonly failed: Set<ProvisionRequest>;
  /** Calls that failed in a row. */
  failures: number;
  isRunning: boolean;
  timer: NodeJS.Timeout | undefined;
}

const DEADLINE_MS = 30_000;
const BACK_OFF_MS = [1_000, 300_000] as const;
const CONCURRENCY = 4;
/** Of each output. */
const MAX_OUTPUT_BYTES = 4096;
/** After its end what it has written still comes in. */
const LAST_OUTPUT_MS = 200;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export class Provisioner {
  readonly #options: ProvisionerOptions;
  readonly #lanes = new Map<string, Lane>();
  /** Addresses whose turn it is. */
  readonly #due = new Set<string>();
  readonly #children = new Set<ChildProcess>();
  readonly #problems = new Map<string, Problem>();
  #running = 0;
  #isClosed = false;

  constructor(options: ProvisionerOptions) {
    this.#options = options;
  }

  /** A later request for the same address and Service takes the place of one that has not been carried out. */
  request(request: ProvisionRequest): void {
    if (this.#isClosed) return;
    const { address, service } = request;
    const lane = this.#lanes.get(address) ?? {
      wanted: new Map(),
      failed: new Set(),
      failures: 0,
      isRunning: false,
      timer: undefined,
    };
    this.#lanes.set(address, lane);
    const replaced = lane.wanted.get(service);
    if (replaced !== undefined) lane.failed.delete(replaced);
    lane.wanted.delete(service);
    const before = [...lane.wanted];
    const isUntried = ([, each]: readonly [string, ProvisionRequest]): boolean => !lane.failed.has(each);
    lane.wanted = new Map([
      ...before.filter(isUntried),
      [service, request],
      ...before.filter((each) => !isUntried(each)),
    ]);
    // Something new deserves a call now, whatever happened to the last one.
    clearTimeout(lane.timer);
    lane.timer = undefined;
    this.#due.add(address);
    this.#next();
  }

  /** Of addresses whose last call failed, in no order. */
  problems(): readonly Problem[] {
    return [...this.#problems.values()];
  }

  /** Requests that have not succeeded. */
  get pending(): number {
    let count = 0;
    for (const { wanted } of this.#lanes.values()) count += wanted.size;
    return count;
  }

  /** Ends what is under way; nothing is called after it. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#lanes.values()) clearTimeout(timer);
    this.#lanes.clear();
    this.#due.clear();
    for (const child of this.#children) killGroup(child);
  }

  #next(): void {
    const { concurrency = CONCURRENCY } = this.#options;
    for (const address of this.#due) {
      if (this.#running >= concurrency) return;
      const lane = this.#lanes.get(address);
      const [request] = lane?.wanted.values() ?? [];
      if (lane?.isRunning) continue;
      this.#due.delete(address);
      if (lane === undefined || request === undefined) continue;
      lane.isRunning = true;
      this.#running++;
      void this.#call(request).then((failure) => {
        this.#running--;
        lane.isRunning = false;
        if (!this.#isClosed) {
          this.#options.onCall?.(request, failure);
          this.#settle(lane, request, failure);
        }
        this.#next();
      });
    }
  }

  #settle(lane: Lane, request: ProvisionRequest, failure: string | undefined): void {
    const { address, service, action } = request;
    const isLast = lane.wanted.get(service) === request;
    lane.failed.delete(request);
    if (failure === undefined) {
      lane.failures = 0;
      if (isLast) lane.wanted.delete(service);
      this.#setProblem(request, undefined);
    } else {
      lane.failures++;
      const message = `Cannot ${action} ${address}: program ${quote(this.#options.program)} ${failure}`;
      this.#setProblem(request, { object: `Service ${service}`, reason: 'ProvisionerFailed', message });
      // Another Service's turn: one that always fails must not hold up the others of the address.
      if (isLast) {
        lane.failed.add(request);
        lane.wanted.delete(service);
        lane.wanted.set(service, request);
      }
    }
    if (lane.wanted.size === 0) this.#lanes.delete(address);
    else if (failure === undefined || !isLast) this.#due.add(address);
    else if (!this.#due.has(address)) this.#retryLater(address, lane);
  }

  #retryLater(address: string, lane: Lane): void {
    const [firstMs, mostMs] = this.#options.backOff ?? BACK_OFF_MS;
    // Services of one address take turns: they share the schedule.
    const wait = backoffMs(lane.failures, { firstMs, mostMs });
    lane.timer = setTimeout(() => {
      lane.timer = undefined;
      this.#due.add(address);
      this.#next();
    }, wait);
  }

  #setProblem(request: ProvisionRequest, problem: Problem | undefined): void {
    const key = `${request.address} ${request.service}`;
    const before = this.#problems.get(key);
    if (problem === undefined) this.#problems.delete(key);
    else this.#problems.set(key, problem);
    if (before?.message !== problem?.message) this.#options.onProblem?.(request, problem);
  }

  /** Why it failed, to go after the name of the program; undefined where it did not. */
  #call(request: ProvisionRequest): Promise<string | undefined> {
    const { program, log, deadline = DEADLINE_MS } = this.#options;
    const { action, address, pool, service, ports } = request;
    const others = this.#options.others?.(request) ?? [];
    return new Promise((resolve) => {
      const child = started(program);
      if (child instanceof Error) {
        const failure = notStarted(child);
        log.warn(`The provisioner ${failure}`, { program, action, address, service });
        resolve(failure);
        return;
      }
      this.#children.add(child);
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        killGroup(child);
      }, deadline);
      const errors = tailOf(child);
      const end = (failure: string | undefined) => {
        clearTimeout(timer);
        this.#children.delete(child);
        const stderr = errors();
        const fields = { program, action, address, service, ...(stderr === '' ? {} : { stderr }) };
        if (failure === undefined) log.info('The provisioner is done', fields);
        else if (!this.#isClosed) log.warn(`The provisioner ${failure}`, fields);
        resolve(failure);
      };
      child.on('error', (error) => {
        if (child.pid === undefined) end(notStarted(error));
      });
      child.on('exit', () => {
        // Whoever inherited the pipe must not keep us waiting.
        setTimeout(() => child.stderr?.destroy(), LAST_OUTPUT_MS).unref();
      });
      child.on('close', (code, signal) => {
        if (child.pid === undefined) return;
        if (isLate) end(`did not end within ${deadline} ms`);
        else if (code === 0) end(undefined);
        else
          end(
            `${code === null ? `was ended by ${signal}` : `failed with status ${code}`}${lastLine(errors())}`,
          );
      });
      // A program that does not read its input has closed it; its exit status says whether that was right.
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(`${JSON.stringify({ action, address, pool, service, ports, others })}\n`);
    });
  }
}

/** Where the agent may open no more files it has no pipes, and tells by its event `error` why; else it may throw. */
function started(program: string): ChildProcess | Error {
  try {
    // A group of its own, so that the deadline ends what the program has started, too.
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

/** The last bytes of what it writes to its standard error, as text. */
function tailOf(child: ChildProcess): () => string {
  let tail = Buffer.alloc(0);
  child.stderr?.on('error', () => undefined);
  child.stderr?.on('data', (chunk: Buffer) => {
    const all = Buffer.concat([tail, chunk]);
    tail = all.subarray(Math.max(0, all.length - MAX_OUTPUT_BYTES));
  });
  return () => tail.toString('utf8').trim();
}

function lastLine(text: string): string {
  const line = text.slice(text.lastIndexOf('\n') + 1).trim();
  return line === '' ? '' : `: ${quote(line)}`;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}
