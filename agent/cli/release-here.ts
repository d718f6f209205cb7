// `headgate release --all`, `--namespace NS` and `--undo`: asks the operator, and gives the order to the agent of this host; if
// none runs, to one that is started for it.

import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { agentSocketPath, askAgent, isAnswered, orderAgent } from '../answer/agent-socket.ts';
import { sleep } from '../base/clock.ts';
import { counted } from '../base/counted.ts';
import { HeadgateError } from '../base/errors.ts';
import { label } from '../base/name-forms.ts';
import { printable, quote } from '../base/quote.ts';
import type { ReleaseOutcome, ReleasePreview } from '../release/release-order.ts';
import type { Arguments } from './command.ts';
import { print, usageError } from './command-line.ts';

/** The provisioner has half a minute for each address, and works at four at the same time. */
const ORDER_TIMEOUT_MS = 3_600_000;
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 200;
const SHOWN = 10;

/** One of the flags names what to release. */
export function isHere({ own }: Pick<Arguments, 'own'>): boolean {
  return own.all === true || own.undo === true || own.namespace !== undefined;
}

/** Errors: USAGE; AGENT_UNREACHABLE if no agent runs and none can be started here; ORDER_FAILED. */
export async function releaseHere(given: Arguments): Promise<number> {
  const query = queryOf(given);
  const path = agentSocketPath(given.settings.runtimeDir);
  const started = (await isAnswered(path)) ? undefined : await startAgent(given, path);
  try {
    const isUndo = given.own.undo === true;
    if (!isUndo && !(await isWanted(given, path, query))) return given.own['dry-run'] === true ? 0 : 1;
    const outcome = (await orderAgent(
      path,
      'release',
      { ...query, ...(isUndo ? { undo: 'true' } : {}) },
      ORDER_TIMEOUT_MS,
    )) as ReleaseOutcome;
    print(given, outcome, linesOf(outcome, isUndo));
    return outcome.ok ? 0 : 1;
  } finally {
    await end(started);
  }
}

/** Errors: USAGE. */
function queryOf({ own }: Arguments): Readonly<Record<string, string>> {
  const { namespace } = own;
  if (own.all === true && namespace !== undefined) throw usageError('Give --all or --namespace NS, not both');
  if (namespace === undefined) return {};
  if (typeof namespace === 'string' && label.check(namespace)) return { namespace };
  throw usageError(`Cannot release namespace ${quote(String(namespace))}: it ${label.not}`);
}

/** Shows what will be released, and asks unless --yes is given. Errors: USAGE without a terminal. */
async function isWanted(
  given: Arguments,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<boolean> {
  const isDryRun = given.own['dry-run'] === true;
  if (given.own.yes === true && !isDryRun) return true;
  if (!isDryRun && process.stdin.isTTY !== true)
    throw usageError('There is no terminal to ask at: add --yes to release without a question');
  const { loadBalancers, addresses } = (await askAgent(path, 'release-preview', query)) as ReleasePreview;
  const what = `${counted(loadBalancers.length, 'load balancer')} with ${counted(addresses.length, 'address')}`;
  const lines = [
    ...firstOf(loadBalancers),
    `${isDryRun ? 'Would release' : 'To release:'} ${what}${addresses.length === 0 ? '' : `: ${addresses.slice(0, SHOWN).join(' ')}${addresses.length > SHOWN ? ' ...' : ''}`}`,
  ];
  if (isDryRun) {
    print(given, { loadBalancers, addresses }, lines);
    return false;
  }
  for (const line of lines) console.error(printable(line));
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('Clients lose them on all hosts. Type "yes" to release: ');
  terminal.close();
  return answer.trim() === 'yes';
}

function linesOf({ released, left, notes }: ReleaseOutcome, isUndo: boolean): readonly string[] {
  const verb = isUndo ? 'Serves again:' : 'Released';
  const isNothing = released.length === 0 && left.length === 0;
  return [
    ...released.map((each) => `${verb} ${each}`),
    ...left.map((each) => `Left: ${each}`),
    ...notes,
    ...(isNothing ? [isUndo ? 'Nothing was released' : 'Nothing is left to release'] : []),
    ...(left.length > 0 ? [`${counted(left.length, 'thing')} left: the same command again tries again`] : []),
  ];
}

function firstOf(all: readonly string[]): readonly string[] {
  return all.length <= SHOWN ? all : [...all.slice(0, SHOWN), `... and ${all.length - SHOWN} more`];
}

/**
 * Starts an agent with the same settings. Not for another user's state folder, whose agent systemd starts with rights and
 * settings that this command does not have.
 */
async function startAgent({ settings }: Arguments, path: string): Promise<ChildProcess> {
  const { stateDir } = settings;
  const owner = statSync(stateDir, { throwIfNoEntry: false })?.uid;
  if (owner !== process.getuid?.()) {
    const why = owner === undefined ? 'does not exist' : 'belongs to another user';
    const message = `No agent answers at "${path}", and the state folder "${stateDir}" ${why}: start the agent (systemctl start headgate), which then gets the order`;
    throw new HeadgateError('AGENT_UNREACHABLE', message, { retry: 'never' });
  }
  const [, program = ''] = process.argv;
  const child = spawn(process.execPath, [...process.execArgv, program, 'run', ...runFlags()], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let messages = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    messages = (messages + chunk.toString('utf8')).slice(-2_000);
  });
  for (const until = performance.now() + START_TIMEOUT_MS; performance.now() < until; await sleep(POLL_MS)) {
    if (child.exitCode !== null) break;
    if (await isReady(path)) return child;
  }
  await end(child);
  throw new HeadgateError('AGENT_UNREACHABLE', `No agent answers at "${path}", and none could be started`, {
    cause: new Error(messages.trim()),
  });
}

/** It has read what it serves, so that it knows what to withdraw. */
function isReady(path: string): Promise<boolean> {
  return askAgent(path, 'status').then(
    () => true,
    () => false,
  );
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

/** The flags of this command line that are settings. */
function runFlags(): readonly string[] {
  const words = process.argv.slice(3);
  return words.filter((word, at) => {
    const isValue = words[at - 1] === '--namespace';
    return !isValue && !/^--(?:all|undo|yes|dry-run|json|namespace(?:=.*)?)$/.test(word);
  });
}
