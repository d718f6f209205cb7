// The conditions of an object from what hosts report of it, for the agent that leads. Pure.

import { counted } from '../base/counted.ts';
import { type CurrentReports, type HostReport, SILENT_MS } from './host-report.ts';

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** What a report means for a kind. */
export interface HostWords {
  /** The condition that is true while all hosts report `Up`: `Established`. */
  readonly type: string;
  /** Completes `With 2 of 3 hosts`. */
  readonly upBy: string;
  /** If no host reports. */
  readonly nobody: string;
}

const MOST_HOSTS = 5;
const MAX_MESSAGE_CHARACTERS = 1024;

/** `Accepted`, and the condition of the words. `fault`: why the object cannot be read, '' if it can. */
export function peerConditions(
  reports: readonly HostReport[],
  words: HostWords,
  fault: string,
  now: number,
): readonly Condition[] {
  const refused = reports.filter(({ state, reported }) => state === 'Refused' && now - reported < SILENT_MS);
  const accepted = (status: Condition['status'], reason: string, message: string): Condition => ({
    ...{ type: 'Accepted', status, reason },
    message: message.slice(0, MAX_MESSAGE_CHARACTERS),
  });
  const own = hostsCondition(reports, words, now);
  if (fault !== '') return [accepted('False', 'InvalidObject', fault), own];
  if (refused.length > 0)
    return [
      accepted('False', 'Refused', listed(refused.map(({ host, message }) => `${host}: ${message}`))),
      own,
    ];
  if (reports.length === 0) return [accepted('Unknown', 'NoHost', words.nobody), own];
  return [accepted('True', 'Accepted', 'Every host that reports has it'), own];
}

/** True if every host reports `Up`: one that is silent, or refuses it, is not. */
export function hostsCondition(reports: readonly HostReport[], words: HostWords, now: number): Condition {
  const { type, upBy, nobody } = words;
  if (reports.length === 0) return { type, status: 'Unknown', reason: 'NoHost', message: nobody };
  const up = reports.filter((each) => isUp(each, now));
  const others = reports.filter((each) => !isUp(each, now));
  const whys = others.map((each) => `${each.host}: ${whyOf(each, now)}`);
  const told = [...new Set(up.map(({ message }) => message).filter(Boolean))];
  const count = `${upBy} ${up.length} of ${counted(reports.length, 'host')}`;
  const message = [
    `${count}${told.length === 0 ? '' : `, ${told.slice(0, MOST_HOSTS).join('; ')}`}`,
    listed(whys),
  ];
  return {
    type,
    status: others.length === 0 ? 'True' : 'False',
    reason: others.length === 0 ? 'AllHosts' : up.length > 0 ? 'SomeHosts' : 'NoHosts',
    message: message.filter(Boolean).join('; ').slice(0, MAX_MESSAGE_CHARACTERS),
  };
}

/** `2/3`, for a column; '' if no host reports. */
export function upOf(reports: readonly HostReport[], now: number): string {
  if (reports.length === 0) return '';
  return `${reports.filter((each) => isUp(each, now)).length}/${reports.length}`;
}

/** With the time at which each condition got its status: that of the object if it has the same. */
export function conditionEntries(
  conditions: readonly Condition[],
  { conditions: before, generation }: CurrentReports,
  now: number,
): readonly object[] {
  return conditions.map((each) => {
    const last = before.get(each.type);
    const lastTransitionTime = last?.status === each.status ? last.since : new Date(now).toISOString();
    return { ...each, lastTransitionTime, observedGeneration: generation };
  });
}

function isUp({ state, reported }: HostReport, now: number): boolean {
  return state === 'Up' && now - reported < SILENT_MS;
}

function whyOf({ message, state, reported }: HostReport, now: number): string {
  if (now - reported >= SILENT_MS) return `it has not reported since ${new Date(reported).toISOString()}`;
  return message || state;
}

function listed(texts: readonly string[]): string {
  const shown = texts.slice(0, MOST_HOSTS).join('; ');
  return texts.length > MOST_HOSTS ? `${shown}; and ${texts.length - MOST_HOSTS} more hosts` : shown;
}
