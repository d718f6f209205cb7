// Annotations of the OpenStack cloud provider that correspond to one of Headgate's, and the translation of their values.
// Source: kubernetes/cloud-provider-openstack, expose-applications-using-loadbalancer-type-service.md and
// pkg/openstack/loadbalancer.go. Pure.

import { type Limits, MILLISECOND, oneOf, SECOND } from './kinds.ts';

export const ALIAS_PREFIX = 'loadbalancer.openstack.org/';

const NONE: Limits = [0, 0];

/** Another provider's annotation with the same meaning, in that provider's notation. */
export interface Alias {
  /** With its prefix. */
  readonly name: string;
  /** Completes `is not`; `limits` are those of Headgate's annotation. */
  words(limits: Limits | undefined): string;
  /** How the values correspond, for the documentation; '' if `words` is enough. */
  readonly notation: string;
  /** The text of Headgate's annotation, which its kind then validates; undefined if there is none. */
  translate(text: string): string | undefined;
}

/** `ours`: Headgate's value by the other provider's. */
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
    words: ([min, max] = NONE) => `a whole number from ${min} to ${max}`,
    notation: '',
    translate: (text) => text,
  };
}

/** Octavia's limits: -1 is no limit, 0 is not allowed. */
export function minusOneForNone(name: string): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: ([, max] = NONE) => `-1 or a whole number from 1 to ${max}`,
    notation: 'a whole number above 0, or `-1` for `0`',
    translate: (text) => (text === '-1' ? '0' : /^0*$/.test(text) ? undefined : text),
  };
}

function inUnit(name: string, plural: string, unit: number): Alias {
  return {
    name: `${ALIAS_PREFIX}${name}`,
    words: ([min, max] = NONE) =>
      `a whole number of ${plural} from ${Math.ceil(min / unit)} to ${Math.floor(max / unit)}`,
    notation: '',
    translate: (text) => (/^\d{1,10}$/.test(text) ? `${Number(text) * unit}ms` : undefined),
  };
}
