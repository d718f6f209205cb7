// Reads the annotations of one Service, and the defaults that the settings give for them, by the one table.
// Pure: a value that is not allowed becomes a Problem and the default is used in its place.

import { nearestHint } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { ALIAS_PREFIX, type Alias } from './aliases.ts';
import { oneOf } from './kinds.ts';
import { ANNOTATIONS, type Annotation, type AnnotationValues, FIELDS, type Field, PREFIX } from './table.ts';

export type { AnnotationValues } from './table.ts';

export interface ReadAnnotations {
  readonly values: AnnotationValues;
  readonly problems: readonly Problem[];
}

/** What holds where neither the Service nor the settings say anything. */
export const ANNOTATION_DEFAULTS: AnnotationValues = Object.freeze(
  Object.fromEntries(FIELDS.map((field) => [field, ANNOTATIONS[field].default])),
) as unknown as AnnotationValues;

/** Longer values are refused unread, so that reading takes no time to speak of. */
const LONGEST_VALUE = 512;
/** Unknown annotations that get a Problem of their own; the rest share one. */
const UNKNOWN_NAMED = 8;

/** The last answer for an `annotations` value with any of ours, which is the same one as long as the Service is. */
const answers = new WeakMap<
  object,
  { object: string; defaults: AnnotationValues; answer: ReadAnnotations }
>();

/**
 * `annotations` as the Service has them; `object` names it in Problems (`Service default/web`); `defaults` are those of
 * readAnnotationDefaults(). Problems come in the order of the table. Never throws. A later call with the same three
 * returns the same value, so `annotations` must not be changed in place.
 */
export function readAnnotations(
  annotations: Readonly<Record<string, string>>,
  object: string,
  defaults: AnnotationValues = ANNOTATION_DEFAULTS,
): ReadAnnotations {
  if (!Object.keys(annotations).some(isForUs)) return plainAnswer(defaults);
  const last = answers.get(annotations);
  if (last?.object === object && last.defaults === defaults) return last.answer;
  const { values, refusals } = read(annotations, defaults);
  const problems = refusals.map((message): Problem => ({ object, reason: 'InvalidAnnotation', message }));
  const answer = { values, problems };
  answers.set(annotations, { object, defaults, answer });
  return answer;
}

/** By what the defaults are: the answer for the many Services that have no annotation of ours. */
const plainAnswers = new WeakMap<AnnotationValues, ReadAnnotations>();

function plainAnswer(defaults: AnnotationValues): ReadAnnotations {
  const known = plainAnswers.get(defaults);
  if (known !== undefined) return known;
  const answer = { values: withinInterval(defaults), problems: [] };
  plainAnswers.set(defaults, answer);
  return answer;
}

/** Whether somebody has written this annotation, or one that means the same, on the Service itself. */
export function isAnnotated(annotations: Readonly<Record<string, string>>, field: Field): boolean {
  const { name, aliases } = ANNOTATIONS[field];
  return [`${PREFIX}${name}`, ...aliases.map((alias) => alias.name)].some((each) =>
    Object.hasOwn(annotations, each),
  );
}

/**
 * `record` is keyed by names without the prefix; `values` are complete, even where there are errors.
 * The rules between annotations are for Services: a default path is no mistake where no default monitor asks for it.
 */
export function readAnnotationDefaults(record: Readonly<Record<string, string>>): {
  readonly values: AnnotationValues;
  readonly errors: readonly string[];
} {
  const values: Draft = { ...ANNOTATION_DEFAULTS };
  const errors: string[] = [];
  for (const [name, text] of Object.entries(record)) {
    const error = takeDefault(values, name, text);
    if (error !== undefined) errors.push(error);
  }
  return { values, errors };
}

function takeDefault(values: Draft, name: string, text: string): string | undefined {
  const title = `annotation default ${quote(name)}`;
  const field = FIELDS.find((each) => ANNOTATIONS[each].name === name);
  if (field === undefined) return unknown(title, name, '');
  if (ANNOTATIONS[field].perService) return `Cannot use ${title}: it is for a single Service only`;
  return take(values, field, { title, text, alias: undefined });
}

type Draft = { -readonly [K in Field]: AnnotationValues[K] };

/** An annotation as somebody wrote it. */
interface Written {
  /** `annotation "headgate.io/mode"`. */
  readonly title: string;
  readonly text: string;
  readonly alias: Alias | undefined;
}

const names = FIELDS.map((field) => ANNOTATIONS[field].name);

/** By full name: our own and the aliases. */
const byName = new Map<string, { field: Field; alias: Alias | undefined }>(
  FIELDS.flatMap((field) => [
    [`${PREFIX}${ANNOTATIONS[field].name}`, { field, alias: undefined }] as const,
    ...ANNOTATIONS[field].aliases.map((alias) => [alias.name, { field, alias }] as const),
  ]),
);

