// Metrics of what the agent does to HAProxy and keepalived: commands, reloads, repairs, files; and of what keepalived
// tells. What HAProxy itself counts is in agent/haproxy/stats/.

import type { Counter, MetricRegistry } from './metric-registry.ts';

export interface DataplaneState {
  readonly serving: boolean;
  /** Why a reload is due and yet to be made; empty where none is. */
  readonly reloadPending: readonly string[];
  /** '' where the state on disk is the desired one. */
  readonly persistFault: string;
  readonly serversToDelete: number;
}

/** What a reload is made for. */
export const RELOAD_REASONS = [
  'listener-added',
  'listener-removed',
  'listener-changed',
  'server-renumbered',
  'server-changed',
  'settings',
  'adopted',
  'unblocked',
  'repair',
  'socket-lost',
] as const;
/** What is found different and put right. */
export const REPAIRS = [
  'listener',
  'audit',
  'file',
  'socket',
  'worker',
  'process',
  'keepalived',
  'stale-vips',
] as const;
const RESULTS = ['done', 'failed'] as const;
type Result = (typeof RESULTS)[number];

export class DataplaneMetrics {
  readonly #commands: Counter;
  readonly #refusals: Counter;
  readonly #reloads: Counter;
  readonly #keepalivedReloads: Counter;
  readonly #repairs: Counter;
  readonly #persists: Counter;

  constructor(registry: MetricRegistry, state: () => DataplaneState) {
    const serving = 'Whether a HAProxy worker answers';
    registry.number('headgate_haproxy_serving', serving, () => Number(state().serving));
    const due = 'Whether a reload is due and yet to be made';
    registry.number('headgate_haproxy_reload_due', due, () => Number(state().reloadPending.length > 0));
    const persisted = 'Whether the desired state could be written to disk';
    registry.number('headgate_state_persisted', persisted, () => Number(state().persistFault === ''));
    const leaving = 'Servers out of use that still wait to be deleted';
    registry.number('headgate_haproxy_servers_to_delete', leaving, () => state().serversToDelete);
    const commands = 'Runtime commands that HAProxy acknowledged';
    this.#commands = registry.counter('headgate_haproxy_commands_total', commands, ['command']);
    const refusals = 'Runtime commands that HAProxy refused';
    this.#refusals = registry.counter('headgate_haproxy_command_failures_total', refusals, ['command']);
    this.#reloads = registry.counter(
      'headgate_haproxy_reloads_total',
      'Reloads of HAProxy, once per reason',
      ['reason', 'result'],
      RELOAD_REASONS.flatMap((reason) => RESULTS.map((result) => ({ reason, result }))),
    );
    this.#keepalivedReloads = registry.counter(
      'headgate_keepalived_reloads_total',
      'Reloads of keepalived',
      ['result'],
      RESULTS.map((result) => ({ result })),
    );
    this.#repairs = registry.counter(
      'headgate_repairs_total',
      'What was found different from desired and repaired',
      ['what'],
      REPAIRS.map((what) => ({ what })),
    );
    this.#persists = registry.counter(
      'headgate_persist_total',
      'Writes of the desired state to disk',
      ['result'],
      RESULTS.map((result) => ({ result })),
    );
  }

  commandsAcknowledged(command: string): void {
    this.#commands.inc({ command });
  }

  commandRefused(command: string): void {
    this.#refusals.inc({ command });
  }

  repaired(what: (typeof REPAIRS)[number]): void {
    this.#repairs.inc({ what });
  }

  reloaded(reason: (typeof RELOAD_REASONS)[number], result: Result): void {
    this.#reloads.inc({ reason, result });
  }

  keepalivedReloaded(result: Result): void {
    this.#keepalivedReloads.inc({ result });
  }

  persisted(result: Result): void {
    this.#persists.inc({ result });
  }
}
