// The report that each agent of a pair sends to the other: one line of JSON. To text, and back from bytes of the peer,
// which are checked field by field.

import { parseAddress } from '../../base/ip.ts';
import { Lines } from '../../base/lines.ts';
import { parseJson } from '../../base/parse-json.ts';
import {
  boolean,
  isMapping,
  listOf,
  object,
  oneOf,
  Rule,
  textRule,
  type Valid,
  wholeNumber,
} from '../../base/validate.ts';
import type { Family } from '../../model/load-balancer.ts';
import { nothingReleased, scopeSchema } from '../../state/release-mark.ts';
import type { Roles } from '../roles.ts';

/** Bytes of one report with its line feed; no report comes near it. */
export const MAX_REPORT_BYTES = 4096;
/** More virtual routers than any pair has, and more reasons for a lower priority than there are. */
const MAX_ENTRIES = 16;

const token = text(/^([0-9a-f]{16})?$/);
const digest = text(/^([0-9a-f]{32})?$/);
/** More than a host names in one report. */
const tokens: Rule<readonly string[]> = listOf(text(/^[0-9a-f]{8}$/)).refine((list, refuse) => {
  if (list.length > 2 * MAX_ENTRIES) refuse([], 'is too long');
});
const count = wholeNumber(0, Number.MAX_SAFE_INTEGER);
const reasons: Rule<readonly string[]> = listOf(text(/^[a-z-]{1,40}$/)).refine((list, refuse) => {
  if (list.length > MAX_ENTRIES) refuse([], 'is too long');
});

const linkSchema = object({
  /** The Ethernet address of its interface; '' if unknown. */
  ether: text(/^(([0-9a-f]{2}:){5}[0-9a-f]{2})?$/).default(''),
  /** Its own addresses there, canonical; '' if it has none. */
  v4: address('v4').default(''),
  v6: address('v6').default(''),
});

/** The place of a host on the network of the VIPs. */
export type Link = Readonly<Valid<typeof linkSchema>>;

export const noLink: Link = { ether: '', v4: '', v6: '' };

/** Stands in a report for a number of connections that is not known yet. */
export const UNCOUNTED = -1;

const handoverSchema = object({
  /** This host can take over VIPs without cutting the peer's connections. */
  can: boolean().default(false),
  /** Whether it can has been found out: an agent that has just started may be slow to do so. */
  checked: boolean().default(true),
  /** This host can hand over VIPs without cutting its own connections. */
  gives: boolean().default(false),
  link: linkSchema.default(noLink),
  /** The order to hand over that this host carries out: 16 hex digits, '' for none. */
  asks: token.default(''),
  /** The peer's order for which this host is prepared. */
  ready: token.default(''),
  /** The request of this host for VIPs that the peer has: 16 hex digits, '' for none. */
  wants: token.default(''),
  /** How many connections to VIPs that it has handed over continue here. */
  left: wholeNumber(UNCOUNTED, Number.MAX_SAFE_INTEGER).default(0),
});

/** The part of a report that a planned failover needs. */
export type HandoverReport = Readonly<Valid<typeof handoverSchema>>;

export const noHandover: HandoverReport = handoverSchema.parse({});

const seenSchema = object({
  /** Canonical. */
  address: text(/^[0-9a-f.:]{2,45}$/),
  /** `none`: not announced. */
  worn: oneOf('first', 'last', 'none'),
  /** How many routers have it of this host, of how many. */
  count,
  of: count,
  /** The names of these routers. */
  routers: text(/^[a-z0-9., -]{0,100}$/),
  /** Why it is not announced as the first choice; '' if it is. */
  why: text(/^[ -~]{0,160}$/),
});

const vipsSchema = object({
  /** The VIP of which this host asks how others announce it; '' for none. */
  asks: text(/^[0-9a-f.:]{0,45}$/).default(''),
  answers: listOf(seenSchema)
    .refine((list, refuse) => {
      if (list.length > MAX_ENTRIES) refuse([], 'is too long');
    })
    .default([]),
});

/** The part of a report about how hosts announce single VIPs. */
export type VipsReport = Readonly<Valid<typeof vipsSchema>>;

export const noVips: VipsReport = vipsSchema.parse({});

const arrivalsSchema = object({
  /** This host moves clients away, and asks the others to count. */
  asks: boolean().default(false),
  /** New connections to VIPs since this host counts them; -1 if it does not. */
  count: wholeNumber(-1, Number.MAX_SAFE_INTEGER).default(-1),
});

/** The part of a report about new connections. */
export type ArrivalsReport = Readonly<Valid<typeof arrivalsSchema>>;

export const noArrivals: ArrivalsReport = arrivalsSchema.parse({});

const authSchema = object({
  level: oneOf('off', 'receive', 'sign', 'enforce'),
  wants: oneOf('off', 'receive', 'sign', 'enforce'),
  /** The names of the keys that it accepts. */
  keys: tokens,
  active: text(/^([0-9a-f]{8})?$/),
});

