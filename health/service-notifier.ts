// Tells systemd how the agent is, by sd_notify(3): that it serves, that it lives, that it stops, and a line for
// `systemctl status`. Node cannot send datagrams to a unix socket, so that the program systemd-notify does it.
// Does nothing where nobody listens.

import { runCommand } from '../agent/host/run-command.ts';
import type { Verdict } from './server.ts';

export interface ServiceNotifierOptions {
  /** What systemd has said to us is taken out of it, lest a child speaks in our name. */
  readonly env: Record<string, string | undefined>;
  /** Where it is not '', systemd hears nothing of us until it ends us. */
  readonly alive: Verdict;
  readonly ready: Verdict;
  /** What is told where both are ''. */
  readonly status: () => string;
  /** Of the first of several messages that cannot be sent. */
  readonly onFailure: (error: unknown) => void;
}

/** Milliseconds between two looks, at most. */
const EVERY = 1_000;
/** While the start goes on, because HAProxy or the API server is waited for, systemd gives it this much longer. */
const START_TIMEOUT = 30_000;
/** A message is heard within milliseconds, unless systemd itself is restarted. */
const PATIENCE = 5_000;

export class ServiceNotifier {
  readonly #options: ServiceNotifierOptions;
  readonly #socket: string;
  /** Milliseconds between two signs of life: three of them have to be lost before systemd acts. */
  readonly #beat: number;
  readonly #hasWatchdog: boolean;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();
  #isBusy = false;
  #isReady = false;
  #hasFailed = false;
  #lastBeat = Number.NEGATIVE_INFINITY;
  #status = '';

  constructor(options: ServiceNotifierOptions) {
    this.#options = options;
    const { env } = options;
    this.#socket = env.NOTIFY_SOCKET ?? '';
    const watchdog = Number(env.WATCHDOG_USEC ?? 0) / 1000;
    const isForUs = env.WATCHDOG_PID === undefined || env.WATCHDOG_PID === String(process.pid);
    this.#hasWatchdog = watchdog > 0 && isForUs;
    this.#beat = (this.#hasWatchdog ? Math.min(watchdog, START_TIMEOUT) : START_TIMEOUT) / 3;
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  }

  start(): void {
    if (this.#socket === '') return;
    this.#timer = setInterval(() => this.#look(), Math.min(EVERY, this.#beat)).unref();
    this.#look();
  }

  /** Resolves once systemd knows that the agent stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#socket === '') return;
    await this.#sending;
    await this.#send(['STOPPING=1', 'STATUS=Stopping']);
  }

  #look(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#sending = this.#tell().finally(() => {
      this.#isBusy = false;
    });
  }

  async #tell(): Promise<void> {
    const { alive, ready, status } = this.#options;
    const [dead, unready] = [alive(), ready()];
    const becomesReady = !this.#isReady && dead === '' && unready === '';
    const isReady = this.#isReady || becomesReady;
    const now = performance.now();
    const isDue = dead === '' && now - this.#lastBeat >= this.#beat;
    const words = dead || unready || status();

    const lines: string[] = [];
    if (becomesReady) lines.push('READY=1');
    if (isDue && !isReady) lines.push(`EXTEND_TIMEOUT_USEC=${START_TIMEOUT * 1000}`);
    if (isDue && isReady && this.#hasWatchdog) lines.push('WATCHDOG=1');
    if (words !== this.#status) lines.push(`STATUS=${oneLine(words)}`);
    if (lines.length === 0 || !(await this.#send(lines))) return;
    this.#isReady = isReady;
    this.#status = words;
    if (isDue) this.#lastBeat = now;
  }

  /** False where it could not be sent; it is then tried again with the next look. */
  async #send(lines: readonly string[]): Promise<boolean> {
    const { env, onFailure } = this.#options;
    try {
      const { exitCode, stderr } = await runCommand('systemd-notify', lines, {
        timeout: PATIENCE,
        env: { ...env, NOTIFY_SOCKET: this.#socket },
      });
      if (exitCode !== 0) throw new Error(stderr.trim() || `exit status ${exitCode}`);
      this.#hasFailed = false;
      return true;
    } catch (error) {
      if (!this.#hasFailed) onFailure(error);
      this.#hasFailed = true;
      return false;
    }
  }
}

/** A line end would begin another message. */
function oneLine(words: string): string {
  return words.replaceAll(/\s+/g, ' ').slice(0, 200);
}
