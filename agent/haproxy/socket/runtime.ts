// The connection to one HAProxy worker: commands in, judged replies out. HAProxy pins a connection to the worker that
// accepted it, so its end is the end of that worker, or of this agent's use of it; it keeps an old worker alive until
// it is closed.

import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
import { Slice } from '../../base/slice.ts';
import { GRACE_MS } from '../config/grace.ts';
import { commandText } from './command-text.ts';
import type { Command } from './commands.ts';
import { showProc } from './master.ts';
import { type Lane, Pipeline } from './pipeline.ts';
import { parseInfo } from './readings.ts';
import { judgeReply, type Reply } from './reply.ts';
import { textSocket } from './text-socket.ts';
import { type Capabilities, capabilitiesOf, type Version } from './version.ts';

export interface RuntimeOptions {
  /** The `stats socket` of level admin. */
  readonly socketPath: string;
  /** The way round when the admin socket's file is gone: HAProxy does not bring that one back, not even by a reload. */
  readonly masterSocketPath?: string | undefined;
  /**
   * HAProxy is being started, so the first connection is not tried that way: the master of 3.1 and newer lets those wait
   * who want to speak to a worker that is not there yet.
   */
  readonly isStarting?: boolean;
  /** Milliseconds without a sign of life, while a reply is due, after which HAProxy counts as hung. */
  readonly timeoutMs?: number;
}

/** The worker at the other end, as it was when the connection began. */
export interface WorkerProcess {
  readonly pid: number;
  readonly version: Version;
  readonly capabilities: Capabilities;
  /** `description` of the global section, '' where it has none. */
  readonly description: string;
  /** An old worker that only waits for its connections to end. */
  readonly stopping: boolean;
  readonly via: 'admin' | 'master';
}

/** Milliseconds until another try where the worker before has answered. */
const AGAIN = 5;
/** Commands whose text is written without a look at the clock: a fraction of a millisecond. */
const AT_ONCE = 256;

interface Link {
  readonly pipeline: Pipeline;
  readonly worker: WorkerProcess;
}

export class Runtime {
  readonly worker: WorkerProcess;
  /** Settles once, never rejects: undefined after close(), otherwise why the connection ended. */
  readonly closed: Promise<HeadgateError | undefined>;

  readonly #options: RuntimeOptions;
  readonly #main: Pipeline;
  /** By lane: resolves when the last of the batches whose text is not written yet has taken its place. */
  readonly #entering = new Map<Lane, Promise<void>>();
  /** A second connection to the same worker, made when first needed, so that a long answer holds up nothing. */
  #side: Promise<Pipeline> | undefined;

  /**
   * Errors: RUNTIME_CONNECT where nothing listens, RUNTIME_TIMEOUT, RUNTIME_CLOSED, RUNTIME_REPLY where it is not
   * HAProxy that answers, HAPROXY_VERSION where it is too old.
   */
  static async connect(options: RuntimeOptions): Promise<Runtime> {
    const { isStarting = false, masterSocketPath } = options;
    const first = { ...options, masterSocketPath: isStarting ? undefined : masterSocketPath };
    const { pipeline, worker } = await open(first);
    if (!worker.capabilities.supported) {
      pipeline.close();
      throw new HeadgateError('HAPROXY_VERSION', worker.capabilities.reason, { retry: 'never' });
    }
    return new Runtime(options, pipeline, worker);
  }

