// Annotations of the OpenStack cloud provider that mean the same as one of ours, and how their values become ours:
// its documentation is expose-applications-using-loadbalancer-type-service.md of kubernetes/cloud-provider-openstack,
// its source pkg/openstack/loadbalancer.go. Pure.

import { oneOf } from './kinds.ts';

export const ALIAS_PREFIX = 'loadbalancer.openstack.org/';

/** Another provider's annotation of the same meaning, with that provider's notation. */
export interface Alias {
  /** With its prefix. */
  readonly name: string;
  /** What is allowed, to go after `is not`; `range` is that of our kind. */
  words(range: string): string;
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
  return inUnit(name, 'milliseconds', 'ms');
}

export function seconds(name: string): Alias {
  return inUnit(name, 'seconds', 's');
}

export function counted(name: string): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: (range) => `a whole number from ${range}`,
    notation: '',
    translate: (text) => text,
  };
}

/** As Octavia has its limits: -1 is none, 0 is not allowed. */
export function minusOneForNone(name: string): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: (range) => `-1 or a whole number from ${range.replace(/^0/, '1')}`,
    notation: 'a whole number above 0, or `-1` for our `0`',
    translate: (text) => (text === '-1' ? '0' : /^0*$/.test(text) ? undefined : text),
  };
}

function inUnit(name: string, plural: string, unit: string): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: (range) => `a whole number of ${plural} from ${range}`,
    notation: '',
    translate: (text) => (/^\d{1,10}$/.test(text) ? `${text}${unit}` : undefined),
  };
}
