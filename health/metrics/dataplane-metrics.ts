// Metrics of the agent's work on HAProxy and keepalived: commands, reloads, repairs, files. HAProxy's own statistics
// are in agent/haproxy/stats/.

import type { MetricRegistry } from './metric-registry.ts';

export interface DataplaneState {
  readonly serving: boolean;
  /** Reasons of a reload that is due; empty if none is. */
  readonly reloadPending: readonly string[];
  /** '' if the state on disk is the desired one. */
  readonly persistFault: string;
  readonly serversToDelete: number;
  /** Load balancers in the landing. */
  readonly landed: number;
}

export const RELOAD_REASONS = [
  'listener-added',
  'listener-removed',
  'listener-changed',
  'server-renumbered',
  'server-changed',
  'certificate-too-long',
  'settings',
  'adopted',
  'unblocked',
  'repair',
  'socket-lost',
] as const;
/** What the agent finds different from desired, and repairs. */
export const REPAIRS = [
  'listener',
  'audit',
  'file',
  'socket',
  'worker',
  'process',
  'keepalived',
  'stale-vips',
  'rules',
] as const;
/** What becomes of a member that fails clients. */
const EJECTIONS = ['rested', 'kept'] as const;
const RESULTS = ['done', 'failed'] as const;
type Result = (typeof RESULTS)[number];

export type DataplaneMetrics = ReturnType<typeof dataplaneMetrics>;

export function dataplaneMetrics(registry: MetricRegistry, state: () => DataplaneState) {
  const serving = 'Whether a HAProxy worker answers';
  registry.number('headgate_haproxy_serving', serving, () => Number(state().serving));
  const due = 'Whether a reload is due';
  registry.number('headgate_haproxy_reload_due', due, () => Number(state().reloadPending.length > 0));
  const persisted = 'Whether the desired state is on disk';
  registry.number('headgate_state_persisted', persisted, () => Number(state().persistFault === ''));
  const unused = 'Unused servers whose connections have not ended yet';
  registry.number('headgate_haproxy_servers_to_delete', unused, () => state().serversToDelete);
  const landed = 'Load balancers that the landing serves';
  registry.number('headgate_landing_load_balancers', landed, () => state().landed);
  const byResult = RESULTS.map((result): [Result] => [result]);
  return {
    commandsAcknowledged: registry.counter<[command: string]>(
      'headgate_haproxy_commands_total',
      'Runtime commands that HAProxy acknowledged',
      ['command'],
    ),
    commandRefused: registry.counter<[command: string]>(
      'headgate_haproxy_command_failures_total',
      'Runtime commands that HAProxy refused',
      ['command'],
    ),
    reloaded: registry.counter<[reason: (typeof RELOAD_REASONS)[number], result: Result]>(
      'headgate_haproxy_reloads_total',
      'Reloads of the main HAProxy, once per reason',
      ['reason', 'result'],
      RELOAD_REASONS.flatMap((reason) => RESULTS.map((result) => [reason, result] as const)),
    ),
    landingReloaded: registry.counter<[result: Result]>(
      'headgate_landing_reloads_total',
      'Reloads of the landing, the small HAProxy for new load balancers',
      ['result'],
      byResult,
    ),
    keepalivedReloaded: registry.counter<[result: Result]>(
      'headgate_keepalived_reloads_total',
      'Reloads of keepalived',
      ['result'],
      byResult,
    ),
    repaired: registry.counter<[what: (typeof REPAIRS)[number]]>(
      'headgate_repairs_total',
      'Repairs of what differed from the desired state',
      ['what'],
      REPAIRS.map((what) => [what]),
    ),
    ejected: registry.counter<[result: (typeof EJECTIONS)[number]]>(
      'headgate_ejections_total',
      'Members that failed clients: those that rest, and those that their pools kept',
      ['result'],
      EJECTIONS.map((result) => [result]),
    ),
    persisted: registry.counter<[result: Result]>(
      'headgate_persist_total',
      'Writes of the desired state to disk',
      ['result'],
      byResult,
    ),
  };
}
