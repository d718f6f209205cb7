// Tokens of routes: what their annotations ask for, and the public keys that their objects and URLs have. What cannot be had is
// closed: no client is let in. Pure.

import type { Dependency } from '../../model/desired-state.ts';
import type { Problem, TokenKeySet } from '../../model/load-balancer.ts';
import type { RouteJwt } from '../../model/routes.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { RouteOptions } from './route-annotations.ts';

export interface ReadTokens {
  /** undefined: clients need no token. */
  readonly jwt: RouteJwt | undefined;
  /** A sentence; '' if there is none. */
  readonly fault: string;
}

/** Its keys are nowhere. */
const CLOSED: RouteJwt = {
  keys: '',
  issuer: '',
  audiences: [],
  from: { kind: 'bearer', name: 'authorization' },
  leeway: 0,
  required: [],
  headers: [],
};

/** `namespace`: of the route. An object of another one could be anybody's. */
export function tokensOf({ jwt: read }: RouteOptions, namespace: string): ReadTokens {
  if (read === undefined) return { jwt: undefined, fault: '' };
  if ('fault' in read) {
    const fault = `Cannot verify tokens by annotation "headgate.io/jwt": ${read.fault}; its requests get status 403`;
    return { jwt: CLOSED, fault };
  }
  const [kind, name] = read.source.split(' ', 2);
  const keys = kind === 'jwks' ? read.source : `${kind} ${namespace}/${name}`;
  return { jwt: { ...read.jwt, keys }, fault: '' };
}

/** A route with the name of its keys. */
export interface TokenRoute {
  /** `HTTPRoute default/api`. */
  readonly object: string;
  readonly keys: string;
}

/** The sets that HAProxy can have, each once. */
export function tokenKeySets(
  routes: Iterable<TokenRoute>,
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): readonly TokenKeySet[] {
  const sets = new Map<string, TokenKeySet>();
  const known = new Set<string>();
  for (const { object, keys: name } of routes) {
    if (known.has(`${object} ${name}`)) continue;
    known.add(`${object} ${name}`);
    reads.add(name as Dependency);
    const { content, fault, isMissing, isUnread } = certificates.tokenKeys(name);
    // Who deletes the object trusts its keys no longer; one that is broken, or a URL that does not answer, keeps them.
    const usable = fault !== '' && isMissing ? undefined : content;
    if (usable !== undefined) sets.set(name, { name, fingerprint: usable.fingerprint, keys: usable.keys });
    else if (isUnread === true) sets.set(name, { name, fingerprint: '', keys: [] });
    const ends = usable === undefined ? '; its requests get status 403' : '; the keys that it had stay';
    for (const why of fault === '' ? (usable?.faults ?? []) : [`${fault}${ends}`])
      problems.push({
        object,
        reason: 'InvalidKeys',
        message: `Cannot use ${sourceInWords(name)} for keys of tokens: ${why}`,
      });
  }
  return [...sets.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `ConfigMap "default/keys"`. */
export function sourceInWords(name: string): string {
  const [kind, rest = ''] = name.split(' ', 2);
  const words = kind === 'jwks' ? 'URL' : kind === 'secret' ? 'Secret' : 'ConfigMap';
  return `${words} "${rest}"`;
}
