// The lower part of the page: one page of the load balancers, and one load balancer in detail.

/** @import { PageDetail, PageList, PageListener, PageMember, PageRow } from '../page-model.ts' */

import { drawSmall, historyCharts, smallChart } from './charts.js';
import { byId, element, keyed, link, setText } from './elements.js';
import { poolsElement, showPools } from './pools.js';
import { showInside } from './routes.js';
import { amount, count, countOf, membersOf, portsOf, showMemberState, showVerdict, vipsOf } from './words.js';

/** The classes of the cells of a row. */
const COLUMNS = ['name', 'vips', 'ports', 'members', 'number open', 'number rate', 'small', 'verdict'];

const rows = byId('rows');
const parts = {
  verdict: element('p'),
  badge: element('span'),
  reasons: element('ul', { class: 'reasons' }),
  dashboard: element('p'),
  charts: element('div', { class: 'charts' }),
  listeners: element('div'),
  pools: poolsElement(),
  more: element('p', { class: 'hint' }),
};
const detail = element('div', { class: 'detail', id: 'detail', role: 'region' });
/** The place of the details in the list. */
const cell = element('td', { colspan: String(COLUMNS.length) });
const detailRow = element('tr', { class: 'opened' }, cell);
const charts = historyCharts();
parts.charts.append(...charts.figures);
parts.verdict.append(parts.badge, document.createTextNode(''));

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
  const cells = COLUMNS.map((name) => element('td', { class: name }));
  cells
    .at(0)
    ?.append(
      element('button', { type: 'button', class: 'key', 'aria-expanded': 'false' }),
      element('span', { class: 'problem-mark' }),
    );
  cells.at(-2)?.append(smallChart());
  cells.at(-1)?.append(element('span', { class: 'state' }));
  const row = element('tr', { class: 'row' }, ...cells);
  // Also by the button.
  row.addEventListener('click', onClick);
  return element('tbody', { class: 'item' }, row);
}

/**
 * @param {HTMLElement} item
 * @param {PageRow} row
 */
function updateRow(item, row) {
  const [cells] = item.children;
  const [name, vips, ports, members, open, rate, small, verdict] = cells?.children ?? [];
  const [button, mark] = name?.children ?? [];
  const [line, badge] = [small?.firstElementChild, verdict?.firstElementChild];
  if (button) setText(button, row.key);
  if (mark) setText(mark, row.problems > 0 ? countOf(row.problems, 'problem') : '');
  if (vips) setLine(vips, vipsOf(row));
  if (ports) setLine(ports, portsOf(row));
  if (line) drawSmall(line, row.rates);
  if (members) setText(members, membersOf(row));
  if (open) setText(open, amount(row.open));
  if (rate) setText(rate, amount(row.rate));
  if (badge instanceof HTMLElement) showVerdict(badge, row.verdict, row.down + row.problems > 0);
}

/**
 * A text that may be cut at the end of its cell.
 * @param {Element} cell
 * @param {string} text
 */
function setLine(cell, text) {
  setText(cell, text);
  if (cell.getAttribute('title') !== text) cell.setAttribute('title', text);
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
  detail.replaceChildren(element('p', { class: 'hint' }, 'Reading'));
  placeDetail();
}

/** Below its row, or above the list if its row is on another page. */
function placeDetail() {
  /** @type {HTMLElement | undefined} */
  let home;
  for (const item of rows.querySelectorAll('.item')) {
    if (!(item instanceof HTMLElement)) continue;
    const isOpen = open !== '' && item.dataset.key === open;
    item.toggleAttribute('data-open', isOpen);
    item.querySelector('button')?.setAttribute('aria-expanded', String(isOpen));
    if (isOpen) home = item;
  }
  detail.setAttribute('aria-label', `Load balancer ${open}`);
  const place = home === undefined ? byId('detail-home') : cell;
  if (open === '') detail.remove();
  else if (detail.parentElement !== place) place.append(detail);
  if (home === undefined) detailRow.remove();
  else if (detailRow.parentElement !== home) home.append(detailRow);
}

/** @param {PageDetail | null} next */
export function showDetail(next) {
  if (next === null || next.key !== open) return;
  const isFirst = shown === undefined;
  shown = next;
  const { key, verdict, reasons, vips, listeners, moreListeners, moreMembers } = next;
  if (isFirst)
    detail.replaceChildren(
      parts.verdict,
      parts.dashboard,
      parts.reasons,
      parts.charts,
      parts.listeners,
      parts.pools,
      parts.more,
    );
  parts.dashboard.hidden = next.dashboard === '';
  if (isFirst) parts.dashboard.replaceChildren(link(next.dashboard, 'Dashboard of this load balancer'));
  parts.charts.hidden = listeners.length === 0;
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
  showPools(parts.pools, next);
  keyed(parts.listeners, listeners, ({ name }) => name, listenerElement, updateListener);
  const left = [
    moreListeners > 0 ? countOf(moreListeners, 'more listener') : '',
    moreMembers > 0 ? countOf(moreMembers, 'more member') : '',
  ].filter(Boolean);
  parts.more.hidden = left.length === 0;
  setText(parts.more, `Not shown: ${left.join(', ')}. headgate why ${key} lists all of them.`);
  charts.draw(next.history);
  bringIntoView();
}

/** Once, when the list and the details are there: before that the place of the load balancer moves. */
function bringIntoView() {
  if (!isToBeShown || shown === undefined || rows.querySelector('.item') === null) return;
  isToBeShown = false;
  (detail.closest('.item') ?? detail).scrollIntoView();
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
  const title = element('h3', {}, element('b'), ' ', element('span'));
  return element('section', {}, title, element('div', { class: 'inside' }), table);
}

/**
 * @param {HTMLElement} section
 * @param {PageListener} listener
 */
function updateListener(section, listener) {
  const { name, protocol, port, addresses, members } = listener;
  const [title, about] = section.querySelectorAll('h3 > *');
  const body = section.querySelector('tbody');
  const table = section.querySelector('table');
  const inside = section.querySelector('.inside');
  if (inside instanceof HTMLElement) showInside(inside, listener);
  if (title) setText(title, `${protocol} ${port}`);
  if (about) setText(about, `${placeOf(addresses)}, ${stateOf(listener)}`);
  if (table instanceof HTMLElement) {
    table.setAttribute('aria-label', `Members of ${name}`);
    table.hidden = members.length === 0;
  }
  if (body instanceof HTMLElement) keyed(body, members, (each) => each.name, memberElement, updateMember);
}

/** @param {readonly string[]} addresses A pool of routes has none. */
function placeOf(addresses) {
  if (addresses.length > 0) return `on ${addresses.join(', ')}`;
  return open.startsWith('pool:') ? 'behind routes' : 'on no address';
}

/** @param {PageListener} listener */
function stateOf({ engine, isServed, sessions }) {
  const who = engine === 'kernel' ? 'the kernel' : 'HAProxy';
  if (!isServed) return `${who} does not serve it`;
  return sessions === undefined ? `by ${who}` : `by ${who}, ${countOf(sessions, 'open session')}`;
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
  if (now) setText(now, amount(sessions));
  if (rate) setText(rate, amount(sessionRate));
}
