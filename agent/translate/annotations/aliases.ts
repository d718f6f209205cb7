// Annotations of other load balancers that correspond to one of Headgate's, and the translation of their values. Pure.
// Sources: kubernetes/cloud-provider-openstack, expose-applications-using-loadbalancer-type-service.md and
// pkg/openstack/loadbalancer.go; https://metallb.io/usage/; https://kube-vip.io/docs/usage/kubernetes-services/;
// https://docs.cilium.io/en/stable/network/lb-ipam/.

import { type Kind, type Limits, MILLISECOND, oneOf, SECOND } from './kinds.ts';

const OPENSTACK = 'loadbalancer.openstack.org/';

/** Annotations that ask for something that Headgate has in another place → where. */
export const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  [
    'lbipam.cilium.io/sharing-cross-namespace',
    'the pool decides whether Services of several namespaces share its addresses (shareAcrossNamespaces)',
  ],
]);

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

/** `values`: Headgate's value by the other provider's. */
export function spelled(name: string, values: Readonly<Record<string, string>>): Alias {
  const pairs = Object.entries(values);
  return {
    name: `${OPENSTACK}${name}`,
    words: () => oneOf(Object.keys(values)),
    notation: pairs.map(([theirs, own]) => `\`${theirs}\` is \`${own}\``).join(', '),
    translate: (text) => pairs.find(([theirs]) => theirs === text)?.[1],
  };
}

/** The same text. */
export function same(name: string, words: string): Alias {
  return { name: `${OPENSTACK}${name}`, words: () => words, notation: words, translate: (text) => text };
}

/** The same text, of any provider: `name` has its prefix. */
export function likewise<T>(name: string, { words }: Kind<T>): Alias {
  return { name, words: () => words, notation: 'in the same notation', translate: (text) => text };
}

/** MetalLB's, with its present and its former prefix. */
export function ofMetallb<T>(name: string, kind: Kind<T>): readonly Alias[] {
  return ['metallb.io/', 'metallb.universe.tf/'].map((prefix) => likewise(`${prefix}${name}`, kind));
}

export function milliseconds(name: string): Alias {
  return inUnit(name, 'milliseconds', MILLISECOND);
}

export function seconds(name: string): Alias {
  return inUnit(name, 'seconds', SECOND);
}

export function counted(name: string): Alias {
  return {
    name: `${OPENSTACK}${name}`,
    words: ([min, max] = NONE) => `a whole number from ${min} to ${max}`,
    notation: '',
    translate: (text) => text,
  };
}

/** Octavia's limits: -1 is no limit, 0 is not allowed. */
export function minusOneForNone(name: string): Alias {
  return {
    name: `${OPENSTACK}${name}`,
    words: ([, max] = NONE) => `-1 or a whole number from 1 to ${max}`,
    notation: 'a whole number above 0, or `-1` for `0`',
    translate: (text) => (text === '-1' ? '0' : /^0*$/.test(text) ? undefined : text),
  };
}

function inUnit(name: string, plural: string, unit: number): Alias {
  return {
    name: `${OPENSTACK}${name}`,
    words: ([min, max] = NONE) =>
      `a whole number of ${plural} from ${Math.ceil(min / unit)} to ${Math.floor(max / unit)}`,
    notation: '',
    translate: (text) => (/^\d{1,10}$/.test(text) ? `${Number(text) * unit}ms` : undefined),
  };
}
