// The clients that may connect to a Service: spec.loadBalancerSourceRanges, else the old annotation, else all clients.
// The rule is that of the cloud provider library (service/helpers/helper.go). Pure.

import { parseCidr } from '../../base/ip.ts';
import { memoByIdentity } from '../../base/memo.ts';
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
  readonly problems: readonly Problem[];
}

/** An invalid range allows no clients, so that a typing mistake never gives access. */
export const sourceRanges = memoByIdentity((service: Service): SourceRanges => {
  const { field, ranges } = written(service);
  if (ranges.length === 0) return { allowed: ALL_CLIENTS, problems: [] };
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
  return { allowed: { v4: [...allowed.v4].sort(), v6: [...allowed.v6].sort() }, problems };
});

function written(service: Service): { field: string; ranges: readonly string[] } {
  // An empty entry stays and is refused, because a template without its value must not give access either.
  const own = service.loadBalancerSourceRanges.map((range) => range.trim());
  if (own.length > 0) return { field: 'spec.loadBalancerSourceRanges', ranges: own };
  const text = service.annotations[ANNOTATION] ?? '';
  const ranges = text
    .split(',')
    .map((range) => range.trim())
    .filter((range) => range !== '');
  return { field: `annotation "${ANNOTATION}"`, ranges };
}
