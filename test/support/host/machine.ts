// A host with its own systemd, booted from a root filesystem in namespaces on a test's network (boot-machine.sh). It ends
// with the test's process.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inNamespace } from '../../../agent/host/namespace.ts';
import { type CommandResult, runCommand } from '../../../agent/host/run-command.ts';
import { endWithUs } from '../basics/leftovers.ts';

/** SIGRTMIN+4 makes systemd power off; Node has no name for it. */
const POWER_OFF = 38;
/** Milliseconds for any event on a busy machine. */
const PATIENCE = 600_000;

export class Machine {
  readonly root: string;
  readonly #netns: string;
  #process: ChildProcess | undefined;
  #init = 0;

  /** `root` belongs to the machine and is removed with the test; `netns` is the network namespace with its interfaces. */
  constructor(root: string, netns: string) {
    this.root = root;
    this.#netns = netns;
  }

  get isOn(): boolean {
    return (
      this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null
    );
  }

  /** Resolves when systemd has finished the boot, with its result: `running` or `degraded`. */
  async boot(): Promise<string> {
    const pidFile = join(this.root, 'machine.pid');
    await rm(pidFile, { force: true });
    const script = fileURLToPath(new URL('boot-machine.sh', import.meta.url));
    const [program, words] = inNamespace(this.#netns, 'sh', [script, this.root]);
    this.#process = spawn(program, words, { stdio: ['ignore', 'inherit', 'inherit'] });
    endWithUs(this.#process.pid ?? 0, this.root);
    await this.until('its first process runs', async () => {
      if (!this.isOn) throw new Error('The machine has ended before it ran');
      this.#init = Number(await readFile(pidFile, 'utf8').catch(() => 0));
      return this.#init > 0;
    });
    await this.until('systemd answers', async () => {
      if (!this.isOn) throw new Error('The machine has ended before systemd answered');
      const { stdout } = await this.try('systemctl', 'is-system-running');
      return /^(starting|running|degraded)/.test(stdout);
    });
    const { stdout } = await this.try('systemctl', 'is-system-running', '--wait');
    return stdout.trim();
  }

  /** Runs a program in the machine. Errors: the program fails. */
  async run(program: string, ...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await this.try(program, ...args);
    if (exitCode !== 0) throw new Error(`${program} ${args.join(' ')}: ${exitCode}: ${stderr}${stdout}`);
    return stdout;
  }

  /** Runs a program and resolves also if the program fails. */
  try(program: string, ...args: readonly string[]): Promise<CommandResult> {
    const clean = ['env', '-i', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'];
    const words = [
      `--target=${this.#init}`,
      '--all',
      '--',
      ...clean,
      'DEBIAN_FRONTEND=noninteractive',
      program,
    ];
    return runCommand('nsenter', [...words, ...args], { timeout: PATIENCE });
  }

  /** A property of a unit from `systemctl show`. */
  async show(unit: string, property: string): Promise<string> {
    return (await this.run('systemctl', 'show', '--value', '--property', property, unit)).trim();
  }

  async until(what: string, holds: () => Promise<boolean>, timeout = PATIENCE): Promise<void> {
    for (const end = performance.now() + timeout; !(await holds()); await delay(50)) {
      if (performance.now() > end) throw new Error(`Not within ${timeout / 1_000} s: ${what}`);
    }
  }

  /** Powers off in order, like the power button. */
  async powerOff(): Promise<void> {
    if (!this.isOn) return;
    process.kill(this.#init, POWER_OFF);
    await once(this.#process as ChildProcess, 'exit');
  }

  /** Cuts the power. */
  async cutOff(): Promise<void> {
    if (!this.isOn) return;
    process.kill(this.#init, 'SIGKILL');
    await once(this.#process as ChildProcess, 'exit');
  }
}
