// The lower part of the page: one page of the load balancers, and one load balancer in detail.

/** @import { PageDetail, PageList, PageListener, PageMember, PageRow } from '../page-model.ts' */

import { chart } from './charts.js';
import { byId, element, keyed, setText } from './elements.js';
import { count, countOf, membersOf, showMemberState, showVerdict, some, vipsOf } from './words.js';

/** Of the chart of one load balancer, which begins when it is opened. */
const SECONDS = 60;

const rows = byId('rows');
const drawn = chart(SECONDS);
const parts = {
  verdict: element('p'),
  badge: element('span'),
  reasons: element('ul', { class: 'reasons' }),
  rate: element('h3'),
  listeners: element('div'),
  more: element('p', { class: 'hint' }),
};
const detail = element('div', { class: 'detail', id: 'detail', role: 'region' });
parts.verdict.append(parts.badge, document.createTextNode(''));

/** @type {number[]} */
let rates = [];
let open = '';
/** The page was opened with this load balancer, which is not in view yet. */
let isToBeShown = false;
/** @type {PageDetail | undefined} */
let shown;

/**
 * @param {PageList} list
 * @param {(key: string) => void} toggle
 */
export function showList({ rows: items, found, page, pages }, toggle) {
  keyed(
    rows,
    items,
    ({ key }) => key,
    ({ key }) => rowElement(() => toggle(key)),
    updateRow,
  );
  setText(byId('found'), count(found));
  byId('none').hidden = found > 0;
  byId('pages').hidden = pages === 1;
  setText(byId('page-number'), `Page ${count(page)} of ${count(pages)}`);
  /** @type {HTMLButtonElement} */ (byId('previous')).disabled = page === 1;
  /** @type {HTMLButtonElement} */ (byId('next')).disabled = page === pages;
  placeDetail();
  bringIntoView();
}

/** @param {() => void} onClick */
function rowElement(onClick) {
  const cells = ['name', 'vips', 'ports', 'members'].map((name) => element('span', { class: name }));
  const verdict = element('span', { class: 'verdict' }, element('span', { class: 'state' }));
  const button = element(
    'button',
    { class: 'row', type: 'button', 'aria-expanded': 'false' },
    ...cells,
    verdict,
  );
  button.addEventListener('click', onClick);
  return element('li', {}, button);
}

/**
 * @param {HTMLElement} item
 * @param {PageRow} row
 */
function updateRow(item, row) {
  const [button] = item.children;
  const [name, vips, ports, members, verdict] = button?.children ?? [];
  const badge = verdict?.firstElementChild;
  if (name) setText(name, row.key);
  if (vips) setText(vips, vipsOf(row));
  if (ports) setText(ports, some(row.ports, row.morePorts));
  if (members) setText(members, membersOf(row));
  if (badge instanceof HTMLElement) showVerdict(badge, row.verdict, row.down + row.problems > 0);
}

/**
 * Opens a load balancer, or none: ''.
 * @param {string} key
 * @param {boolean} isByLink It may be out of view.
 */
export function openDetail(key, isByLink) {
  isToBeShown = isByLink && key !== '';
  if (open === key) return;
  open = key;
  shown = undefined;
  rates = [];
  detail.replaceChildren(element('p', { class: 'hint' }, 'Reading'));
  placeDetail();
}

/** Below its row, or above the list if its row is on another page. */
function placeDetail() {
  let home = byId('detail-home');
  for (const item of rows.children) {
    if (!(item instanceof HTMLElement)) continue;
    const isOpen = open !== '' && item.dataset.key === open;
    item.firstElementChild?.setAttribute('aria-expanded', String(isOpen));
    if (isOpen) home = item;
  }
  detail.setAttribute('aria-label', `Load balancer ${open}`);
  if (open === '') detail.remove();
  else if (detail.parentElement !== home) home.append(detail);
}

