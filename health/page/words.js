// Numbers and states in words. A state has a sign beside its colour.

/** @import { MemberState, PageDetail, PageRow } from '../page-model.ts' */

const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

/**
 * @param {number} value
 * @param {string} one
 * @param {string} many
 */
export function countOf(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** @param {number} value In a second. */
export function bytes(value) {
  const units = ['B/s', 'kB/s', 'MB/s', 'GB/s'];
  const step = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return `${short.format(value / 1000 ** step)} ${units[step]}`;
}

/** @param {string} time ISO 8601, or '' */
export function moment(time) {
  if (time === '') return '';
  return new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

/** @type {Readonly<Record<PageDetail['verdict'], readonly [tone: string, sign: string]>>} */
const VERDICTS = {
  served: ['good', '●'],
  'served in part': ['fair', '◐'],
  'not served': ['poor', '✕'],
  'not found': ['idle', '○'],
  'not ours': ['idle', '○'],
};

/** @type {Readonly<Record<MemberState, readonly [tone: string, sign: string]>>} */
const MEMBERS = {
  ONLINE: ['good', '●'],
  NO_MONITOR: ['good', '●'],
  DRAINING: ['fair', '◐'],
  OFFLINE: ['idle', '○'],
  ERROR: ['poor', '✕'],
  PENDING: ['idle', '…'],
};

/**
 * @param {HTMLElement} badge
 * @param {PageDetail['verdict']} verdict
 * @param {number} problems
 */
export function showVerdict(badge, verdict, problems = 0) {
  const [tone, sign] = verdict === 'served' && problems > 0 ? ['fair', '!'] : VERDICTS[verdict];
  show(badge, tone, `${sign} ${verdict}`);
}

/**
 * @param {HTMLElement} badge
 * @param {MemberState} state
 */
export function showMemberState(badge, state) {
  const [tone, sign] = MEMBERS[state];
  show(badge, tone, `${sign} ${state}`);
}

/**
 * @param {HTMLElement} badge
 * @param {string} tone
 * @param {string} text
 */
function show(badge, tone, text) {
  badge.className = 'state';
  badge.dataset.tone = tone;
  if (badge.textContent !== text) badge.textContent = text;
}

/** @param {PageRow} row */
export function membersOf({ ready, members, problems }) {
  const words = `${count(ready)} of ${countOf(members, 'member')}`;
  return problems === 0 ? words : `${words}, ${countOf(problems, 'problem')}`;
}

/** @param {PageRow} row */
export function vipsOf({ vips, moreVips }) {
  return some(vips, moreVips) || 'no address';
}

/**
 * @param {readonly string[]} texts
 * @param {number} more
 */
export function some(texts, more) {
  return texts.join(', ') + (more > 0 ? ` and ${count(more)} more` : '');
}
