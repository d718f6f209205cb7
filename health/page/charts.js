// Charts of the last two minutes, drawn by uPlot: the newest value at the right, a scale at the left, and the values under
// the pointer in all charts of a group at once.

/** @import { PageHistory } from '../page-model.ts' */

import { element, setText } from './elements.js';
import uPlot from './uPlot.esm.js';
import { amount, bits, milliseconds } from './words.js';

/** The agent keeps as many values of all load balancers together. */
const SECONDS = 120;
const HEIGHT = 120;

/**
 * @typedef {{ readonly of: Exclude<keyof PageHistory, 'seconds'>, readonly label: string, readonly colour: string }} Line
 * `colour`: the name of a custom property of the style sheet.
 * @typedef {{ readonly title: string, readonly lines: readonly Line[], readonly words: (value: number) => string }} Kind
 * @typedef {readonly (number | null)[]} Values
 * @typedef {{ readonly figure: HTMLElement, draw(values: readonly Values[], seconds: number): void }} Chart
 */

/** @type {readonly Kind[]} */
export const KINDS = [
  {
    title: 'New connections per second',
    lines: [{ of: 'rate', label: '', colour: '--accent' }],
    words: amount,
  },
  { title: 'Open connections', lines: [{ of: 'open', label: '', colour: '--accent' }], words: amount },
  {
    title: 'Errors per second',
    lines: [
      { of: 'errors', label: 'to clients', colour: '--poor' },
      { of: 'retries', label: 'retried', colour: '--fair' },
    ],
    words: amount,
  },
  { title: 'Time to answer', lines: [{ of: 'latency', label: '', colour: '--accent' }], words: milliseconds },
  {
    title: 'Traffic',
    lines: [
      { of: 'bytesOut', label: 'out', colour: '--accent' },
      { of: 'bytesIn', label: 'in', colour: '--second' },
    ],
    words: bits,
  },
];

/** Charts of a history, those without any known value hidden as soon as others have some. */
export function historyCharts() {
  const group = uPlot.sync(`group-${++groups}`);
  const charts = KINDS.map((kind) => ({ kind, drawn: chart(kind, group) }));
  return {
    figures: charts.map(({ drawn }) => drawn.figure),
    /** @param {PageHistory} history */
    draw(history) {
      for (const { kind, drawn } of charts) {
        const values = kind.lines.map(({ of }) => history[of]);
        drawn.figure.hidden = !history.rate.every(isUnknown) && values.every((each) => each.every(isUnknown));
        drawn.draw(values, history.seconds);
      }
    },
  };
}

let groups = 0;

/** @param {number | null} value */
function isUnknown(value) {
  return value === null;
}

/**
 * @param {Pick<Kind, 'title' | 'words'> & { readonly lines: readonly Omit<Line, 'of'>[] }} kind
 * @param {uPlot.SyncPubSub} [group] The pointer is shown in all charts of a group.
 * @param {number} [least] The least value at the top of the scale, so that small values look small.
 * @returns {Chart}
 */
