// Metrics as text, in Prometheus' format 0.0.4 or in OpenMetrics 1.0.0: which of the two a request gets, and families
// written in it. Pure.

import type { MetricFamily } from '../../agent/base/metric-family.ts';

export interface TextFormat {
  readonly contentType: string;
  readonly isOpen: boolean;
  /** The last line. */
  readonly end: string;
}

export const prometheusText: TextFormat = {
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  isOpen: false,
  end: '',
};
export const openMetrics: TextFormat = {
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  isOpen: true,
  end: '# EOF\n',
};

/** The format that the request's Accept header prefers; Prometheus' text if it prefers neither. */
export function formatFor(accept: string | undefined): TextFormat {
  let [open, plain] = [0, 0];
  for (const item of (accept ?? '*/*').split(',')) {
    const [type = '', ...parameters] = item.split(';').map((word) => word.trim().toLowerCase());
    const version = parameters.find((each) => each.startsWith('version='))?.slice(8);
    const q = qualityOf(parameters);
    if (
      type === 'application/openmetrics-text' &&
      (version === undefined || /^"?(1\.0\.0|0\.0\.1)"?$/.test(version))
    )
      open = Math.max(open, q);
    if (
      (type === 'text/plain' && (version === undefined || /^"?0\.0\.4"?$/.test(version))) ||
      type === '*/*' ||
      type === 'text/*'
    )
      plain = Math.max(plain, q);
  }
  return open > plain ? openMetrics : prometheusText;
}

/** Whether the request's Accept-Encoding header allows gzip. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  let wildcard = 0;
  for (const item of (acceptEncoding ?? '').split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((word) => word.trim().toLowerCase());
    if (coding === 'gzip' || coding === 'x-gzip') return qualityOf(parameters) > 0;
    if (coding === '*') wildcard = qualityOf(parameters);
  }
  return wildcard > 0;
}

function qualityOf(parameters: readonly string[]): number {
  const text = parameters.find((each) => each.startsWith('q='))?.slice(2) ?? '1';
  return /^(0(\.\d{1,3})?|1(\.0{1,3})?)$/.test(text) ? Number(text) : 0;
}

/** Characters; writing a piece takes a fraction of a millisecond. */
const PIECE_LENGTH = 64 * 1024;

/** The text of the families, without the format's last line. A family without samples has its head, too. */
export function* pieces(families: Iterable<MetricFamily>, format: TextFormat): Generator<string, void, void> {
  let text = '';
  for (const lines of linesOf(families, format)) {
    text += lines;
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = '';
  }
  yield text;
}

function* linesOf(families: Iterable<MetricFamily>, format: TextFormat): Generator<string, void, void> {
  for (const family of families) {
    yield familyHead(family, format);
    for (const { suffix = '', labels, rows, value } of family.parts) {
      const name = `${family.name}${suffix}`;
      const withLabels = labels === '' ? `${name}{` : `${name}{${labels},`;
      const withoutLabels = labels === '' ? name : `${name}{${labels}}`;
      for (const row of rows) {
        const number = value(row);
        if (Number.isNaN(number)) continue;
        const begin = row.labels === '' ? withoutLabels : `${withLabels}${row.labels}}`;
        yield `${begin} ${numeral(number)}\n`;
      }
    }
  }
}

/** OpenMetrics names a counter without `_total`, its samples with it. */
function familyHead({ name, type, help }: MetricFamily, { isOpen }: TextFormat): string {
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name;
  const word = type === 'unknown' && !isOpen ? 'untyped' : type;
  const text = isOpen ? escaped(help) : help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return `# HELP ${family} ${text}\n# TYPE ${family} ${word}\n`;
}

/** A label's value between its quotes, in both formats. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** Both formats read numbers as JavaScript writes them, except infinity. */
function numeral(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}
