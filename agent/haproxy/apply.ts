// Sends plans to a HAProxy worker and records what its replies prove. After a reply other than the exact success text the
// state of that listener is unknown: it is read back, planned again and sent once more; a second failure needs a reload.
// Why: docs/design/decisions/0016-what-counts-as-proved.md

import { HeadgateError, messageOf } from '../base/errors.ts';
import type { Certificate } from '../model/load-balancer.ts';
import { dispatcher } from '../model/names.ts';
import type { Worker } from './booted-worker.ts';
import type { HaproxyPlan, ReloadReason } from './plan.ts';
import { readListener, rereadRows } from './readback.ts';
import { GUARDS_OF_HOSTS } from './routes/held-rows.ts';
import type { MapRow } from './routes/maps.ts';
import type { Running } from './running.ts';
import {
  type AbortCertificate,
  type Command,
  type FrontendCommand,
  isOfCertificate,
  isOfRow,
  type RowCommand,
} from './socket/commands.ts';
import { SPARE_TABLE } from './spares.ts';

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
  /** Certificates that HAProxy does not accept: a reload would not help. */
  readonly refusedCertificates: readonly { readonly certificate: Certificate; readonly reply: string }[];
  /** Rows of routes that HAProxy does not accept; not those that restrict a whole host, with which a reload boots. */
  readonly refusedRows: readonly {
    readonly row: MapRow;
    readonly listener: string;
    readonly reply: string;
  }[];
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

/** `replan` plans load balancers from the running state at that time. Never throws. */
export async function applyPlans(
  worker: Worker,
  plans: readonly HaproxyPlan[],
  replan: (keys: readonly string[]) => readonly HaproxyPlan[],
): Promise<WorkerOutcome> {
  const acknowledged: Command[] = [];
  const refused: Refusal[] = [];
  const repaired: string[] = [];
  const refusedCertificates: { certificate: Certificate; reply: string }[] = [];
  const refusedRows: { row: MapRow; listener: string; reply: string }[] = [];
  const beyondRepair: string[] = [];
  let lost: HeadgateError | undefined;
  try {
    const first = await send(worker, plans, acknowledged);
    refused.push(...first);
    const failed = new Map(first.map(({ key, command }) => [listenerOf(worker.running, command), key]));
    // A replaced worker cannot be repaired, and more commands would delay those to its replacement.
    if (first.some(({ reply }) => reply === IS_REPLACED))
      return {
        acknowledged,
        refused,
        repaired,
        refusedCertificates,
        refusedRows,
        beyondRepair: [...failed.keys()],
        lost,
      };
    const unreadable = new Set<string>();
    for (const listener of failed.keys()) if (!(await isRead(worker, listener))) unreadable.add(listener);
    await endTransactions(worker, first);
    await rereadRows(worker, first.map(({ command }) => command).filter(isOfRow));
    const again = failed.size === 0 ? [] : replan([...new Set(failed.values())]);
    const second = await send(worker, again, acknowledged);
    await endTransactions(worker, second);
    const stillFailed = new Set<string>();
    const withRefused = new Set<string>();
    for (const { command, reply } of second) {
      const listener = listenerOf(worker.running, command);
      if (isOfCertificate(command)) {
        refusedCertificates.push({ certificate: command.certificate, reply });
        withRefused.add(listener);
      } else if (isOfRow(command) && !GUARDS_OF_HOSTS.has(command.position.row.map)) {
        refusedRows.push({ row: command.position.row, listener, reply });
        withRefused.add(listener);
      } else if (command.kind !== 'AddToList' || !withRefused.has(listener)) stillFailed.add(listener);
    }
    await shutUnguarded(worker, second, acknowledged);
    const foreign = new Set(
      again.flatMap(({ key, reload }) => (reload !== undefined && FOREIGN_SERVER.has(reload) ? [key] : [])),
    );
    for (const [listener, key] of failed) {
      if (withRefused.has(listener) && !stillFailed.has(listener)) continue;
      const isRepaired = !stillFailed.has(listener) && !unreadable.has(listener) && !foreign.has(key);
      (isRepaired ? repaired : beyondRepair).push(listener);
    }
  } catch (error) {
    lost =
      error instanceof HeadgateError
        ? error
        : new HeadgateError('RUNTIME_CLOSED', messageOf(error), { retry: 'now', cause: error });
  }
  return { acknowledged, refused, repaired, refusedCertificates, refusedRows, beyondRepair, lost };
}

