// Small charts of one series: one value per second, the newest at the right, from 0 to the maximum of the series or to a
// minimum scale.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 32;

/**
 * @param {number} seconds The number of values that fit.
 * @param {number} scale The least value at the top.
 * @returns {{ readonly svg: SVGElement, draw(values: readonly number[], words: string): void }}
 */
export function chart(seconds, scale = 1) {
  const svg = shape('svg', {
    class: 'chart',
    viewBox: `0 0 ${seconds - 1} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
  });
  const area = shape('path', { class: 'area' });
  const line = shape('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  const ground = shape('path', {
    class: 'ground',
    'vector-effect': 'non-scaling-stroke',
    d: `M0 ${HEIGHT}H${seconds - 1}`,
  });
  svg.append(ground, area, line);
  return {
    svg,
    draw(values, words) {
      const shown = values.slice(-seconds);
      const first = seconds - shown.length;
      const most = Math.max(scale, ...shown);
      const points = shown.map((value, at) => {
        const y = HEIGHT - (value / most) * (HEIGHT - 2);
        return `${first + at} ${y.toFixed(2)}`;
      });
      const path = points.length === 0 ? '' : `M${points.join('L')}`;
      line.setAttribute('d', path);
      area.setAttribute('d', path && `${path}V${HEIGHT}H${first}Z`);
      svg.setAttribute('aria-label', words);
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
