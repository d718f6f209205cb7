// The charts of the open load balancer: the values that the agent has from before it was opened, then one for each second.

/** @import { PageDetail } from '../page-model.ts' */

import { chart, SECONDS } from './charts.js';
import { element } from './elements.js';
import { amount } from './words.js';

const SERIES = /** @type {const} */ ([
  { of: 'rate', drawn: chart('New connections per second', amount) },
  { of: 'open', drawn: chart('Open connections', amount) },
]);

export const charts = element('div', { class: 'charts' }, ...SERIES.map(({ drawn }) => drawn.figure));

/** @type {Record<'rate' | 'open', number[]>} */
const values = { rate: [], open: [] };

/** @param {PageDetail} detail Of a load balancer that has just been opened. */
export function begin(detail) {
  const { seconds } = detail.history;
  for (const { of } of SERIES)
    values[of] = detail.history[of].flatMap((value) => Array.from({ length: seconds }, () => value));
  add(detail);
}

/** @param {PageDetail} detail Of this second. */
export function add(detail) {
  for (const { of } of SERIES) values[of].push(detail[of] ?? 0);
  draw(detail);
}

/** @param {PageDetail} detail It has changed within this second. */
export function change(detail) {
  for (const { of } of SERIES) values[of].splice(-1, 1, detail[of] ?? 0);
  draw(detail);
}

/** @param {PageDetail} detail */
function draw(detail) {
  for (const { of, drawn } of SERIES) {
    values[of] = values[of].slice(-SECONDS);
    drawn.figure.hidden = detail[of] === undefined;
    drawn.draw(values[of]);
  }
}
