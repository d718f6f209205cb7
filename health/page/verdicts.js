// How many load balancers have each verdict: a press shows only these, a second press all again.

/** @import { PageSummary, Verdict } from '../page-model.ts' */

import { byId, element, keyed, setText } from './elements.js';
import { count, outOf, UNSERVED } from './words.js';

const home = byId('verdicts');

/** '' for all; a verdict; `trouble`: all that are not well. */
let only = '';
/** @type {(only: string) => void} */
let choose = () => undefined;

/** @param {(only: string) => void} change */
export function onVerdict(change) {
  choose = change;
}

/** @param {string} chosen */
export function showOnly(chosen) {
  only = chosen;
  for (const button of home.children)
    if (button instanceof HTMLElement) button.ariaPressed = String(button.dataset.key === only);
}

/** @param {PageSummary['counts']} counts */
export function showVerdicts(counts) {
  /** @type {readonly { readonly key: string, readonly text: string }[]} */
  const choices = [
    { key: '', text: `all ${count(counts.served + outOf(counts))}` },
    { key: 'trouble', text: 'with problems' },
    ...[...UNSERVED, /** @type {Verdict} */ ('served')]
      .filter((verdict) => counts[verdict] > 0 || verdict === only)
      .map((verdict) => ({ key: verdict, text: `${verdict} ${count(counts[verdict])}` })),
  ];
  keyed(
    home,
    choices,
    ({ key }) => key,
    ({ key }) => {
      const button = element('button', { type: 'button', class: 'choice' });
      button.addEventListener('click', () => choose(only === key ? '' : key));
      return button;
    },
    (button, { text }) => setText(button, text),
  );
  showOnly(only);
}
