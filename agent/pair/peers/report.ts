// What the agents of a pair tell each other, one line of JSON each time. Pure: to text, and back from text that
// somebody else has written, field by field.

import type { Priorities, Roles, VrrpRole } from '../roles.ts';
import { type HandoverReport, parseHandover } from './handover-report.ts';

export interface PairReport {
  /** Of the agent that tells; `unknown` where it does not say. */
  readonly version: string;
  /** Another one each time an agent starts: 16 hex digits. */
  readonly instance: string;
  readonly roles: Roles;
  /** As VRRP has them now; empty where they are not told. */
  readonly priorities: Priorities;
  /** Why this host's standing is lowered; empty where it is not. */
  readonly lowered: readonly string[];
  /** Whether all sources have been read. */
  readonly synced: boolean;
  readonly loadBalancers: number;
  /** How many load balancers HAProxy does not yet serve as it should. */
  readonly pending: number;
  /** Digest of all that is desired: 32 hex digits; '' where it is not told. */
  readonly model: string;
  /** Digest of all that HAProxy is proved to serve, equal to `model` where that is everything; '' where it does not answer. */
  readonly running: string;
  readonly handover: HandoverReport;
}

/** Bytes of one report with its line feed; no report comes near it. */
export const LONGEST_REPORT = 2048;

/** With its line feed. */
export function reportText(report: PairReport): string {
  return `${JSON.stringify(report)}\n`;
}

const ROLES: readonly unknown[] = ['master', 'backup', 'fault', 'unknown'] satisfies VrrpRole[];
/** No pair has more virtual routers. */
const MOST_ROLES = 16;
const DIGEST = /^[0-9a-f]{32}$/;

/**
 * The report in a line, or a sentence that says what is wrong with it. Fields that this version does not know are left
 * out, so that a newer agent may tell more; those that are not told, because the other agent is of another version, are
 * taken for what makes the peer the least ready. Only who tells and what VRRP says of it must be there.
 */
export function parseReport(line: string): PairReport | string {
  let value: Readonly<Record<string, unknown>>;
  try {
    value = JSON.parse(line);
  } catch {
    return 'It is not JSON';
  }
  if (typeof value !== 'object' || value === null) return 'It is not an object';
  const { version = 'unknown', instance, roles, priorities = {}, lowered = [], synced = false } = value;
  const { loadBalancers = 0, pending = 0, model = '', running = '' } = value;
  if (!isText(version, /^[0-9A-Za-z.+-]{1,64}$/)) return wrong('version', version);
  if (!isText(instance, /^[0-9a-f]{16}$/)) return wrong('instance', instance);
  if (!areRoles(roles)) return wrong('roles', roles);
  if (!arePriorities(priorities)) return wrong('priorities', priorities);
  if (!Array.isArray(lowered) || lowered.length > 16) return wrong('lowered', lowered);
  if (!lowered.every((one) => isText(one, /^[a-z-]{1,40}$/))) return wrong('lowered', lowered);
  if (typeof synced !== 'boolean') return wrong('synced', synced);
  if (!isCount(loadBalancers)) return wrong('loadBalancers', loadBalancers);
  if (!isCount(pending)) return wrong('pending', pending);
  if (model !== '' && !isText(model, DIGEST)) return wrong('model', model);
  if (running !== '' && !isText(running, DIGEST)) return wrong('running', running);
  const handover = parseHandover(value.handover);
  if (handover === undefined) return wrong('handover', value.handover);
  const ofVrrp = { roles, priorities };
  return { version, instance, ...ofVrrp, lowered, synced, loadBalancers, pending, model, running, handover };
}

function areRoles(value: unknown): value is Roles {
  return isByInstance(value, (role) => ROLES.includes(role));
}

function arePriorities(value: unknown): value is Priorities {
  return isByInstance(value, (priority) => isCount(priority) && priority <= 255);
}

function isByInstance(value: unknown, isOne: (value: unknown) => boolean): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= MOST_ROLES &&
    entries.every(([name, one]) => /^[a-z0-9-]{1,32}$/.test(name) && isOne(one))
  );
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function wrong(field: string, value: unknown): string {
  return `Its ${field} cannot be ${(JSON.stringify(value) ?? 'absent').slice(0, 80)}`;
}
