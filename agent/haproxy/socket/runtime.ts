// The connection to one HAProxy worker: sends commands and judges the replies. HAProxy ties a connection to the worker
// that accepted it: it ends with this worker, and it keeps an old worker alive until it is closed.

import { readFile } from 'node:fs/promises';
import { sleep } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { type Serial, serial } from '../../base/serial.ts';
import { Slice } from '../../base/slice.ts';
import { GRACE_MS } from '../config/render-context.ts';
import { BackendNames } from './backend-names.ts';
import { commandText } from './command-text.ts';
import { type Command, isOfRow } from './commands.ts';
import { showProc } from './master.ts';
import { type Lane, Pipeline } from './pipeline.ts';
import { parseInfo } from './readings.ts';
import { judgeReply, type Reply } from './reply.ts';
import { type Capabilities, capabilitiesOf, type Version } from './version.ts';

export interface RuntimeOptions {
  /** The `stats socket` of level admin. */
  readonly socketPath: string;
  /** Leads to the worker if the admin socket's file is gone: HAProxy does not make this file again, even at a reload. */
  readonly masterSocketPath?: string | undefined;
  /** The first connection does not use the master: the master of 3.1 and newer lets it wait for a worker that starts. */
  readonly isStarting?: boolean;
  /** Another HAProxy has replaced the admin socket: only the master leads to the worker. */
  readonly isReplaced?: boolean;
  /** HAProxy counts as hung if a reply is due and HAProxy sends nothing for this long. */
  readonly timeoutMs?: number;
}

/** The worker at the other end, as it was when the connection began. */
export interface WorkerProcess {
  readonly pid: number;
  readonly version: Version;
  readonly capabilities: Capabilities;
  /** `description` of the global section; '' for none. */
  readonly description: string;
  /** An old worker that only waits for its connections to end. */
  readonly stopping: boolean;
  readonly via: 'admin' | 'master';
}

const TIMEOUT_MS = 2_000;
const RETRY_DELAY_MS = 5;

interface Link {
  readonly pipeline: Pipeline;
  readonly worker: WorkerProcess;
}

export class Runtime {
  readonly worker: WorkerProcess;
  /** Names of the backends in commands and questions; answers have the worker's. */
  readonly names = new BackendNames();
  /** Resolves once, never rejects: undefined after close(), otherwise why the connection ended. */
  readonly closed: Promise<HeadgateError | undefined>;

  readonly #options: RuntimeOptions;
  readonly #main: Pipeline;
  /** Batches enter a lane of the connection in the order in which they were given. */
  readonly #entrances: { readonly [lane in Lane]: Serial } = { urgent: serial(), bulk: serial() };
  /** A second connection to the same worker, made when first needed, so that a long answer delays no command. */
  #side: Promise<Pipeline> | undefined;

  /**
   * Errors: RUNTIME_CONNECT, RUNTIME_TIMEOUT, RUNTIME_CLOSED; RUNTIME_REPLY if another program answers; HAPROXY_VERSION
   * if HAProxy is too old.
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
   * One judged reply per command, in order. Urgent commands overtake bulk commands that have not been sent yet; within a
   * lane the order is kept.
   * Rejects with RUNTIME_CLOSED or RUNTIME_TIMEOUT if the connection is lost: HAProxy may have carried out some commands;
   * and with the errors of commandText(), before any command is sent.
   */
  async send(
    commands: readonly Command[],
    { lane = 'urgent' }: { readonly lane?: Lane } = {},
  ): Promise<readonly Reply[]> {
    const texts = await this.#sendInOrder(lane, () => this.#linesOf(commands));
    return commands.map((command, at) => judgeReply(command, texts[at] ?? ''));
  }

  /**
   * HAProxy's answer to a question, such as `show servers state BACKEND`, without line feeds at its end. Questions of
   * the bulk lane use a second connection to the same worker.
   */
  async ask(line: string, { lane = 'urgent' }: { readonly lane?: Lane } = {}): Promise<string> {
    const [text = ''] = await this.askAll([line], { lane });
    return text;
  }

  /** The answers to several questions, which are written together. */
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
    const asked = lines.map((line) => this.names.asked(line));
    const isOnMain = lane === 'urgent' || this.#main.isClosed;
    const texts = isOnMain
      ? await this.#sendInOrder(lane, async () => asked)
      : await (await this.#sidePipeline()).send(asked, lane);
    return texts.map(withoutLineFeeds);
  }

  close(): void {
    this.#main.close();
  }

