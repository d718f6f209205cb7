// What each host reports of its own in the status of an object, so that no host writes over another: an entry of a list by the
// name of the host, each of a field manager of its own. Pure.

import { isMapping, object, oneOf, type Rule, string, textRule, wholeNumber } from '../base/validate.ts';
import { time, uid } from './object-names.ts';

/** What a host says of an object. `Refused`: it cannot use it. */
export const HOST_STATES = ['Up', 'Down', 'Refused'] as const;

/** Kinds in whose status hosts report. */
export type ReportedKind = 'AddressPool' | 'BGPPeer';

export function isReportedKind(kind: string): kind is ReportedKind {
  return kind === 'AddressPool' || kind === 'BGPPeer';
}

export interface HostReport {
  /** The name of the host. */
  readonly host: string;
  readonly state: (typeof HOST_STATES)[number];
  /** In words; '' if there is nothing to say. */
  readonly message: string;
  /** When it got its state, and when the host has last written it; milliseconds since the epoch. */
  readonly since: number;
  readonly reported: number;
}

/** A host that has not written for so long is silent: it writes three times as often. */
export const SILENT_MS = 15 * 60_000;
export const RENEW_MS = 5 * 60_000;
/** After so long its entry is removed. */
export const GONE_MS = 60 * 60_000;

const MAX_MESSAGE_CHARACTERS = 512;

const report = object({
  name: textRule((text) => text.length <= 253, 'is not a name of a host'),
  state: oneOf(...HOST_STATES),
  message: string().or(''),
  since: time().or(0),
  reportedAt: time().or(0),
});

/** What the API has shown last of an object with reports. */
export interface CurrentReports {
  readonly uid: string;
  readonly generation: number;
  readonly reports: readonly HostReport[];
  /** Type of a condition → its status, and when it got it. */
  readonly conditions: ReadonlyMap<string, { readonly status: string; readonly since: string }>;
}

const condition = object({ type: string(), status: string(), lastTransitionTime: string() });
const identity = object({ uid: uid(), generation: wholeNumber(0, Number.MAX_SAFE_INTEGER).or(0) });

/** An entry that cannot be read, such as that of a newer agent, is as if it were not there. undefined without a UID. */
export function readReports(json: Readonly<Record<string, unknown>>): CurrentReports | undefined {
  const read = identity.judge(json.metadata);
  if (!read.success) return undefined;
  const { hosts, conditions } = isMapping(json.status) ? json.status : {};
  return {
    ...read.data,
    reports: readable(report, hosts).map(({ name: host, reportedAt: reported, ...rest }) => ({
      host,
      reported,
      ...rest,
    })),
    conditions: new Map(
      readable(condition, conditions).map(({ type, status, lastTransitionTime: since }) => [
        type,
        { status, since },
      ]),
    ),
  };
}

function readable<T>(rule: Rule<T>, list: unknown): readonly T[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((each) => {
    const judged = rule.judge(each);
    return judged.success ? [judged.data] : [];
  });
}

/** The schema of the list in a CustomResourceDefinition. */
export const HOSTS_OPEN_API = {
  type: 'array',
  maxItems: 1000,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  description: 'What each host reports. A host that is silent for 15 minutes does not count.',
  items: {
    type: 'object',
    required: ['name', 'state'],
    properties: {
      name: { type: 'string', maxLength: 253 },
      state: { type: 'string', enum: HOST_STATES },
      message: { type: 'string', maxLength: MAX_MESSAGE_CHARACTERS },
      since: { type: 'string', format: 'date-time' },
      reportedAt: { type: 'string', format: 'date-time' },
    },
  },
} as const;

export function entryOf({ host, state, message, since, reported }: HostReport): object {
  return {
    name: host,
    state,
    message: message.slice(0, MAX_MESSAGE_CHARACTERS),
    since: new Date(since).toISOString(),
    reportedAt: new Date(reported).toISOString(),
  };
}
