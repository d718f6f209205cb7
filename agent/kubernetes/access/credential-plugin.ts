// Holds the credential plugins of a kubeconfig, which the client library starts, to a deadline: each gets no input, so
// that none waits for a person, and is killed with all that it has started when its time is over.
// Without it a plugin that hangs would end all talk with the API server.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** What the library rejects with where the deadline passed. */
export class PluginTooSlow extends Error {}

/** `config`: a KubeConfig of the library. Errors: where that starts its plugins in another way than it used to. */
export function limitPlugins(config: object, deadlineMs: number): void {
  const { authenticators } = config as { readonly authenticators?: readonly Partial<Starter>[] };
  const starters = authenticators?.filter((each) => typeof each.execFn === 'function') ?? [];
  if (starters.length === 0) throw new Error('The client library has no starter of plugins');
  for (const starter of starters)
    starter.execFn = (command, args, options) => start(command, args, options, deadlineMs);
}

/** The part of the library's ExecAuth that starts a plugin. */
interface Starter {
  execFn: (command: string, args: readonly string[] | undefined, options: SpawnOptions) => ChildProcess;
}

function start(
  command: string,
  args: readonly string[] | undefined,
  options: SpawnOptions,
  deadlineMs: number,
): ChildProcess {
  // A group of its own, so that the deadline ends what the plugin has started, too.
  const child = spawn(command, args ?? [], { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => {
    // The library ends with this when the output is closed.
    child.emit('error', new PluginTooSlow(`did not end within ${deadlineMs} ms`));
    killGroup(child);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }, deadlineMs);
  child.on('close', () => clearTimeout(timer));
  return child;
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has just ended.
  }
}