  /** A batch waits until the text of the previous batch is complete, but not for its replies. */
  async #sendInOrder(lane: Lane, lines: () => Promise<readonly string[]>): Promise<readonly string[]> {
    const entered = await this.#entrances[lane].run(async () => ({
      texts: this.#main.send(await lines(), lane),
    }));
    return entered.texts;
  }

  async #linesOf(commands: readonly Command[]): Promise<readonly string[]> {
    const slice = new Slice();
    const lines: string[] = [];
    for (const command of commands) {
      if (slice.isOver) await slice.breathe();
      const payload = command.kind === 'StageCertificate' ? await readPayload(command.file) : '';
      // From this command on, the worker has the pool under this name.
      if (isOfRow(command) && command.position.row.map === 'spares')
        this.names.use(command.key, command.value);
      lines.push(commandText(this.#named(command), this.worker.capabilities, payload));
    }
    return lines;
  }

  #named(command: Command): Command {
    return 'backend' in command ? { ...command, backend: this.names.inWorker(command.backend) } : command;
  }

  #sidePipeline(): Promise<Pipeline> {
    if (this.#side === undefined) {
      const forget = (): void => {
        this.#side = undefined;
      };
      this.#side = this.#reachAgain();
      this.#side.then(({ closed }) => closed).then(forget, forget);
    }
    return this.#side;
  }

  /** For a moment the previous worker accepts connections as well; another HAProxy may have replaced the admin socket. */
  async #reachAgain(): Promise<Pipeline> {
    const own = this.worker.pid;
    for (const until = performance.now() + 2 * GRACE_MS; ; await sleep(RETRY_DELAY_MS)) {
      const { pipeline, worker } = await open(this.#options, this.worker);
      if (worker.pid === own) return pipeline;
      pipeline.close();
      if (worker.stopping && performance.now() < until) continue;
      const byMaster = await openByMaster(this.#options, own).catch(() => undefined);
      if (byMaster?.worker.pid === own && !byMaster.worker.stopping) return byMaster.pipeline;
      byMaster?.pipeline.close();
      const message = `Worker ${own} does not accept connections any more: worker ${worker.pid} does`;
      throw new HeadgateError('RUNTIME_CLOSED', message, { retry: 'now' });
    }
  }
}

/** HAProxy gets what is in the file, which it reads at its next start. Errors: FILE_READ. */
async function readPayload(file: string): Promise<string> {
  return readFile(file, 'latin1').catch((cause: unknown) => {
    throw new HeadgateError('FILE_READ', `Cannot read "${file}"`, { retry: 'never', cause });
  });
}

/** Reads the end only: a regular expression would be tried at every line of a text of megabytes. */
function withoutLineFeeds(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/** `known`: the worker to reach through the master. */
async function open(options: RuntimeOptions, known?: WorkerProcess): Promise<Link> {
  if (known?.via === 'master' || options.isReplaced) return openByMaster(options, known?.pid);
  try {
    return await openDirectly(options);
  } catch (error) {
    const isGone = error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT';
    if (!isGone || options.masterSocketPath === undefined) throw error;
    return openByMaster(options, known?.pid);
  }
}

async function openDirectly({ socketPath, timeoutMs = TIMEOUT_MS }: RuntimeOptions): Promise<Link> {
  const pipeline = await Pipeline.connect(socketPath, '> ', timeoutMs);
  return identified(pipeline, 'admin', async () => {
    const [, info = ''] = await pipeline.send(['prompt', 'show info'], 'urgent');
    return info;
  });
}

async function openByMaster(
  { masterSocketPath = '', timeoutMs = TIMEOUT_MS }: RuntimeOptions,
  known?: number,
): Promise<Link> {
  const pid = known ?? (await activeWorker(masterSocketPath, timeoutMs));
  const pipeline = await Pipeline.connect(masterSocketPath, `${pid}> `, timeoutMs);
  return identified(pipeline, 'master', async () => {
    // Three lines, one reply that ends with the worker's prompt. The master's prompt and the worker's first prompt have
    // no line feed before them.
    const [text = ''] = await pipeline.send([`prompt\n@!${pid}\nshow info`], 'urgent');
    return text.replace(/^master[^>\n]*> \d+> /, '');
  });
}

async function activeWorker(masterSocketPath: string, timeoutMs: number): Promise<number> {
  const { workers, oldWorkers } = await showProc(masterSocketPath, { timeoutMs });
  const youngest = [...workers, ...[...oldWorkers].sort((a, b) => a.reloads - b.reloads)][0];
  if (youngest !== undefined) return youngest.pid;
  throw new HeadgateError('RUNTIME_CONNECT', `The master behind "${masterSocketPath}" has no worker`);
}

async function identified(
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
