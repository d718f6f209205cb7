// Host names of routes and listeners as patterns: what they have in common, and which is more specific. Pure.

import type { HostPattern } from '../../model/routes.ts';

export const ANY_HOST: HostPattern = { suffix: '', kind: 'any' };

/** `*.example.org` is a wildcard over `labels`; '' is any host. */
export function hostPattern(hostname: string, labels: 'one-label' | 'labels'): HostPattern {
  if (hostname === '') return ANY_HOST;
  if (hostname.startsWith('*.')) return { suffix: hostname.slice(2), kind: labels };
  return { suffix: hostname, kind: 'exact' };
}

/** Equal for equal patterns. */
export function hostKey({ kind, suffix }: HostPattern): string {
  return `${kind} ${suffix}`;
}

/** As an author writes it; `*` for any host. */
export function hostText({ kind, suffix }: HostPattern): string {
  if (kind === 'any') return '*';
  return kind === 'exact' ? suffix : `*.${suffix}`;
}

/** The hosts that both match; undefined if there are none. Both have wildcards over any number of labels. */
export function commonHosts(a: HostPattern, b: HostPattern): HostPattern | undefined {
  if (a.kind === 'any') return b;
  if (b.kind === 'any') return a;
  if (a.kind === 'exact' && b.kind === 'exact') return a.suffix === b.suffix ? a : undefined;
  if (a.kind === 'exact') return a.suffix.endsWith(`.${b.suffix}`) ? a : undefined;
  if (b.kind === 'exact') return b.suffix.endsWith(`.${a.suffix}`) ? b : undefined;
  if (a.suffix === b.suffix || a.suffix.endsWith(`.${b.suffix}`)) return a;
  return b.suffix.endsWith(`.${a.suffix}`) ? b : undefined;
}

/** `*.example.org` for `a.example.org`. */
export function wildcardOf(host: string): string {
  return host.replace(/^[^.]*/, '*');
}

/** Keys of the next wider hosts over any number of labels, the narrowest first; the last one is any host. */
export function widerKeys({ kind, suffix }: HostPattern): readonly string[] {
  if (kind === 'any') return [];
  const keys: string[] = [];
  for (let dot = suffix.indexOf('.'); dot >= 0; dot = suffix.indexOf('.', dot + 1))
    keys.push(hostKey({ kind: 'labels', suffix: suffix.slice(dot + 1) }));
  return [...keys, hostKey(ANY_HOST)];
}
