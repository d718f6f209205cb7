// A strict parser of both formats of metrics: Prometheus accepts all that it accepts. Errors name the invalid line.
// Prometheus' exposition formats 0.0.4, and OpenMetrics 1.0.0, https://github.com/OpenObservability/OpenMetrics.

export interface ReadFamily {
  readonly type: string;
  readonly help: string;
  /** `name{labels}` as written → value. */
  readonly samples: ReadonlyMap<string, number>;
}

const NAME = '[a-zA-Z_][a-zA-Z0-9_]*';
const LABEL = `${NAME}="(?:[^"\\\\\\n]|\\\\["\\\\n])*"`;
const SAMPLE = new RegExp(
  `^((${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})?) (-?(?:\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)|[+-]Inf|NaN)$`,
);
const HEAD = new RegExp(`^# (HELP|TYPE) (${NAME}) (.*)$`);
const TYPES = new Set(['counter', 'gauge', 'histogram', 'summary']);
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};
const UNIT_WORDS = /_(milliseconds|ms|minutes|kilobytes|megabytes|mb|percent)(_|$)/;

/** Returns families by their name; in OpenMetrics the name of a counter has no `_total`. */
export function readMetrics(text: string, format: 'text' | 'openmetrics'): ReadonlyMap<string, ReadFamily> {
  if (!text.endsWith('\n')) throw new Error('The last line does not end');
  const lines = text.slice(0, -1).split('\n');
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('The last line is not "# EOF"');
  const families = new Map<string, { type: string; help: string; samples: Map<string, number> }>();
  let name = '';
  let help: string | undefined;
  for (const line of lines) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    const [, word, about = '', rest = ''] = HEAD.exec(line) ?? [];
    if (word === 'HELP') {
      if (families.has(about)) fail('A family comes twice');
      if (rest === '') fail('A family is not explained');
      [name, help] = [about, rest];
    } else if (word === 'TYPE') {
      if (about !== name || help === undefined) fail('TYPE does not follow its HELP');
      if (!TYPES.has(rest)) fail('There is no such type');
      const isTotal = name.endsWith('_total');
      if (rest === 'counter' && isTotal === (format === 'openmetrics')) fail('A counter has the wrong name');
      if (rest !== 'counter' && isTotal) fail('A name of a counter is none');
      if (UNIT_WORDS.test(name)) fail('A unit is no base unit');
      families.set(name, { type: rest, help: help as string, samples: new Map() });
      help = undefined;
    } else if (line.startsWith('#')) fail('There is no such line');
    else {
      const [, series = '', own = '', labels = '', value = ''] =
        SAMPLE.exec(line) ?? fail('Not a sample') ?? [];
      const family = families.get(name) ?? fail('A sample without a family');
      const suffixes =
        SUFFIXES[family.type] ?? (family.type === 'counter' && format === 'openmetrics' ? ['_total'] : ['']);
      if (!suffixes.some((suffix) => own === `${name}${suffix}`)) fail('A sample of another family');
      const labelNames = [...labels.matchAll(/([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"/g)].map(([, each]) => each);
      if (new Set(labelNames).size !== labelNames.length) fail('A label comes twice');
      if (family.samples.has(series)) fail('A sample comes twice');
      const number = Number(value.replace('Inf', 'Infinity'));
      if (family.type === 'counter' && !(number >= 0)) fail('A counter is less than 0');
      family.samples.set(series, number);
    }
  }
  return families;
}

/** The counters that have decreased or disappeared between two scrapes: `name{labels}: before → after`. */
export function goneBack(
  before: ReadonlyMap<string, ReadFamily>,
  after: ReadonlyMap<string, ReadFamily>,
): readonly string[] {
  const faults: string[] = [];
  for (const [name, { type, samples }] of before) {
    if (type !== 'counter') continue;
    for (const [series, value] of samples) {
      const now = after.get(name)?.samples.get(series);
      if (now === undefined || now < value) faults.push(`${series}: ${value} → ${now}`);
    }
  }
  return faults;
}
