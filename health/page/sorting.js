// The heads of the list: which column sorts it, and how. A head that is pressed sorts by its column, once more the other
// way, and then as before: the worst first.

/** @import { PageColumn } from '../page-model.ts' */

import { byId } from './elements.js';

/**
 * The first order of a column; `-`: from the greatest down.
 * @type {Readonly<Record<PageColumn, string>>}
 */
const FIRST = { name: 'name', members: '-members', open: '-open', rate: '-rate', state: '-state' };
const WORST_FIRST = FIRST.state;

/** @type {readonly HTMLElement[]} */
const heads = [...byId('heads').querySelectorAll('th')].filter(({ dataset }) => dataset.column !== undefined);

/**
 * @param {(sort: string) => void} change '' for the worst first.
 */
export function onSorting(change) {
  for (const head of heads) head.querySelector('button')?.addEventListener('click', () => change(next(head)));
}

/**
 * @param {string} sort
 */
export function showSorting(sort) {
  const shown = Object.keys(FIRST).includes(sort.replace('-', '')) ? sort : WORST_FIRST;
  const order = shown.startsWith('-') ? 'descending' : 'ascending';
  for (const head of heads) {
    const isSorting = shown.replace('-', '') === head.dataset.column;
    head.setAttribute('aria-sort', isSorting ? order : 'none');
    head.dataset.sort = isSorting ? shown : '';
  }
}

/** @param {HTMLElement} head */
function next({ dataset: { column, sort } }) {
  const first = FIRST[/** @type {PageColumn} */ (column)];
  const isFirst = sort === first;
  if (isFirst) return first.startsWith('-') ? first.slice(1) : `-${first}`;
  return sort === '' && first !== WORST_FIRST ? first : '';
}
