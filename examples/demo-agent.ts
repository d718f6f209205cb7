// Starts the agent of the demonstration with its own folders, and reads its metrics and its log.

import type { ChildProcess } from 'node:child_process';
import { execFile } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATH } from './demo-path.ts';
import { end, start } from './demo-processes.ts';

const program = fileURLToPath(new URL('../bin/headgate', import.meta.url));

export class DemoAgent {
  readonly manifests: string;
  readonly log: string;
  readonly runtimeDir: string;
  /** The address and port of /metrics. */
  address = '';
  readonly #stateDir: string;
  readonly #flags: readonly string[];
  #process: ChildProcess | undefined;

  /** `flags`: more of `run`. */
  constructor(directory: string, flags: readonly string[] = []) {
    this.#flags = flags;
    const folder = (name: string): string => join(directory, name);
    [this.manifests, this.#stateDir, this.runtimeDir, this.log] = [
      folder('manifests'),
      folder('state'),
      folder('run'),
      folder('agent.log'),
    ];
  }

  async prepare(): Promise<void> {
    await mkdir(this.manifests);
  }

  /** Resolves when HAProxy serves the manifests. */
  async start(): Promise<void> {
    const log = openSync(this.log, 'a');
    const flags = [
      '--manifests',
      this.manifests,
      '--state-dir',
      this.#stateDir,
      '--runtime-dir',
      this.runtimeDir,
    ];
    const args = ['run', ...flags, '--listen', '127.0.0.1:0', '--stop-dataplane-on-exit', ...this.#flags];
    this.#process = start(program, args, { env: cleanEnvironment(), stdio: ['ignore', log, log] });
    closeSync(log);
    for (const until = performance.now() + 30_000; !(await this.#isReady()); await delay(20)) {
      const hasEnded = this.#process.exitCode !== null || this.#process.signalCode !== null;
      if (!hasEnded && performance.now() < until) continue;
      const text = await readFile(this.log, 'utf8');
      throw new Error(
        `The agent ${hasEnded ? 'has ended' : 'is not ready after 30 s'}:\n${text.slice(-3_000)}`,
      );
    }
  }

  /** Stops the agent, and HAProxy if the agent has left it running. */
  async stop(): Promise<void> {
    if (this.#process !== undefined) await end(this.#process, 15_000);
    for (const folder of ['haproxy', 'haproxy-landing']) {
      const file = join(this.runtimeDir, folder, 'haproxy.pid');
      const pid = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10);
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (pid > 1 && command.includes(this.#stateDir)) process.kill(pid, 'SIGTERM');
    }
  }

  /** The number of successful and failed reloads of HAProxy so far. */
  async reloads(): Promise<number> {
    const text = await (await fetch(`http://${this.address}/metrics`)).text();
    const values = [...text.matchAll(/^headgate_haproxy_reloads_total\{[^}]*\} (\d+)$/gm)];
    return values.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  /** Resolves with the output of `headgate COMMAND`, with any exit status. */
  command(...words: readonly string[]): Promise<string> {
    return new Promise((resolve) => {
      const args = [...words, '--runtime-dir', this.runtimeDir];
      execFile(program, args, { env: cleanEnvironment() }, (_, stdout, stderr) => resolve(stdout + stderr));
    });
  }

  async #isReady(): Promise<boolean> {
    const [, listen = ''] = /"listen":"([^"]+)"/.exec(await readFile(this.log, 'utf8')) ?? [];
    if (listen === '') return false;
    this.address = listen;
    return (await fetch(`http://${listen}/readyz`)).ok;
  }
}

/** The environment without settings of the user's own agent. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('HEADGATE_'));
  return { ...Object.fromEntries(kept), PATH };
}
