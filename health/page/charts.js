// Small charts: one series, a value a second, the newest at the right, from zero up to its own maximum, or to what it
// shows at least.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 32;

/**
 * @param {number} seconds How many values fit.
 * @param {number} full What it shows at least.
 * @returns {{ readonly svg: SVGElement, draw(values: readonly number[], words: string): void }}
 */
export function chart(seconds, full = 1) {
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
      const most = Math.max(full, ...shown);
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