/** The part of a report about the authentication of advertisements. */
export type AuthReport = Readonly<Valid<typeof authSchema>>;

export const noAuthReport: AuthReport = { level: 'off', wants: 'off', keys: [], active: '' };

/**
 * A field without a default must be there. The default of a field that an agent of another version does not send is
 * what makes the peer the least ready.
 */
const reportSchema = object({
  /** The version of the agent that sends the report. */
  version: text(/^[0-9A-Za-z.+-]{1,64}$/).default('unknown'),
  /** A different one each time an agent starts: 16 hex digits. */
  instance: text(/^[0-9a-f]{16}$/),
  roles: byInstance(oneOf('master', 'backup', 'fault', 'unknown')),
  /** The current VRRP priorities. */
  priorities: byInstance(wholeNumber(0, 255)).default({}),
  /** Why this host's priority is lowered; empty if it is not. */
  lowered: reasons.default([]),
  /** All sources have been read. */
  synced: boolean().default(false),
  loadBalancers: count.default(0),
  /** How many load balancers HAProxy does not serve as desired yet. */
  pending: count.default(0),
  /** Digest of the desired state: 32 hex digits; '' if unknown. */
  model: digest.default(''),
  /** Digest of what HAProxy is proved to serve, equal to `model` if that is everything; '' if HAProxy does not answer. */
  running: digest.default(''),
  handover: handoverSchema.default(noHandover),
  /** What the host has begun to serve at its VIPs lately, the newest last; see Announced. */
  announced: tokens.default([]),
  /** How many load balancers are new there and are not served at its VIPs yet. */
  unannounced: count.default(1),
  vips: vipsSchema.default(noVips),
  arrivals: arrivalsSchema.default(noArrivals),
  /** Identifies the setting `hosts`, which must be the same on every host: 16 hex digits; '' without it. */
  hosts: token.default(''),
  /** A router has every VIP of this host. */
  announcesAll: boolean().default(false),
  /** How its keepalived authenticates advertisements. */
  vrrpAuth: authSchema.default(noAuthReport),
  /** What an operator has released. */
  released: scopeSchema.default(nothingReleased),
  /** BIRD of this host does not answer, or has just started: the host lives although others miss its BFD. */
  isBlind: boolean().default(false),
});

export type PairReport = Readonly<Valid<typeof reportSchema>>;

/** What the parts of a pair read of both hosts. */
export interface BothHosts {
  /** The roles of this host. */
  readonly roles: () => Roles;
  /** undefined without a recent report. */
  readonly peer: () => PairReport | undefined;
}

/** With its line feed. */
export function reportText(report: PairReport): string {
  return `${JSON.stringify(report)}\n`;
}

/** Cuts the bytes of the peer into reports. */
export class ReportReader {
  readonly #lines = new Lines(
    MAX_REPORT_BYTES,
    () => new Error(`The report is longer than ${MAX_REPORT_BYTES} bytes`),
  );

  /** The reports that end in this chunk. Throws if a line is too long or is not a report; read no further then. */
  *push(chunk: Uint8Array): Generator<PairReport, void, void> {
    for (const line of this.#lines.push(chunk)) {
      const report = parseReport(line);
      if (typeof report === 'string') throw new Error(`The line is not a report: ${report}`);
      yield report;
    }
  }
}

/** The report in a line, or a sentence that says what is wrong with it. Unknown fields are left out. */
export function parseReport(line: string): PairReport | string {
  const value = parseJson(line);
  if (value === undefined) return 'It is not JSON';
  if (!isMapping(value)) return 'It is not an object';
  const judgement = reportSchema.judge(value);
  if (judgement.success) return judgement.data;
  const field = String(judgement.faults[0]?.path[0]);
  return `Its ${field} cannot be ${(JSON.stringify(value[field]) ?? 'absent').slice(0, 80)}`;
}

function text(pattern: RegExp): Rule<string> {
  return textRule((value) => pattern.test(value), `is not a text like ${pattern.source}`);
}

function address(family: Family): Rule<string> {
  const isAddress = (value: string): boolean => {
    const parsed = parseAddress(value);
    return value === '' || (parsed?.family === family && parsed.address === value);
  };
  return textRule(isAddress, `is not a canonical IP${family} address`);
}

/** A mapping from the name of a VRRP instance. */
function byInstance<T>(rule: Rule<T>): Rule<Readonly<Record<string, T>>> {
  const isEntry = ([name, one]: readonly [string, unknown]): boolean =>
    /^[a-z0-9-]{1,32}$/.test(name) && rule.judge(one).success;
  return new Rule((value, faults) => {
    const entries = isMapping(value) ? Object.entries(value) : undefined;
    if (entries === undefined || entries.length > MAX_ENTRIES || !entries.every(isEntry))
      faults.push({ path: [], message: 'is not a value for each VRRP instance' });
    return value as Readonly<Record<string, T>>;
  });
}
