// The problems of the page, by their reason.

/** @import { PageProblem, PageSummary } from '../page-model.ts' */

import { byId, element, keyed, setText } from './elements.js';
import { count, countOf } from './words.js';

/** Reasons that stand open; the others are folded. */
const MAX_OPEN = 5;

/**
 * A reason stands open if it is of a load balancer that is not fully served, or if all its problems have one text.
 * @param {Pick<PageSummary, 'problems' | 'problemCount' | 'problemObjects'>} summary
 */
export function showProblems({ problems: groups, problemCount: all, problemObjects }) {
  byId('problems-section').hidden = all === 0;
  setText(byId('problem-count'), `${count(all)}, of ${countOf(problemObjects, 'object')}`);
  keyed(
    byId('problems'),
    groups.map((group, at) => ({ ...group, at })),
    ({ reason }) => reason,
    ({ isGrave, shown, at }) => reasonElement((isGrave || shown.length === 1) && at < MAX_OPEN),
    (item, { reason, count: number, isGrave, shown, covered }) => {
      item.toggleAttribute('data-grave', isGrave);
      const [details] = item.children;
      const [summary, list, more] = details?.children ?? [];
      const [title, code] = summary?.children ?? [];
      if (title) setText(title, shown[0]?.message ?? '');
      if (code) setText(code, number === 1 ? reason : `${reason}, ${count(number)} times`);
      if (list instanceof HTMLElement) showOfReason(list, shown.length > 1 ? shown : shown.map(asTitle));
      if (more instanceof HTMLElement) {
        more.hidden = number === covered;
        setText(more, `And ${count(number - covered)} more: headgate status lists all of them.`);
      }
    },
  );
  const left = all - groups.reduce((sum, group) => sum + group.count, 0);
  byId('more-problems').hidden = left === 0;
  setText(byId('more-problems'), `And ${count(left)} of other reasons: headgate status lists all of them.`);
}

/**
 * The only text of a reason is its title already.
 * @param {PageProblem} problem
 */
function asTitle(problem) {
  return { ...problem, message: '' };
}

/** @param {boolean} isOpen */
function reasonElement(isOpen) {
  const summary = element('summary', {}, element('span'), ' ', element('code'));
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
    (item, { object, message, times }) => {
      const [name, paragraph] = item.children;
      if (name) setText(name, times === 1 ? object : `${object} and ${count(times - 1)} more`);
      if (paragraph) setText(paragraph, message);
    },
  );
}
