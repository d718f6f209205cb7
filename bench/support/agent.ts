// Starts the agent as a user does, with `bin/headgate run`, and writes the folder of manifests that it reads.

import { mkdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { manifestOf, nameOf, type ServiceSpec } from './objects.ts';
import { type Running, start } from './processes.ts';
import type { Scratch } from './scratch.ts';
import { until } from './until.ts';
import { processTree } from './usage.ts';

const program = fileURLToPath(new URL('../../bin/headgate', import.meta.url));

export interface Agent extends Running {
  /** The state directory and the runtime directory. */
  readonly state: string;
  readonly runtime: string;
  readonly config: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
  /** The processes of HAProxy's master and its workers. */
  readonly haproxyPids: () => number[];
  /** The sum of a counter over its labels, from /metrics. */
  readonly counter: (name: string) => Promise<number>;
}

/**
 * Returns at once; `serving` waits until the agent serves. `source` is a folder of manifests or the flags of another
 * source. `within` is a command that executes the words after it, such as nsenter.
 */
export function startAgent(
  scratch: Scratch,
  source: string | readonly string[],
  { name = 'agent', haproxy = 'haproxy', nodeArgs = '', within = [] as readonly string[] } = {},
): Agent {
  const [state, runtime] = [scratch.path(`${name}-s`), scratch.path(`${name}-r`)];
  for (const directory of [state, runtime]) mkdirSync(directory, { recursive: true });
  const pidFile = join(runtime, 'haproxy', 'haproxy.pid');
  const config = join(state, 'haproxy', 'haproxy.cfg');
  // Runs after the agent's own stop, in case the agent left its HAProxy running.
  scratch.defer(() => killMaster(pidFile, config));
  const landing = (file: string): string => file.replace('/haproxy/', '/haproxy-landing/');
  scratch.defer(() => killMaster(landing(pidFile), landing(config)));
  const sources = typeof source === 'string' ? ['--manifests', source] : source;
  const args = ['run', ...sources, '--state-dir', state, '--runtime-dir', runtime];
  args.push('--listen', '127.0.0.1:0', '--haproxy', haproxy, '--stop-dataplane-on-exit');
  const env = nodeArgs === '' ? process.env : { ...process.env, NODE_OPTIONS: nodeArgs };
  const [first = program, ...rest] = [...within, program, ...args];
  const running = start(scratch, name, first, rest, { env });
  return {
    ...running,
    state,
    runtime,
    config,
    adminSocket: join(runtime, 'haproxy', 'admin.sock'),
    masterSocket: join(runtime, 'haproxy', 'master.sock'),
    haproxyPids: () => processTree(Number(readFileSync(pidFile, 'utf8'))),
    counter: (counter) => readCounter(running.output(), counter),
  };
}

/** Waits until the worker has `count` listeners. */
export async function serving(agent: Agent, count: number): Promise<void> {
  await until(
    `The agent serves ${count} listeners`,
    async () => {
      if (agent.child.exitCode !== null) throw new Error(`The agent has ended:\n${agent.output()}`);
      const stat = await askOnce(agent.adminSocket, 'show stat -1 1 -1').catch(() => '');
      return stat.split('\n').filter((line) => line.includes(',FRONTEND,')).length >= count;
    },
    { every: 100 },
  );
}

/** A folder of manifests with one file per Service. Replaces a file by renaming, as editors do. */
export class ManifestFolder {
  readonly path: string;

  constructor(path: string, specs: readonly ServiceSpec[] = []) {
    this.path = path;
    mkdirSync(path, { recursive: true });
    for (const spec of specs) this.write(spec);
  }

  write(spec: ServiceSpec): void {
    const path = join(this.path, `${nameOf(spec)}.yaml`);
    const draft = join(this.path, `.${nameOf(spec)}.new`);
    writeFileSync(draft, manifestOf(spec));
    renameSync(draft, path);
  }

  remove(spec: Pick<ServiceSpec, 'index'>): void {
    unlinkSync(join(this.path, `${nameOf(spec)}.yaml`));
  }
}

/** The sum of a metric over its labels; `log`: of an agent. */
export async function readCounter(log: string, name: string): Promise<number> {
  const address = /"listen":"([^"]+)"/.exec(log)?.[1];
  if (address === undefined) throw new Error("The agent's log does not contain its listen address");
  const text = await (await fetch(`http://${address}/metrics`)).text();
  let total = 0;
  for (const [, value] of text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm')))
    total += Number(value);
  return total;
}

function killMaster(pidFile: string, config: string): void {
  try {
    const pid = Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
    const isOurs = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(config);
    if (isOurs) for (const each of processTree(pid).reverse()) process.kill(each, 'SIGKILL');
  } catch {
    // The process has ended already.
  }
}