/** @param {PageDetail | null} next */
export function showDetail(next) {
  if (next === null || next.key !== open) return;
  const isFirst = shown === undefined;
  shown = next;
  const { key, verdict, reasons, vips, listeners, moreListeners, moreMembers } = next;
  if (isFirst)
    detail.replaceChildren(parts.verdict, parts.reasons, parts.rate, drawn.svg, parts.listeners, parts.more);
  const isFailing = listeners.some(({ members }) => members.some(({ state }) => state === 'ERROR'));
  showVerdict(parts.badge, verdict, reasons.length > 0 || isFailing);
  if (parts.verdict.lastChild)
    setText(parts.verdict.lastChild, ` ${key}${vips.length > 0 ? ` on ${vips.join(', ')}` : ''}`);
  parts.reasons.hidden = reasons.length === 0;
  keyed(
    parts.reasons,
    reasons.map((reason, at) => ({ reason, at })),
    ({ at }) => String(at),
    () => element('li'),
    (item, { reason }) => setText(item, reason),
  );
  keyed(parts.listeners, listeners, ({ name }) => name, listenerElement, updateListener);
  const left = [
    moreListeners > 0 ? countOf(moreListeners, 'more listener') : '',
    moreMembers > 0 ? countOf(moreMembers, 'more member') : '',
  ].filter(Boolean);
  parts.more.hidden = left.length === 0;
  setText(parts.more, `Not shown: ${left.join(', ')}. headgate why ${key} lists all of them.`);
  rates = [...rates.slice(0, -1), rateOf(next)];
  drawRates();
  bringIntoView();
}

/** Once, when the list and the details are there: before that the place of the load balancer moves. */
function bringIntoView() {
  if (!isToBeShown || shown === undefined || rows.childElementCount === 0) return;
  isToBeShown = false;
  (detail.closest('li') ?? detail).scrollIntoView();
}

/** Called once a second, because the agent sends changes only. */
export function sample() {
  if (shown === undefined) return;
  rates = [...rates.slice(1 - SECONDS), rateOf(shown)];
  drawRates();
}

/** @param {PageDetail} detail */
function rateOf({ listeners }) {
  return listeners.reduce((sum, { sessionRate = 0 }) => sum + sessionRate, 0);
}

function drawRates() {
  const [now, most] = [rates.at(-1) ?? 0, Math.max(0, ...rates)];
  const words = `New sessions per second: ${count(now)} now, at most ${count(most)} since it was opened`;
  setText(parts.rate, words);
  drawn.draw(rates, words);
}

function listenerElement() {
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col' }, 'Member'),
    element('th', { scope: 'col' }, 'State'),
    element('th', { scope: 'col', class: 'number' }, 'Sessions'),
    element('th', { scope: 'col', class: 'number rate' }, 'New/s'),
  );
  const table = element('table', {}, element('thead', {}, head), element('tbody'));
  return element('section', {}, element('h3', {}, element('b'), ' ', element('span')), table);
}

/**
 * @param {HTMLElement} section
 * @param {PageListener} listener
 */
function updateListener(section, { name, protocol, port, addresses, sessions, members }) {
  const [title, about] = section.querySelectorAll('h3 > *');
  const body = section.querySelector('tbody');
  const table = section.querySelector('table');
  if (title) setText(title, `${protocol} ${port}`);
  const state = sessions === undefined ? 'HAProxy does not serve it' : countOf(sessions, 'open session');
  if (about) setText(about, `on ${addresses.join(', ') || 'no address'}, ${state}`);
  if (table instanceof HTMLElement) {
    table.setAttribute('aria-label', `Members of ${name}`);
    table.hidden = members.length === 0;
  }
  if (body instanceof HTMLElement) keyed(body, members, (each) => each.name, memberElement, updateMember);
}

function memberElement() {
  return element(
    'tr',
    {},
    element('td', {}, element('span'), element('small')),
    element('td', {}, element('span'), element('small')),
    element('td', { class: 'number' }),
    element('td', { class: 'number rate' }),
  );
}

/**
 * @param {HTMLElement} row
 * @param {PageMember} member
 */
function updateMember(row, { name, target, state, why, sessions, sessionRate }) {
  const [member, standing, now, rate] = row.children;
  const [address, behind] = member?.children ?? [];
  const [badge, reason] = standing?.children ?? [];
  if (address) setText(address, name);
  if (behind) setText(behind, target);
  if (badge instanceof HTMLElement) showMemberState(badge, state);
  if (reason) setText(reason, why);
  if (now) setText(now, count(sessions));
  if (rate) setText(rate, count(sessionRate));
}
