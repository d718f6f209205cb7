// Sends plans to a HAProxy worker and records what its replies prove. After a reply other than the exact success text the
// state of that listener is unknown: it is read back, planned again and sent once more; a second failure needs a reload.

import { HeadgateError, messageOf } from '../base/errors.ts';
import type { HaproxyPlan, ReloadReason } from './plan.ts';
import { readListener } from './readback.ts';
import type { Running } from './running.ts';
import type { Command } from './socket/commands.ts';
import type { Worker } from './worker.ts';

export interface Refusal {
  readonly key: string;
  readonly command: Command;
  readonly reply: string;
}

/** The result of plans in one worker. */
export interface WorkerOutcome {
  readonly acknowledged: readonly Command[];
  readonly refused: readonly Refusal[];
  /** Listeners that were read back and whose second plan succeeded. */
  readonly repaired: readonly string[];
  /** Listeners that only a reload can bring to their desired state. */
  readonly beyondRepair: readonly string[];
  /** The connection was lost: the state of all other commands is unknown. */
  readonly lost: HeadgateError | undefined;
}

/** The reply of a replaced worker to every command about a server, from 2.6 to 3.4. */
const IS_REPLACED = 'Proxy is disabled.';

/** Reasons to replace a worker in which another process added a server with the name or id of a member. */
const FOREIGN_SERVER: ReadonlySet<ReloadReason> = new Set<ReloadReason>([
  'server-renumbered',
  'server-changed',
]);

/** `replan` plans a load balancer from the running state at that time. Never throws. */
export async function applyPlans(
  worker: Worker,
  plans: readonly HaproxyPlan[],
  replan: (key: string) => HaproxyPlan,
): Promise<WorkerOutcome> {
  const acknowledged: Command[] = [];
  const refused: Refusal[] = [];
  const repaired: string[] = [];
  const beyondRepair: string[] = [];
  let lost: HeadgateError | undefined;
  try {
    const first = await send(worker, plans, acknowledged);
    refused.push(...first);
    const failed = new Map(first.map(({ key, command }) => [listenerOf(worker.running, command), key]));
    // A replaced worker cannot be repaired, and more commands would delay those to its replacement.
    if (first.some(({ reply }) => reply === IS_REPLACED))
      return { acknowledged, refused, repaired, beyondRepair: [...failed.keys()], lost };
    const unreadable = new Set<string>();
    for (const listener of failed.keys()) if (!(await isRead(worker, listener))) unreadable.add(listener);
    const again = [...new Set(failed.values())].map(replan);
    const second = await send(worker, again, acknowledged);
    const stillFailed = new Set(second.map(({ command }) => listenerOf(worker.running, command)));
    const foreign = new Set(
      again.flatMap(({ key, reload }) => (reload !== undefined && FOREIGN_SERVER.has(reload) ? [key] : [])),
    );
    for (const [listener, key] of failed) {
      const isRepaired = !stillFailed.has(listener) && !unreadable.has(listener) && !foreign.has(key);
      (isRepaired ? repaired : beyondRepair).push(listener);
    }
  } catch (error) {
    lost =
      error instanceof HeadgateError
        ? error
        : new HeadgateError('RUNTIME_CLOSED', messageOf(error), { retry: 'now', cause: error });
  }
  return { acknowledged, refused, repaired, beyondRepair, lost };
}

/** False if the worker lacks something that it should have, such as an ACL, so that its answer cannot be read. */
async function isRead(worker: Worker, listener: string): Promise<boolean> {
  try {
    await readListener(worker, listener);
    return true;
  } catch (error) {
    if (error instanceof HeadgateError && error.code === 'RUNTIME_REPLY') return false;
    throw error;
  }
}

async function send(
  worker: Worker,
  plans: readonly HaproxyPlan[],
  acknowledged: Command[],
): Promise<readonly Refusal[]> {
  const keys: string[] = [];
  const commands: Command[] = [];
  for (const { key, commands: own } of plans) {
    for (const command of own) {
      keys.push(key);
      commands.push(command);
    }
  }
  if (commands.length === 0) return [];
  const refused: Refusal[] = [];
  const replies = await worker.runtime.send(commands);
  for (const [at, command] of commands.entries()) {
    const reply = replies[at];
    if (reply?.ok || reply?.kind === 'gone') {
      worker.running.fold(command);
      acknowledged.push(command);
    } else {
      refused.push({ key: keys[at] ?? '', command, reply: reply?.text ?? '' });
    }
  }
  return refused;
}

function listenerOf(running: Running, command: Command): string {
  switch (command.kind) {
    case 'AddCidr':
    case 'DeleteCidr':
      return running.listenerOfAcl(command.acl) ?? '';
    default:
      return command.backend;
  }
}
