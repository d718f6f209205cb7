// Reports the agent's state to systemd by sd_notify(3): that it serves, is alive and stops, and a line for
// `systemctl status`. The program systemd-notify sends the messages, because Node cannot send datagrams to a unix
// socket. Without systemd it does nothing.

import { messageOf } from '../agent/base/errors.ts';
import { Fault } from '../agent/base/fault.ts';
import { Rounds } from '../agent/base/rounds.ts';
import { serial } from '../agent/base/serial.ts';
import { runCommand } from '../agent/host/run-command.ts';
import type { Verdict } from './server.ts';

export interface ServiceNotifierOptions {
  /** systemd's variables are removed from it, so that no child process sends messages for the agent. */
  readonly env: Record<string, string | undefined>;
  /** While it returns a fault, systemd gets no sign of life, and restarts the agent in the end. */
  readonly alive: Verdict;
  readonly ready: Verdict;
  /** The status if `alive` and `ready` return no fault. */
  readonly status: () => string;
  /** Called once for a fault that lasts. */
  readonly onFailure: (error: unknown) => void;
}

const MAX_INTERVAL_MS = 1_000;
/** While the agent starts and waits for HAProxy or the API server, systemd extends its start by this. */
const START_TIMEOUT_MS = 30_000;
/** systemd takes a message within milliseconds, unless systemd itself restarts. */
const SEND_TIMEOUT_MS = 5_000;

export class ServiceNotifier {
  readonly #options: ServiceNotifierOptions;
  readonly #socket: string;
  /** systemd acts only after three missing signs of life. */
  readonly #aliveIntervalMs: number;
  readonly #hasWatchdog: boolean;
  readonly #rounds: Rounds;
  readonly #messages = serial();
  readonly #fault = new Fault();
  #isReady = false;
  #lastAliveAt = Number.NEGATIVE_INFINITY;
  #status = '';

  constructor(options: ServiceNotifierOptions) {
    this.#options = options;
    const { env } = options;
    this.#socket = env.NOTIFY_SOCKET ?? '';
    const watchdogMs = Number(env.WATCHDOG_USEC ?? 0) / 1000;
    const isForAgent = env.WATCHDOG_PID === undefined || env.WATCHDOG_PID === String(process.pid);
    this.#hasWatchdog = watchdogMs > 0 && isForAgent;
    this.#aliveIntervalMs =
      (this.#hasWatchdog ? Math.min(watchdogMs, START_TIMEOUT_MS) : START_TIMEOUT_MS) / 3;
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
    this.#rounds = new Rounds({
      intervalMs: () => Math.min(MAX_INTERVAL_MS, this.#aliveIntervalMs),
      work: () => this.#notify(),
      onFailed: options.onFailure,
    });
  }

  start(): void {
    if (this.#socket === '') return;
    this.#rounds.start();
    void this.#rounds.now();
  }

  /** Resolves when systemd has the message that the agent stops. */
  async close(): Promise<void> {
    if (this.#socket === '') return;
    this.#rounds.close();
    await this.#messages.run(() => this.#send(['STOPPING=1', 'STATUS=Stopping']));
  }

  async #notify(): Promise<void> {
    const { alive, ready, status } = this.#options;
    const [dead, unready] = [alive(), ready()];
    const becomesReady = !this.#isReady && dead === '' && unready === '';
    const isReady = this.#isReady || becomesReady;
    const now = performance.now();
    const isDue = dead === '' && now - this.#lastAliveAt >= this.#aliveIntervalMs;
    const text = dead || unready || status();

    const lines: string[] = [];
    if (becomesReady) lines.push('READY=1');
    if (isDue && !isReady) lines.push(`EXTEND_TIMEOUT_USEC=${START_TIMEOUT_MS * 1000}`);
    if (isDue && isReady && this.#hasWatchdog) lines.push('WATCHDOG=1');
    if (text !== this.#status) lines.push(`STATUS=${oneLine(text)}`);
    if (lines.length === 0 || !(await this.#messages.run(() => this.#send(lines)))) return;
    this.#isReady = isReady;
    this.#status = text;
    if (isDue) this.#lastAliveAt = now;
  }

  /** False if it could not be sent; the next round tries again. */
  async #send(lines: readonly string[]): Promise<boolean> {
    const { env, onFailure } = this.#options;
    try {
      const { exitCode, stderr } = await runCommand('systemd-notify', lines, {
        timeout: SEND_TIMEOUT_MS,
        env: { ...env, NOTIFY_SOCKET: this.#socket },
      });
      if (exitCode !== 0) throw new Error(stderr.trim() || `exit status ${exitCode}`);
      this.#fault.clear();
      return true;
    } catch (error) {
      if (this.#fault.set(messageOf(error))) onFailure(error);
      return false;
    }
  }
}

/** A line feed would begin another variable. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 200);
}