  private constructor(options: RuntimeOptions, pipeline: Pipeline, worker: WorkerProcess) {
    this.#options = options;
    this.#main = pipeline;
    this.worker = worker;
    this.closed = pipeline.closed.then((error) => {
      this.#side?.then(
        (side) => side.close(),
        () => undefined,
      );
      return error;
    });
  }

  /**
   * One judged reply per command, in order. Commands of the urgent lane overtake those of the bulk lane that have not
   * been sent yet; within a lane batches keep the order in which they were given.
   * Rejects with RUNTIME_CLOSED or RUNTIME_TIMEOUT when the connection is lost: what was done by then is unknown; and
   * with what commandText() throws, before anything of the batch is sent.
   */
  async send(
    commands: readonly Command[],
    { lane = 'urgent' }: { readonly lane?: Lane } = {},
  ): Promise<readonly Reply[]> {
    const before = this.#entering.get(lane);
    const isAtOnce = commands.length <= AT_ONCE && before === undefined;
    const texts = isAtOnce
      ? await this.#main.send(this.#linesOf(commands), lane)
      : await this.#sendAfter(before, commands, lane);
    return commands.map((command, at) => judgeReply(command, texts[at] ?? ''));
  }

  /**
   * HAProxy's answer to a question, such as `show servers state BACKEND`, without line feeds at its end. Questions of
   * the bulk lane go over a second connection to the same worker.
   */
  async ask(line: string, { lane = 'urgent' }: { readonly lane?: Lane } = {}): Promise<string> {
    const [text = ''] = await this.askAll([line], { lane });
    return text;
  }

  /** The same of several questions, written at once: a write for each would cost more than the question. */
  async askAll(
    lines: readonly string[],
    { lane = 'urgent' }: { readonly lane?: Lane } = {},
  ): Promise<readonly string[]> {
    for (const line of lines) {
      if (/^[\x20-\x7e]{1,1000}$/.test(line) && !/[;\\]|<</.test(line)) continue;
      throw new HeadgateError('RUNTIME_TOKEN', `Not one question: ${JSON.stringify(line)}`, {
        retry: 'never',
      });
    }
    const pipeline = lane === 'urgent' || this.#main.isClosed ? this.#main : await this.#sidePipeline();
    const texts = await pipeline.send(lines, lane);
    return texts.map(withoutLineFeeds);
  }

  close(): void {
    this.#main.close();
  }

  async #sendAfter(
    before: Promise<void> | undefined,
    commands: readonly Command[],
    lane: Lane,
  ): Promise<readonly string[]> {
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    this.#entering.set(lane, entered);
    try {
      const slice = new Slice();
      const lines: string[] = [];
      for (let at = 0; at < commands.length; at += AT_ONCE) {
        if (slice.isOver) await slice.breathe();
        lines.push(...this.#linesOf(commands.slice(at, at + AT_ONCE)));
      }
      await before;
      return this.#main.send(lines, lane);
    } finally {
      if (this.#entering.get(lane) === entered) this.#entering.delete(lane);
      enter();
    }
  }

  #linesOf(commands: readonly Command[]): readonly string[] {
    return commands.map((command) => commandText(command, this.worker.capabilities));
  }

  #sidePipeline(): Promise<Pipeline> {
    this.#side ??= this.#openSide();
    return this.#side;
  }

  async #openSide(): Promise<Pipeline> {
    const forget = (): void => {
      this.#side = undefined;
    };
    try {
      const pipeline = await this.#reachAgain();
      void pipeline.closed.then(forget);
      return pipeline;
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** For a moment the worker that this one has replaced takes connections as well. */
  async #reachAgain(): Promise<Pipeline> {
    const own = this.worker.pid;
    for (const until = performance.now() + 2 * GRACE_MS; ; await delay(AGAIN)) {
      const { pipeline, worker } = await open(this.#options, this.worker);
      if (worker.pid === own) return pipeline;
      pipeline.close();
      if (worker.stopping && performance.now() < until) continue;
      const message = `Worker ${own} does not take connections any more: ${worker.pid} does`;
      throw new HeadgateError('RUNTIME_CLOSED', message, { retry: 'now' });
    }
  }
}

/** Looks at the end only: a pattern would be tried at every line of a text of megabytes. */
function withoutLineFeeds(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/** `known`: the worker to reach where it goes through the master. */
async function open(options: RuntimeOptions, known?: WorkerProcess): Promise<Link> {
  if (known?.via === 'master') return openByMaster(options, known.pid);
  try {
    return await openDirectly(options);
  } catch (error) {
    const isGone = error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT';
    if (!isGone || options.masterSocketPath === undefined) throw error;
    return openByMaster(options, known?.pid);
  }
}

async function openDirectly({ socketPath, timeoutMs = 2_000 }: RuntimeOptions): Promise<Link> {
  const pipeline = new Pipeline(await connected(socketPath), '> ', timeoutMs);
  return introduced(pipeline, 'admin', async () => {
    const [, info = ''] = await pipeline.send(['prompt', 'show info'], 'urgent');
    return info;
  });
}

async function openByMaster(
  { masterSocketPath = '', timeoutMs = 2_000 }: RuntimeOptions,
  wanted?: number,
): Promise<Link> {
  const pid = wanted ?? (await servingWorker(masterSocketPath, timeoutMs));
  const pipeline = new Pipeline(await connected(masterSocketPath), `${pid}> `, timeoutMs);
  return introduced(pipeline, 'master', async () => {
    // Three lines, one reply that ends in the worker's prompt. The master's own prompt, and the worker's first, come
    // without a line feed before them.
    const [text = ''] = await pipeline.send([`prompt\n@!${pid}\nshow info`], 'urgent');
    return text.replace(/^master[^>\n]*> \d+> /, '');
  });
}

async function servingWorker(masterSocketPath: string, timeoutMs: number): Promise<number> {
  const { workers, oldWorkers } = await showProc(masterSocketPath, { timeoutMs });
  const youngest = [...workers, ...[...oldWorkers].sort((a, b) => a.reloads - b.reloads)][0];
  if (youngest !== undefined) return youngest.pid;
  throw new HeadgateError('RUNTIME_CONNECT', `The master behind "${masterSocketPath}" has no worker`);
}

async function introduced(
  pipeline: Pipeline,
  via: WorkerProcess['via'],
  ask: () => Promise<string>,
): Promise<Link> {
  try {
    const { pid, version, description, stopping } = parseInfo(await ask());
    const capabilities = capabilitiesOf(version);
    return { pipeline, worker: { pid, version, capabilities, description, stopping, via } };
  } catch (error) {
    pipeline.close();
    throw error;
  }
}

function connected(socketPath: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = textSocket(socketPath);
    const refuse = (cause: Error): void => {
      reject(new HeadgateError('RUNTIME_CONNECT', `Cannot connect to "${socketPath}"`, { cause }));
    };
    socket.once('error', refuse);
    socket.once('connect', () => {
      socket.off('error', refuse);
      resolve(socket);
    });
  });
}
