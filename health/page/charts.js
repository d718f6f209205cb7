// A figure with a small chart of one series: one value per second of the last two minutes, the newest at the right, from 0 to
// the maximum of the series or to a minimum scale.

import { element, setText } from './elements.js';

/** The agent keeps as many values of all load balancers together. */
export const SECONDS = 120;
const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 32;

/**
 * @param {string} title
 * @param {(value: number) => string} words Of a value.
 * @param {number} [scale] The least value at the top.
 * @returns {{ readonly figure: HTMLElement, draw(values: readonly number[]): void }}
 */
export function chart(title, words, scale = 1) {
  const now = element('b', {}, '–');
  const most = element('span');
  const { svg, draw } = drawing(scale);
  const figure = element('figure', {}, element('figcaption', {}, title, now, most), svg);
  return {
    figure,
    draw(values) {
      const last = words(values.at(-1) ?? 0);
      const top = words(Math.max(0, ...values));
      setText(now, last);
      setText(most, `at most ${top}`);
      draw(values);
      svg.setAttribute('aria-label', `${title}: ${last} now, at most ${top} in the last two minutes`);
    },
  };
}

/**
 * @param {number} scale
 * @returns {{ readonly svg: SVGElement, draw(values: readonly number[]): void }}
 */
function drawing(scale) {
  const svg = shape('svg', {
    class: 'chart',
    viewBox: `0 0 ${SECONDS - 1} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
  });
  const area = shape('path', { class: 'area' });
  const line = shape('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  const ground = shape('path', {
    class: 'ground',
    'vector-effect': 'non-scaling-stroke',
    d: `M0 ${HEIGHT}H${SECONDS - 1}`,
  });
  svg.append(ground, area, line);
  return {
    svg,
    draw(values) {
      const shown = values.slice(-SECONDS);
      const first = SECONDS - shown.length;
      const most = Math.max(scale, ...shown);
      const points = shown.map((value, at) => {
        const y = HEIGHT - (value / most) * (HEIGHT - 2);
        return `${first + at} ${y.toFixed(2)}`;
      });
      const path = points.length === 0 ? '' : `M${points.join('L')}`;
      line.setAttribute('d', path);
      area.setAttribute('d', path && `${path}V${HEIGHT}H${first}Z`);
    },
  };
}

/**
 * @param {string} name
 * @param {Readonly<Record<string, string>>} attributes
 */
function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return /** @type {SVGElement} */ (made);
}