export function chart({ title, lines, words }, group, least = 1) {
  const now = element('b', {}, '–');
  const about = element('span');
  const home = element('div', { class: 'plot' });
  const figure = element('figure', {}, element('figcaption', {}, title, now, about), home);
  /** @type {readonly Values[]} */
  let shown = [];
  let step = 1;
  /** The place of the pointer among the values; undefined: it is elsewhere. @type {number | undefined} */
  let pointed;
  /** @type {uPlot | undefined} */
  let plot;

  function describe() {
    const at = pointed ?? Math.max(0, ...shown.map(({ length }) => length)) - 1;
    const known = lines.flatMap(({ label }, line) => {
      const value = shown[line]?.[at];
      if (value === null || value === undefined) return [];
      return [label === '' ? words(value) : `${words(value)} ${label}`];
    });
    const texts = known.length === 0 ? ['–'] : known;
    setText(now, texts.join(', '));
    const ago = (Math.max(0, ...shown.map(({ length }) => length)) - 1 - at) * step;
    const most = Math.max(0, ...shown.flat().map((value) => value ?? 0));
    setText(about, pointed === undefined ? `at most ${words(most)}` : `${ago} s ago`);
    home.setAttribute('role', 'img');
    home.setAttribute('aria-label', `${title}: ${texts.join(', ')}, at most ${words(most)} in two minutes`);
  }

  return {
    figure,
    draw(values, seconds) {
      shown = values;
      step = seconds;
      const count = Math.max(0, ...values.map(({ length }) => length));
      const times = Array.from({ length: count }, (_, at) => (at + 1 - count) * seconds);
      const data = /** @type {uPlot.AlignedData} */ ([times, ...values.map((each) => [...each])]);
      if (plot === undefined) {
        plot = new uPlot(optionsOf(lines, words, least, group, point), data, home);
        new ResizeObserver(() => resize()).observe(home);
        dark.addEventListener('change', () => plot?.redraw());
      } else plot.setData(data);
      describe();
    },
  };

  /** @param {number | null | undefined} at */
  function point(at) {
    const next = at ?? undefined;
    if (next === pointed) return;
    pointed = next;
    describe();
  }

  function resize() {
    if (home.clientWidth > 0) plot?.setSize({ width: home.clientWidth, height: HEIGHT });
  }
}

const dark = matchMedia('(prefers-color-scheme: dark)');

/**
 * @param {readonly Omit<Line, 'of'>[]} lines
 * @param {(value: number) => string} words
 * @param {number} least
 * @param {uPlot.SyncPubSub | undefined} group
 * @param {(at: number | null | undefined) => void} point
 * @returns {uPlot.Options}
 */
function optionsOf(lines, words, least, group, point) {
  const axis = { stroke: () => colour('--soft'), font: '11px system-ui, sans-serif' };
  const grid = { stroke: () => colour('--line'), width: 1 };
  return {
    width: 300,
    height: HEIGHT,
    padding: [6, 16, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: { size: 6 },
      ...(group === undefined ? {} : { sync: { key: group.key } }),
    },
    scales: {
      x: { time: false, range: [-SECONDS, 0] },
      y: { range: (_, __, most) => [0, Math.max(least, (most || 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ticks: { show: false },
        size: 24,
        gap: 8,
        splits: () => [-SECONDS, -SECONDS / 2, 0],
        values: (_, all) => all.map((seconds) => (seconds === 0 ? 'now' : `${seconds / 60} min`)),
      },
      {
        ...axis,
        grid,
        ticks: { show: false },
        size: 68,
        space: 34,
        values: (_, all) => all.map((value) => words(value)),
      },
    ],
    series: [
      {},
      ...lines.map(({ colour: name }) => ({
        stroke: () => colour(name),
        ...(lines.length === 1 ? { fill: () => colour('--fill') } : {}),
        width: 1.5,
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => point(cursor.idx)] },
  };
}

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, TOP] = [96, 20];

/** A line without axes for a row of the list. */
export function smallChart() {
  const line = document.createElementNS(SVG, 'polyline');
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${WIDTH} ${TOP}`);
  svg.setAttribute('class', 'small-chart');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(line);
  return svg;
}

/**
 * @param {Element} svg Of smallChart().
 * @param {readonly number[]} values
 */
export function drawSmall(svg, values) {
  const most = Math.max(1, ...values);
  const step = WIDTH / 23;
  const first = WIDTH - (values.length - 1) * step;
  const points = values.map(
    (value, at) => `${(first + at * step).toFixed(1)},${(TOP - 1 - (value / most) * (TOP - 3)).toFixed(1)}`,
  );
  const text = values.some((value) => value > 0) ? points.join(' ') : '';
  const line = svg.firstElementChild;
  if (line?.getAttribute('points') !== text) line?.setAttribute('points', text);
}
