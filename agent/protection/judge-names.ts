// Judges the annotations of an object by their names: those that protect, and that an object of this kind cannot have, or whose
// name is misspelt, close; all others that are unknown are reported. Their readers judge values. Pure.

import { nearest } from '../base/nearest.ts';
import { quote } from '../base/quote.ts';
import { NGINX_COMFORT } from './nginx-names.ts';
import { OTHER_CONTROLLERS } from './other-controllers.ts';
import { ANNOTATIONS_THAT_PROTECT, type Kind, type Protection } from './protections.ts';

export const OWN_PREFIX = 'headgate.io/';
export const NGINX_PREFIX = 'nginx.ingress.kubernetes.io/';
/** On Ingresses and their classes: protections, by name, without which requests are served all the same. */
export const SERVE_WITHOUT = 'serve-without';
/** Unknown annotations of an object that are named; the others are counted. */
const MAX_NAMED = 8;
/** Unknown names of an object that are compared with those that are known, because authors choose how many there are. */
const MAX_COMPARED = 32;

const PROTECTIONS = new Map(ANNOTATIONS_THAT_PROTECT.map((each) => [each.name, each]));
const PROTECTING = [...PROTECTIONS.keys()];
const OF_NGINX = [...PROTECTING, ...NGINX_COMFORT];

export interface JudgedNames {
  /** Names of annotations that close: if there are any, the object serves no client. */
  readonly closedBy: readonly string[];
  /** A sentence for each annotation that closes, or is unknown. */
  readonly faults: readonly string[];
  /** Protections that are missing with the author's consent, a sentence each. */
  readonly without: readonly string[];
  /** Names of annotations that have no effect and add comfort only, sorted. */
  readonly ignored: readonly string[];
}

/** The annotation of this name, without a prefix, protects; undefined for one that does not. */
export function protection(name: string): Protection | undefined {
  return PROTECTIONS.get(name);
}

/** Headgate does not have it yet, or, by a name with its prefix, it is another controller's. */
export function isMissing(name: string): boolean {
  return PROTECTIONS.get(name)?.kinds.length === 0 || OTHER_CONTROLLERS.has(name);
}

/** `takes`: the names, without a prefix, that are read; `consent`: names of protections that may be missing. */
export function judgeNames(
  kind: Kind,
  annotations: Readonly<Record<string, string>>,
  takes: ReadonlySet<string>,
  consent: ReadonlySet<string> = NONE,
): JudgedNames {
  const closing: string[] = [];
  const closedBy: string[] = [];
  const unknown: string[] = [];
  const without: string[] = [];
  const ignored: string[] = [];
  let compared = 0;
  const close = (full: string, sentence: string): void => {
    closedBy.push(full);
    closing.push(`${sentence}; ${closed(kind)}`);
  };
  for (const [full, value] of Object.entries(annotations)) {
    const isOwn = full.startsWith(OWN_PREFIX);
    const other = kind === 'Ingress' ? OTHER_CONTROLLERS.get(full) : undefined;
    if (other !== undefined) {
      const { by, here } = other;
      const isHere = here.some((each) => hasOne(annotations, each));
      if (isHere || !other.asks(value)) ignored.push(full);
      else if (consent.has(full)) without.push(withoutIt(full, by));
      else {
        const [own] = here;
        const hint = own === undefined ? '' : `; "${OWN_PREFIX}${own}" is the one for it here`;
        close(
          full,
          `Cannot use annotation ${quote(full)}: it protects by ${by}, and is of another controller${hint}`,
        );
      }
      continue;
    }
    if (!isOwn && !full.startsWith(NGINX_PREFIX)) continue;
    const name = full.slice((isOwn ? OWN_PREFIX : NGINX_PREFIX).length);
    if (takes.has(name) && (isOwn || kind === 'Ingress')) continue;
    const meant = protection(name);
    if (meant === undefined) {
      if (NGINX_COMFORT.includes(name) && !isOwn) ignored.push(full);
      else if (++compared > MAX_COMPARED)
        close(full, `Cannot use annotation ${quote(full)}: there are too many unknown ones`);
      else {
        const near = isOwn ? nearest(name, [...takes, ...PROTECTING]) : nearest(name, OF_NGINX);
        const hint = near === undefined ? '' : `, the nearest is "${full.slice(0, -name.length)}${near}"`;
        const sentence = `Cannot use annotation ${quote(full)}: the name is unknown${hint}`;
        if (near !== undefined && PROTECTIONS.has(near)) close(full, `${sentence}, which protects`);
        else if (isOwn) unknown.push(sentence);
        else ignored.push(full);
      }
    } else if (asksNothing(meant, value)) ignored.push(full);
    else if (consent.has(name)) without.push(withoutIt(full, meant.by));
    else close(full, `Cannot use annotation ${quote(full)}: ${whyNot(kind, meant)}`);
  }
  return {
    closedBy,
    faults: few([...closing, ...unknown]),
    without,
    ignored: ignored.sort(),
  };
}

const NONE: ReadonlySet<string> = new Set();

/** No value at all is not allowed where Headgate has the protection, and then not on other kinds either. */
function asksNothing({ asks, kinds }: Protection, value: string): boolean {
  return asks?.(value) === false && (kinds.length === 0 || value.trim() !== '');
}

const WITHOUT_HTTP: ReadonlySet<Kind> = new Set<Kind>(['Service', 'TLSRoute', 'TCPRoute', 'UDPRoute']);

/** The end of a sentence about what closes. */
export function closed(kind: Kind): string {
  return WITHOUT_HTTP.has(kind) ? 'it refuses connections' : 'its requests get status 403';
}

/** About an annotation that protects and whose value is not allowed. */
export function notServed(name: string, kind: Kind): string {
  return `Annotation "${name}" protects and has a value that is not allowed; ${closed(kind)}`;
}

function withoutIt(full: string, by: string): string {
  return `Serves without ${quote(full)}, as annotation "${OWN_PREFIX}${SERVE_WITHOUT}" allows: it protects by ${by}, and Headgate does not have it`;
}

/** An Ingress has the annotation, with either prefix. */
function hasOne(annotations: Readonly<Record<string, string>>, name: string): boolean {
  return [OWN_PREFIX, NGINX_PREFIX].some((prefix) => Object.hasOwn(annotations, prefix + name));
}

function whyNot(kind: Kind, { by, kinds }: Protection): string {
  const other = kinds.includes(kind)
    ? `${kind} has it with the prefix "${OWN_PREFIX}"`
    : `only ${kinds.join(', ')} can have it`;
  const reason = kinds.length === 0 ? 'Headgate does not have it' : other;
  return `it protects by ${by}, and ${reason}`;
}

function few(sentences: readonly string[]): readonly string[] {
  const more = sentences.length - MAX_NAMED;
  if (more <= 0) return sentences;
  return [...sentences.slice(0, MAX_NAMED), `Cannot use ${more} more annotations: their names are unknown`];
}
