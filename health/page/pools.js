// The pools that the routes of a load balancer send to, each with a link to its members; and of a pool, who sends to it.

/** @import { PageDetail, PageRoutePool } from '../page-model.ts' */

import { element, keyed, setText } from './elements.js';
import { countOf, membersOf, showVerdict } from './words.js';

export function poolsElement() {
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col' }, 'Service behind its routes'),
    element('th', { scope: 'col' }, 'State'),
    element('th', { scope: 'col', class: 'ready' }, 'Ready members'),
  );
  return element(
    'section',
    { class: 'pools' },
    element('p', { class: 'users' }),
    element('table', {}, element('thead', {}, head), element('tbody')),
    element('p', { class: 'hint' }),
  );
}

/**
 * @param {HTMLElement} section Of poolsElement().
 * @param {Pick<PageDetail, 'pools' | 'morePools' | 'users'>} detail
 */
export function showPools(section, { pools, morePools, users }) {
  const [from, table, more] = section.children;
  const body = table?.querySelector('tbody');
  section.hidden = pools.length + users.length === 0;
  if (from instanceof HTMLElement) {
    from.hidden = users.length === 0;
    if (from.firstChild === null) from.append('Its clients come from routes of ', element('span'));
    const names = from.lastElementChild;
    if (names instanceof HTMLElement)
      keyed(
        names,
        users,
        (key) => key,
        (key) => element('span', {}, openLink(key, key), ' '),
        () => undefined,
      );
  }
  if (table instanceof HTMLElement) table.hidden = pools.length === 0;
  if (body instanceof HTMLElement) keyed(body, pools, ({ key }) => key, poolElement, updatePool);
  if (more instanceof HTMLElement) {
    more.hidden = morePools === 0;
    setText(more, `And ${countOf(morePools, 'more Service')}: headgate list --pools lists all of them.`);
  }
}

/** @param {PageRoutePool} pool */
function poolElement({ key, service }) {
  return element(
    'tr',
    {},
    element('td', {}, openLink(key, service), ' ', element('span', { class: 'problem-mark' })),
    element('td', {}, element('span')),
    element('td', { class: 'ready' }),
  );
}

/**
 * @param {HTMLElement} row
 * @param {PageRoutePool} pool
 */
function updatePool(row, pool) {
  const { verdict, down, problems } = pool;
  const [name, state, members] = row.children;
  const [mark, badge] = [name?.lastElementChild, state?.firstElementChild];
  if (mark) setText(mark, problems > 0 ? countOf(problems, 'problem') : '');
  if (badge instanceof HTMLElement) showVerdict(badge, verdict, down + problems > 0);
  if (members) setText(members, membersOf(pool));
}

/**
 * @param {string} key
 * @param {string} text
 */
function openLink(key, text) {
  return element('a', { href: `#${new URLSearchParams({ open: key })}` }, text);
}
