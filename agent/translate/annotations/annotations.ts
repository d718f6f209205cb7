// Reads the annotations of a Service, and the defaults for them in the settings, by the table of annotations.
// Pure: an invalid value becomes a Problem, and the default is used instead.

import { nearestHint } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { judgeNames, protection } from '../../protection/judge-names.ts';
import { type Alias, ELSEWHERE } from './aliases.ts';
import { oneOf } from './kinds.ts';
import { asksAnother } from './other-providers.ts';
import { ANNOTATIONS, type Annotation, type AnnotationValues, FIELDS, type Field, PREFIX } from './table.ts';

export type { AnnotationValues } from './table.ts';

export interface ReadAnnotations {
  readonly values: AnnotationValues;
  /** Annotations whose value is not allowed, so that it is the default. */
  readonly refused: ReadonlySet<Field>;
  /** Protections of the whole object with a value that is not allowed: if there are any, it serves no client. */
  readonly closedBy: readonly string[];
  /** By a value, or by a name. */
  readonly isClosed: boolean;
  readonly problems: readonly Problem[];
}

/** The values if neither the Service nor the settings have any. */
export const ANNOTATION_DEFAULTS: AnnotationValues = Object.freeze(
  Object.fromEntries(FIELDS.map((field) => [field, ANNOTATIONS[field].default])),
) as unknown as AnnotationValues;

/** A longer value is refused without being parsed. */
const MAX_VALUE_CHARACTERS = 512;
/** Annotations of other providers that are named; the others are counted. */
const MAX_IGNORED = 5;

/**
 * `object` names the Service in Problems (`Service default/web`); `defaults` are those of readAnnotationDefaults().
 * Problems are in the order of the table.
 */
export function readAnnotations(
  annotations: Readonly<Record<string, string>>,
  object: string,
  defaults: AnnotationValues = ANNOTATION_DEFAULTS,
): ReadAnnotations {
  const { given, elsewhere, ignored } = collect(annotations);
  const kind = object.startsWith('Service ') ? 'Service' : undefined;
  const values: Draft = { ...defaults };
  const refusals: string[] = [];
  const refused = new Set<Field>();
  const closing = new Set<Field>();
  /** Key: a field; value: the title of the annotation that is in force. */
  const inForce = new Map<Field, string>();
  for (const field of FIELDS) {
    const annotation = given.get(field);
    if (annotation === undefined) continue;
    const refusal = assign(values, field, annotation);
    if (refusal === undefined) inForce.set(field, annotation.title);
    else {
      const closes = protection(ANNOTATIONS[field].name)?.closes;
      if (closes === 'requests') closing.add(field);
      // The settings could trust more than what is meant.
      if (closes === 'trust') reset(values, field, ANNOTATION_DEFAULTS);
      refusals.push(refusal);
      refused.add(field);
    }
  }
  for (const [field, title] of inForce) {
    const { monitors } = ANNOTATIONS[field];
    const monitor = values.healthMonitor;
    if (monitors === undefined || monitors.some((each) => each === monitor)) continue;
    reset(values, field, defaults);
    inForce.delete(field);
    const isMonitorRefused = given.has('healthMonitor') && !inForce.has('healthMonitor');
    if (isMonitorRefused) continue;
    const needed = `it needs annotation "${PREFIX}health-monitor" to be ${oneOf(monitors)}`;
    refusals.push(`Cannot use ${title}: ${needed}`);
  }
  for (const field of ['healthMonitorExpectedBody', 'healthMonitorExpectedBodyPattern'] as const) {
    const title = inForce.get(field);
    if (title === undefined || values.healthMonitorMethod !== 'HEAD') continue;
    reset(values, field, defaults);
    refusals.push(`Cannot use ${title}: the answer to HEAD has no body`);
  }
  const { healthMonitorInterval: interval, healthMonitorTimeout: timeout } = values;
  if (timeout > interval) {
    // A timeout of the Service is a mistake; a default yields to the interval.
    const title = inForce.get('healthMonitorTimeout');
    const { format } = ANNOTATIONS.healthMonitorTimeout.kind;
    if (title !== undefined)
      refusals.push(
        `Cannot use ${title}: ${format(timeout)} is longer than the interval of ${format(interval)}`,
      );
    values.healthMonitorTimeout = interval;
  }
  const names = kind === undefined ? undefined : judgeNames(kind, annotations, NAMES_OF_SERVICES);
  refusals.push(...(names?.faults ?? []));
  for (const name of elsewhere) refusals.push(`Cannot use annotation ${quote(name)}: ${ELSEWHERE.get(name)}`);
  const problems = refusals.map((message): Problem => ({ object, reason: 'InvalidAnnotation', message }));
  ignored.push(...(names?.ignored ?? []));
  if (ignored.length > 0)
    problems.push({ object, reason: 'AnnotationIgnored', message: ignoredInWords(ignored) });
  const closedBy = [...closing].map((field) => PREFIX + ANNOTATIONS[field].name);
  return {
    values,
    refused,
    closedBy,
    isClosed: closedBy.length > 0 || (names?.closedBy ?? []).length > 0,
    problems,
  };
}

