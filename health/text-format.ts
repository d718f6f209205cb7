// The two formats of metrics, Prometheus' text 0.0.4 and OpenMetrics 1.0.0: which of them a request gets, and how a
// family is written in each. Pure.

import type { MetricFamily, MetricPart } from '../agent/base/metric-family.ts';

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

/** By the request's Accept header: the one it likes best, the plain text where it likes both alike or neither. */
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

/** Whether the request takes gzip. */
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

/** The lines before a family's samples. OpenMetrics names a counter without `_total`, its samples with it. */
export function familyHead({ name, type, help }: MetricFamily, { isOpen }: TextFormat): string {
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name;
  const word = type === 'unknown' && !isOpen ? 'untyped' : type;
  const text = isOpen ? escaped(help) : help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return `# HELP ${family} ${text}\n# TYPE ${family} ${word}\n`;
}

/** What a sample's line begins with, up to the row's own labels; `isBare`: it has none of either kind. */
export function sampleHead(
  { name }: MetricFamily,
  { suffix = '', labels }: MetricPart,
  isBare: boolean,
): string {
  if (isBare) return `${name}${suffix} `;
  return `${name}${suffix}{${labels}`;
}

/** A label's value between its quotes, in both formats. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** JavaScript writes numbers as both formats read them, but for those without end. */
export function numeral(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}
