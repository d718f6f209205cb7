// Numbers and states as text. A state has a sign besides its colour.

/** @import { PageDetail, PageRow, PageSummary, Verdict } from '../page-model.ts' */
/** @import { OperatingStatus } from '../../agent/model/operating-status.ts' */

const whole = new Intl.NumberFormat('en');

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

const powers = new Intl.NumberFormat('en', { notation: 'scientific', maximumFractionDigits: 1 });

/** @param {string} digits A whole number of any size. */
export function large(digits) {
  return digits.length > 9 ? powers.format(Number(digits)).replace('E', ' × 10^') : count(Number(digits));
}

/**
 * @param {number} value
 * @param {string} one
 * @param {string} many
 */
export function countOf(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** @param {number} value */
export function percent(value) {
  return `${count(value)} %`;
}

/** @param {string} time ISO 8601, or '' */
export function moment(time) {
  if (time === '') return '';
  return new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

/**
 * Without the date if it is today.
 * @param {string} time ISO 8601 by the minute.
 */
export function minute(time) {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString('en-GB', { timeStyle: 'short', ...(isToday ? {} : { dateStyle: 'medium' }) });
}

/** @param {string} time ISO 8601 */
export function day(time) {
  return new Date(time).toLocaleDateString('en-GB', { dateStyle: 'medium' });
}

/** @param {number} value */
export function milliseconds(value) {
  return value >= 1_000 ? `${amount(value / 1_000)} s` : `${amount(value)} ms`;
}

const UNITS = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'];

/** @param {number} bytes In a second. */
export function bits(bytes) {
  const at = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes * 8)) / 3));
  return `${amount((bytes * 8) / 1_000 ** at)} ${UNITS[at]}`;
}

export const ROLES = {
  master: 'Master',
  backup: 'Backup',
  fault: 'Fault',
  unknown: 'Unknown',
  alone: 'Alone',
};

/** @type {readonly Verdict[]} The worst first. */
export const UNSERVED = ['not served', 'members fail', 'members down', 'served in part', 'no ready member'];

/** @param {PageSummary['counts']} counts */
export function outOf(counts) {
  return UNSERVED.reduce((sum, verdict) => sum + counts[verdict], 0);
}

/** @type {Readonly<Record<PageDetail['verdict'], readonly [tone: string, sign: string]>>} */
const VERDICTS = {
  served: ['good', '●'],
  'served in part': ['fair', '◐'],
  'no ready member': ['poor', '○'],
  'members down': ['poor', '✕'],
  'members fail': ['poor', '✕'],
  'not served': ['poor', '✕'],
  'not found': ['idle', '○'],
  'not ours': ['idle', '○'],
};

/** @type {Readonly<Record<OperatingStatus, readonly [tone: string, sign: string]>>} */
const MEMBERS = {
  ONLINE: ['good', '●'],
  NO_MONITOR: ['idle', '●'],
  DRAINING: ['fair', '◐'],
  OFFLINE: ['idle', '○'],
  ERROR: ['poor', '✕'],
  DEGRADED: ['fair', '◐'],
};

/** @type {Readonly<Record<string, readonly [tone: string, sign: string]>>} */
const ROUTERS = {
  master: ['good', '●'],
  backup: ['idle', '○'],
  fault: ['poor', '✕'],
};

/**
 * @param {HTMLElement} badge
 * @param {string} state Of VRRP; '' if it is unknown.
 */
export function showRouterState(badge, state) {
  const [tone, sign] = ROUTERS[state] ?? ['idle', '…'];
  showTone(badge, tone, `${sign} ${state || 'unknown'}`);
}

/**
 * @param {HTMLElement} badge
 * @param {PageDetail['verdict']} verdict
 * @param {boolean} isTroubled
 */
export function showVerdict(badge, verdict, isTroubled) {
  const [tone, sign] = verdict === 'served' && isTroubled ? ['fair', '!'] : VERDICTS[verdict];
  showTone(badge, tone, `${sign} ${verdict}`);
}

/**
 * @param {HTMLElement} badge
 * @param {OperatingStatus} state
 */
export function showMemberState(badge, state) {
  const [tone, sign] = MEMBERS[state];
  showTone(badge, tone, `${sign} ${state === 'NO_MONITOR' ? 'not known' : state}`);
}

/**
 * @param {HTMLElement} badge
 * @param {string} tone
 * @param {string} text
 */
export function showTone(badge, tone, text) {
  badge.className = 'state';
  badge.dataset.tone = tone;
  if (badge.textContent !== text) badge.textContent = text;
}

const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const units = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/**
 * A rate, or a number that may be unknown.
 * @param {number | undefined} value
 */
export function amount(value) {
  return value === undefined ? '–' : (value < 10 ? tenths : units).format(value);
}

/** @param {Pick<PageRow, 'ready' | 'down' | 'members'>} row */
export function membersOf({ ready, down, members }) {
  return `${count(ready)} of ${count(members)}${down > 0 ? `, ${count(down)} down` : ''}`;
}

/** @param {PageRow} row */
export function vipsOf({ vips, moreVips }) {
  return some(vips, moreVips) || 'no address';
}

/** @param {PageRow} row */
export function portsOf({ ports, morePorts, isOfKernel }) {
  const short = ports.map((port, at) =>
    protocolOf(port) === protocolOf(ports[at - 1]) ? numberOf(port) : port,
  );
  return some(short, morePorts) + (isOfKernel ? ' (kernel)' : '');
}

/** @param {string | undefined} port Such as `TCP 80`. */
function protocolOf(port) {
  return port?.split(' ')[0];
}

/** @param {string} port */
function numberOf(port) {
  return port.slice(port.indexOf(' ') + 1);
}

/**
 * @param {readonly string[]} texts
 * @param {number} more
 */
function some(texts, more) {
  return texts.join(', ') + (more > 0 ? ` and ${count(more)} more` : '');
}