/** True if the Service itself has this annotation or an alias of it. */
export function isAnnotated(annotations: Readonly<Record<string, string>>, field: Field): boolean {
  return namesOf(field).some(({ fullName }) => Object.hasOwn(annotations, fullName));
}

/**
 * `record` is keyed by names without the prefix; `values` are complete, also if there are errors. The rules between
 * annotations are not applied: a default path is no mistake if no default monitor uses it.
 */
export function readAnnotationDefaults(record: Readonly<Record<string, string>>): {
  readonly values: AnnotationValues;
  readonly errors: readonly string[];
} {
  const values: Draft = { ...ANNOTATION_DEFAULTS };
  const errors: string[] = [];
  for (const [name, text] of Object.entries(record)) {
    const title = `annotation default ${quote(name)}`;
    const field = FIELDS.find((each) => ANNOTATIONS[each].name === name);
    let error: string | undefined;
    if (field === undefined) error = unknownRefusal(title, name, '');
    else if (ANNOTATIONS[field].perService) error = `Cannot use ${title}: it is for a single Service only`;
    else error = assign(values, field, { title, text, alias: undefined });
    if (error !== undefined) errors.push(error);
  }
  return { values, errors };
}

type Draft = { -readonly [K in Field]: AnnotationValues[K] };

interface GivenAnnotation {
  /** `annotation "headgate.io/mode"`. */
  readonly title: string;
  readonly text: string;
  readonly alias: Alias | undefined;
}

interface FullName {
  readonly fullName: string;
  readonly field: Field;
  readonly alias: Alias | undefined;
  /** The lowest of a field's names counts; 0 is Headgate's own. */
  readonly rank: number;
}

function namesOf(field: Field): readonly FullName[] {
  const { name, aliases = [] } = ANNOTATIONS[field];
  return [
    { fullName: `${PREFIX}${name}`, field, alias: undefined, rank: 0 },
    ...aliases.map((alias, at) => ({ fullName: alias.name, field, alias, rank: at + 1 })),
  ];
}

const NAMES = FIELDS.map((field) => ANNOTATIONS[field].name);
const NAMES_OF_SERVICES: ReadonlySet<string> = new Set(NAMES);
const BY_FULL_NAME = new Map(FIELDS.flatMap(namesOf).map((name) => [name.fullName, name]));

/** A Headgate annotation has precedence over its aliases, and these in the order of the table. */
function collect(annotations: Readonly<Record<string, string>>): {
  given: ReadonlyMap<Field, GivenAnnotation>;
  /** Names of other providers, see ELSEWHERE. */
  elsewhere: readonly string[];
  /** Names of other providers without an equivalent, sorted. */
  ignored: string[];
} {
  const given = new Map<Field, GivenAnnotation & Pick<FullName, 'rank'>>();
  const elsewhere: string[] = [];
  const ignored: string[] = [];
  for (const name of Object.keys(annotations)) {
    const known = BY_FULL_NAME.get(name);
    if (known === undefined) {
      if (ELSEWHERE.has(name)) elsewhere.push(name);
      else if (asksAnother(name)) ignored.push(name);
    } else if (known.rank < (given.get(known.field)?.rank ?? Number.POSITIVE_INFINITY)) {
      const { field, alias, rank } = known;
      given.set(field, { title: `annotation "${name}"`, text: annotations[name] ?? '', alias, rank });
    }
  }
  return { given, elsewhere, ignored: ignored.sort() };
}

/** Puts the value into `values`, or returns the reason why it is invalid. */
function assign<K extends Field>(
  values: Draft,
  field: K,
  { title, text, alias }: GivenAnnotation,
): string | undefined {
  const { kind }: Annotation<AnnotationValues[K]> = ANNOTATIONS[field];
  const refusal = `Cannot use ${title}: ${quote(text)}`;
  if (text.length > MAX_VALUE_CHARACTERS)
    return `${refusal} is longer than ${MAX_VALUE_CHARACTERS} characters`;
  const own = alias === undefined ? text.trim() : alias.translate(text.trim());
  const value = own === undefined ? undefined : kind.parse(own);
  const whyNot = own === undefined ? undefined : kind.whyNot?.get(own);
  if (whyNot !== undefined) return `${refusal}: ${whyNot}`;
  if (value === undefined) return `${refusal} is not ${alias?.words(kind.limits) ?? kind.words}`;
  values[field] = value;
  return undefined;
}

function reset<K extends Field>(values: Draft, field: K, defaults: AnnotationValues): void {
  values[field] = defaults[field];
}

function ignoredInWords(names: readonly string[]): string {
  const named = names.slice(0, MAX_IGNORED).map(quote).join(', ');
  const more = names.length > MAX_IGNORED ? ` (and ${names.length - MAX_IGNORED} more)` : '';
  return `These annotations of other load balancers have no effect here: ${named}${more}`;
}

function unknownRefusal(title: string, name: string, prefix: string): string {
  return `Cannot use ${title}: the name is unknown${nearestHint(name, NAMES, prefix)}`;
}