function read(
  annotations: Readonly<Record<string, string>>,
  defaults: AnnotationValues,
): { values: AnnotationValues; refusals: readonly string[] } {
  const { written, strangers } = collect(annotations);
  const values: Draft = { ...defaults };
  const refusals: string[] = [];
  /** Titles of those that hold. */
  const taken = new Map<Field, string>();
  for (const field of FIELDS) {
    const one = written.get(field);
    if (one === undefined) continue;
    const refusal = take(values, field, one);
    if (refusal === undefined) taken.set(field, one.title);
    else refusals.push(refusal);
  }
  for (const [field, title] of taken) {
    const { needs } = ANNOTATIONS[field];
    if (needs === undefined || needs.values.includes(String(values[needs.field]))) continue;
    reset(values, field, defaults);
    taken.delete(field);
    const isRefused = written.has(needs.field) && !taken.has(needs.field);
    if (!isRefused) refusals.push(`Cannot use ${title}: ${needsWords(needs)}`);
  }
  for (const field of ['healthMonitorExpectedBody', 'healthMonitorExpectedBodyPattern'] as const) {
    const title = taken.get(field);
    if (title === undefined || values.healthMonitorMethod !== 'HEAD') continue;
    reset(values, field, defaults);
    refusals.push(`Cannot use ${title}: the answer to HEAD has no body`);
  }
  refusals.push(...aboutTimeout(values, taken.get('healthMonitorTimeout')), ...aboutStrangers(strangers));
  return { values: withinInterval(values), refusals };
}

function isForUs(name: string): boolean {
  return name.startsWith(PREFIX) || name.startsWith(ALIAS_PREFIX);
}

/** An annotation of ours wins over its alias, wherever it stands. */
function collect(annotations: Readonly<Record<string, string>>): {
  written: ReadonlyMap<Field, Written>;
  strangers: readonly string[];
} {
  const written = new Map<Field, Written>();
  const strangers: string[] = [];
  for (const name of Object.keys(annotations).filter(isForUs)) {
    const isOurs = name.startsWith(PREFIX);
    const known = byName.get(name);
    if (known === undefined) {
      if (isOurs) strangers.push(name);
    } else if (isOurs || !written.has(known.field)) {
      const text = annotations[name] ?? '';
      written.set(known.field, { title: `annotation "${name}"`, text, alias: known.alias });
    }
  }
  return { written, strangers };
}

/** Puts the value into `values`, or returns why it cannot. */
function take<K extends Field>(values: Draft, field: K, { title, text, alias }: Written): string | undefined {
  const { kind }: Annotation<AnnotationValues[K]> = ANNOTATIONS[field];
  const refusal = `Cannot use ${title}: ${quote(text)}`;
  if (text.length > LONGEST_VALUE) return `${refusal} is longer than ${LONGEST_VALUE} characters`;
  const own = alias === undefined ? text.trim() : alias.translate(text.trim());
  const value = own === undefined ? undefined : kind.parse(own);
  if (value === undefined) return `${refusal} is not ${alias?.words(kind.limits) ?? kind.words}`;
  values[field] = value;
  return undefined;
}

function reset<K extends Field>(values: Draft, field: K, defaults: AnnotationValues): void {
  values[field] = defaults[field];
}

/** `it needs annotation "headgate.io/health-monitor" to be http or https`. */
function needsWords({
  field,
  values,
}: {
  readonly field: Field;
  readonly values: readonly string[];
}): string {
  return `it needs annotation "${PREFIX}${ANNOTATIONS[field].name}" to be ${oneOf(values)}`;
}

/** A probe ends before the next one begins: a timeout by default gives way, one that was asked for is a mistake. */
function aboutTimeout(values: AnnotationValues, title: string | undefined): readonly string[] {
  const { healthMonitorInterval: interval, healthMonitorTimeout: timeout } = values;
  if (title === undefined || timeout <= interval) return [];
  const { format } = ANNOTATIONS.healthMonitorTimeout.kind;
  return [`Cannot use ${title}: ${format(timeout)} is longer than the interval of ${format(interval)}`];
}

function withinInterval(values: AnnotationValues): AnnotationValues {
  const { healthMonitorInterval: interval, healthMonitorTimeout: timeout } = values;
  return timeout <= interval ? values : { ...values, healthMonitorTimeout: interval };
}

function aboutStrangers(strangers: readonly string[]): readonly string[] {
  const refusals = strangers
    .slice(0, UNKNOWN_NAMED)
    .map((name) => unknown(`annotation ${quote(name)}`, name.slice(PREFIX.length), PREFIX));
  const more = strangers.length - refusals.length;
  return more > 0
    ? [...refusals, `Cannot use ${more} more annotations: there are none of their names`]
    : refusals;
}

function unknown(title: string, name: string, prefix: string): string {
  return `Cannot use ${title}: there is none of this name${nearestHint(name, names, prefix)}`;
}
