// The clients that may connect to a Service: spec.loadBalancerSourceRanges, else the old annotation, else all clients.
// The rule is that of the cloud provider library (service/helpers/helper.go). Pure.

import { parseCidr } from '../../base/ip.ts';
import { memoByIdentity } from '../../base/memo.ts';
import { nearest } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import type { Service } from '../../kubernetes/objects.ts';
import type { Family, Problem } from '../../model/load-balancer.ts';

const ANNOTATION = 'service.beta.kubernetes.io/load-balancer-source-ranges';
/** Invalid ranges that get a Problem each; the others share one. */
const MAX_INVALID = 8;
export const ALL_CLIENTS = { v4: ['0.0.0.0/0'], v6: ['::/0'] } as const;

export interface SourceRanges {
  /** Canonical CIDRs, sorted. Empty for a family that a list of ranges does not name: its clients may not connect. */
  readonly allowed: Readonly<Record<Family, readonly string[]>>;
  /** Ranges are meant, and cannot be read at all. */
  readonly isClosed: boolean;
  readonly problems: readonly Problem[];
}

/** An invalid range allows no clients, so that a typing mistake never gives access. */
export const sourceRanges = memoByIdentity((service: Service): SourceRanges => {
  const { field, ranges } = written(service);
  const misspelt = misspeltName(service);
  if (misspelt !== '')
    return { allowed: NOBODY, isClosed: true, problems: [misspeltProblem(service, misspelt)] };
  if (ranges.length === 0) return { allowed: ALL_CLIENTS, isClosed: false, problems: [] };
  const allowed = { v4: new Set<string>(), v6: new Set<string>() };
  const invalid: string[] = [];
  for (const range of ranges) {
    const parsed = parseCidr(range);
    if (parsed === undefined) invalid.push(range);
    else allowed[parsed.family].add(parsed.cidr);
  }
  const faults = invalid
    .slice(0, MAX_INVALID)
    .map(
      (range) => `${quote(range)} is not a CIDR such as 192.0.2.0/24 or 2001:db8::/32; it allows no clients`,
    );
  const more = invalid.length - faults.length;
  if (more > 0) faults.push(`${more} more ranges are not CIDRs; they allow no clients`);
  const problems = faults.map(
    (fault): Problem => ({
      object: `Service ${service.key}`,
      reason: 'InvalidSourceRange',
      message: `Cannot use ${field}: ${fault}`,
    }),
  );
  return {
    allowed: { v4: [...allowed.v4].sort(), v6: [...allowed.v6].sort() },
    isClosed: false,
    problems,
  };
});

const NOBODY = { v4: [], v6: [] } as const;
const PREFIX = 'service.beta.kubernetes.io/';
const MOST_LETTERS = 2;
/** Annotations of a Service that are compared, because authors choose how many there are. */
const MAX_COMPARED = 32;

/** An annotation that is nearly the one with the ranges; '' for none. */
function misspeltName({ annotations }: Service): string {
  const names = Object.keys(annotations).filter((name) => name.startsWith(PREFIX) && name !== ANNOTATION);
  const known = [ANNOTATION.slice(PREFIX.length)];
  return (
    names
      .slice(0, MAX_COMPARED)
      .find((name) => nearest(name.slice(PREFIX.length), known, MOST_LETTERS) !== undefined) ?? ''
  );
}

function misspeltProblem({ key }: Service, name: string): Problem {
  const message = `Cannot use annotation ${quote(name)}: the name is unknown, the nearest is "${ANNOTATION}"; it refuses connections`;
  return { object: `Service ${key}`, reason: 'InvalidSourceRange', message };
}

function written(service: Service): { field: string; ranges: readonly string[] } {
  // An empty entry stays and is refused, because a template without its value must not give access either.
  const own = service.loadBalancerSourceRanges.map((range) => range.trim());
  if (own.length > 0) return { field: 'spec.loadBalancerSourceRanges', ranges: own };
  const text = (service.annotations[ANNOTATION] ?? '').trim();
  // As in Kubernetes, an empty text is no list; a list of nothing is one that lets no client in.
  const all = text === '' ? [] : text.split(',').map((range) => range.trim());
  const named = all.filter((range) => range !== '');
  const ranges = named.length > 0 ? named : all;
  return { field: `annotation "${ANNOTATION}"`, ranges };
}