/**
 * A refused certificate leaves a transaction open, in which HAProxy 2.6 would put the next one. The reply names another file
 * if the transaction is of that one.
 */
async function endTransactions({ runtime }: Worker, refused: readonly Refusal[]): Promise<void> {
  const files = new Set<string>();
  for (const { command, reply } of refused) {
    if (!isOfCertificate(command)) continue;
    files.add(command.file);
    const other = /(?:is about|for certificate) '?([^'!\s]+)/.exec(reply)?.[1];
    if (other !== undefined) files.add(other);
  }
  const commands = [...files].map((file): AbortCertificate => ({ kind: 'AbortCertificate', file }));
  // There may be no transaction.
  if (commands.length > 0) await runtime.send(commands);
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
  const refused: Refusal[] = [];
  /** Several listeners may have the same certificate. */
  const ofCertificates = new Set<string>();
  for (const { key, commands: own } of plans) {
    for (const command of own) {
      if (isOfCertificate(command)) {
        const once = `${command.kind} ${command.file} ${command.certificate.fingerprint}`;
        if (ofCertificates.has(once)) continue;
        ofCertificates.add(once);
      }
      if (isOfSpare(command) && !worker.running.spares.give(command.position.row)) {
        refused.push({ key, command, reply: 'Another pool has the spare backend' });
        continue;
      }
      keys.push(key);
      commands.push(command);
    }
  }
  if (commands.length === 0) return refused;
  const replies = await worker.runtime.send(commands);
  for (const [at, command] of commands.entries()) {
    const reply = replies[at];
    const isThere = command.kind === 'NewCertificate' && reply?.ok === false && reply.kind === 'exists';
    if (reply?.ok || reply?.kind === 'gone' || isThere) {
      worker.running.fold(command);
      acknowledged.push(command);
    } else {
      if (isOfSpare(command)) worker.running.spares.release(command.position.row.key);
      refused.push({ key: keys[at] ?? '', command, reply: reply?.text ?? '' });
    }
  }
  return refused;
}

/** Until the worker that boots with the row, a listener without a row that guards it takes no new connections. */
async function shutUnguarded(
  { runtime, running }: Worker,
  refused: readonly Refusal[],
  acknowledged: Command[],
): Promise<void> {
  for (const { command } of refused) {
    if (!isOfRow(command) || !GUARDS_OF_HOSTS.has(command.position.row.map)) continue;
    const { listener } = command.position;
    if (running.unguarded.has(listener)) continue;
    running.unguarded.add(listener);
    // Most listeners have one frontend only.
    const commands = [dispatcher(listener), listener].map(
      (frontend): FrontendCommand => ({ kind: 'DisableFrontend', listener, frontend }),
    );
    const replies = await runtime.send(commands);
    for (const [at, each] of commands.entries()) {
      if (!replies[at]?.ok) continue;
      running.fold(each);
      acknowledged.push(each);
    }
  }
}

/** It gives a pool a spare backend. */
function isOfSpare(command: Command): command is RowCommand {
  return isOfRow(command) && command.kind === 'AddMapEntry' && command.position.table === SPARE_TABLE;
}

function listenerOf(running: Running, command: Command): string {
  switch (command.kind) {
    case 'AddCidr':
    case 'DeleteCidr':
      return running.listenerOfAcl(command.acl) ?? '';
    case 'DisableFrontend':
    case 'EnableFrontend':
    case 'NewCertificate':
    case 'StageCertificate':
    case 'CommitCertificate':
    case 'AddToList':
    case 'RemoveFromList':
      return command.listener;
    case 'AddMapEntry':
    case 'SetMapEntry':
    case 'DeleteMapEntry':
      return command.position?.listener ?? '';
    case 'AbortCertificate':
    case 'ClearMap':
      return '';
    default:
      return command.backend;
  }
}
