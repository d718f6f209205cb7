// A real Prometheus that scrapes agents, by default every second, and evaluates the project's rules. It ends with the test.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { Deadline } from '../basics/deadline.ts';
import { rulesFile } from './rules.ts';

/** One series of an instant vector. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface EvaluatedRule {
  readonly name: string;
  readonly type: 'alerting' | 'recording';
  /** `unknown` before the first evaluation. */
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
  /** Only for alerts. */
  readonly state?: 'inactive' | 'pending' | 'firing';
}

export class Prometheus {
  readonly #url: string;

  /** Each target is `ADDRESS:PORT`. */
  static async start(
    t: Pick<ExecutionContext<unknown>, 'teardown'>,
    targets: readonly string[],
    seconds = 1,
  ): Promise<Prometheus> {
    const directory = await mkdtemp(join(tmpdir(), 'hg-prometheus-'));
    const config = {
      global: {
        ...{ scrape_interval: `${seconds}s`, evaluation_interval: `${seconds}s` },
        scrape_timeout: `${Math.min(seconds, 10)}s`,
      },
      rule_files: [rulesFile],
      scrape_configs: [
        {
          job_name: 'headgate',
          honor_labels: true,
          static_configs: [{ targets, labels: { cluster: 'test' } }],
        },
      ],
    };
    await writeFile(join(directory, 'prometheus.yml'), JSON.stringify(config));
    const child = spawn(
      'prometheus',
      [
        `--config.file=${directory}/prometheus.yml`,
        `--storage.tsdb.path=${directory}/data`,
        '--web.listen-address=127.0.0.1:0',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const ended = once(child, 'close');
    t.teardown(async () => {
      child.kill('SIGKILL');
      await ended;
      await rm(directory, { recursive: true, force: true });
    });
    return new Prometheus(`http://${await listening(child)}`);
  }

  private constructor(url: string) {
    this.#url = url;
  }

  /** The current instant vector or scalar of an expression. */
  async query(expr: string): Promise<readonly Series[]> {
    const { resultType, result } = await this.#ask(`query?query=${encodeURIComponent(expr)}`);
    if (resultType === 'scalar') return [{ metric: {}, value: Number(result[1]) }];
    return result.map(({ metric, value }: { metric: Series['metric']; value: [number, string] }) => ({
      metric,
      value: Number(value[1]),
    }));
  }

  /** When each series of an expression has a value, in seconds since the epoch, looked up at each step. */
  async times(
    expr: string,
    { from, to, step }: { readonly from: number; readonly to: number; readonly step: number },
  ): Promise<readonly (readonly number[])[]> {
    const words = new URLSearchParams({
      ...{ query: expr, start: String(Math.floor(from)), end: String(Math.ceil(to)), step: String(step) },
    });
    const { result } = await this.#ask(`query_range?${words}`);
    return result.map(({ values }: { values: readonly [number, string][] }) => values.map(([time]) => time));
  }

  async rules(): Promise<readonly EvaluatedRule[]> {
    const { groups } = await this.#ask('rules');
    return groups.flatMap(({ rules }: { rules: readonly EvaluatedRule[] }) => rules);
  }

  /** Waits until an expression has a result. Errors: none within `timeout` milliseconds. */
  async until(expr: string, timeout = 60_000): Promise<void> {
    for (const deadline = new Deadline(timeout, 220); (await this.query(expr)).length === 0; await delay(200))
      if (deadline.isOver) throw new Error(`Not within ${timeout} ms: ${expr}`);
  }

  // biome-ignore lint/suspicious/noExplicitAny: the callers above check the answers of Prometheus.
  async #ask(path: string): Promise<any> {
    const response = await fetch(`${this.#url}/api/v1/${path}`, { headers: { connection: 'close' } });
    const { status, data, error } = (await response.json()) as {
      readonly status: string;
      readonly data: unknown;
      readonly error?: string;
    };
    if (status !== 'success') throw new Error(`${decodeURIComponent(path)}: ${error}`);
    return data;
  }
}

/** Resolves with the URL when Prometheus answers. */
function listening(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    const [, address] = /msg="Listening on" address=(\S+)/.exec(said) ?? [];
    if (address !== undefined && said.includes('Server is ready')) resolve(address);
  });
  child.once('error', reject).once('close', () => reject(new Error(`Prometheus has ended: ${said}`)));
  return promise;
}
