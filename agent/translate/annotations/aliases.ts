// Annotations of the OpenStack cloud provider that mean the same as one of ours, and how their values become ours:
// its documentation is expose-applications-using-loadbalancer-type-service.md of kubernetes/cloud-provider-openstack,
// its source pkg/openstack/loadbalancer.go. Pure.

import { type Limits, MILLISECOND, oneOf, SECOND } from './kinds.ts';

export const ALIAS_PREFIX = 'loadbalancer.openstack.org/';

const NONE: Limits = [0, 0];

/** Another provider's annotation of the same meaning, with that provider's notation. */
export interface Alias {
  /** With its prefix. */
  readonly name: string;
  /** What is allowed, to go after `is not`; `limits` are those of our kind. */
  words(limits: Limits | undefined): string;
  /** How the values correspond, for the documentation; '' where `words` says it. */
  readonly notation: string;
  /** Our own text for theirs, to be judged by our kind; undefined where there is none. */
  translate(text: string): string | undefined;
}

/** The other provider's words for ours. */
export function spelled(name: string, ours: Readonly<Record<string, string>>): Alias {
  const pairs = Object.entries(ours);
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: () => oneOf(Object.keys(ours)),
    notation: pairs.map(([theirs, own]) => `\`${theirs}\` is \`${own}\``).join(', '),
    translate: (text) => pairs.find(([theirs]) => theirs === text)?.[1],
  };
}

export function milliseconds(name: string): Alias {
  return inUnit(name, 'milliseconds', MILLISECOND);
}

export function seconds(name: string): Alias {
  return inUnit(name, 'seconds', SECOND);
}

export function counted(name: string): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: ([least, most] = NONE) => `a whole number from ${least} to ${most}`,
    notation: '',
    translate: (text) => text,
  };
}

/** As Octavia has its limits: -1 is none, 0 is not allowed. */
export function minusOneForNone(name: string): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: ([, most] = NONE) => `-1 or a whole number from 1 to ${most}`,
    notation: 'a whole number above 0, or `-1` for our `0`',
    translate: (text) => (text === '-1' ? '0' : /^0*$/.test(text) ? undefined : text),
  };
}

function inUnit(name: string, plural: string, unit: number): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: ([least, most] = NONE) =>
      `a whole number of ${plural} from ${Math.ceil(least / unit)} to ${Math.floor(most / unit)}`,
    notation: '',
    translate: (text) => (/^\d{1,10}$/.test(text) ? `${Number(text) * unit}ms` : undefined),
  };
}
