// The problems of the page, by their reason.

/** @import { PageProblem, PageProblems } from '../page-model.ts' */

import { byId, element, keyed, setText } from './elements.js';
import { count } from './words.js';

/** Reasons that stand open; the others are folded. */
const MAX_OPEN = 5;

/**
 * A reason is folded as soon as more than one problem has it.
 * @param {readonly PageProblems[]} groups
 * @param {number} all
 */
export function showProblems(groups, all) {
  byId('problems-section').hidden = all === 0;
  setText(byId('problem-count'), count(all));
  keyed(
    byId('problems'),
    groups.map((group, at) => ({ ...group, at })),
    ({ reason }) => reason,
    ({ count: number, at }) => reasonElement(number === 1 && at < MAX_OPEN),
    (item, { reason, count: number, shown }) => {
      const [details] = item.children;
      const [summary, list, more] = details?.children ?? [];
      const [code, title] = summary?.children ?? [];
      if (code) setText(code, reason);
      if (title) setText(title, number === 1 ? '' : ` ${count(number)} times`);
      if (list instanceof HTMLElement) showOfReason(list, shown);
      if (more instanceof HTMLElement) {
        more.hidden = number === shown.length;
        setText(more, `And ${count(number - shown.length)} more: headgate status lists all of them.`);
      }
    },
  );
  const left = all - groups.reduce((sum, group) => sum + group.count, 0);
  byId('more-problems').hidden = left === 0;
  setText(byId('more-problems'), `And ${count(left)} of other reasons: headgate status lists all of them.`);
}

/** @param {boolean} isOpen */
function reasonElement(isOpen) {
  const summary = element('summary', {}, element('code'), element('span'));
  const more = element('p', { class: 'hint' });
  const details = element('details', { open: isOpen ? '' : undefined }, summary, element('ul'), more);
  return element('li', {}, details);
}

/**
 * @param {HTMLElement} list
 * @param {readonly PageProblem[]} problems
 */
function showOfReason(list, problems) {
  keyed(
    list,
    // Two problems may have the same text.
    problems.map((problem, at) => ({ ...problem, at })),
    ({ at, key }) => `${at} ${key}`,
    ({ key }) => {
      const href = key === '' ? undefined : `#${new URLSearchParams({ open: key })}`;
      return element('li', {}, element(href === undefined ? 'strong' : 'a', { href }), element('p'));
    },
    (item, { object, message }) => {
      const [name, paragraph] = item.children;
      if (name) setText(name, object);
      if (paragraph) setText(paragraph, message);
    },
  );
}
