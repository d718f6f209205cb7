// Basic authentication of routes: what their annotations ask for, and the users that their Secrets have. What cannot be had is
// closed: no client is let in. Pure.

import type { Dependency } from '../../model/desired-state.ts';
import type { Problem, UserList } from '../../model/load-balancer.ts';
import type { RouteAuth } from '../../model/routes.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { RouteOptions } from './route-annotations.ts';

const DEFAULT_REALM = 'Authentication required';

export interface ReadAuth {
  /** undefined: all clients are let in. */
  readonly auth: RouteAuth | undefined;
  /** A sentence; '' if there is none. */
  readonly fault: string;
}

/** `namespace`: of the route. */
export function authOf(options: RouteOptions, namespace: string): ReadAuth {
  const { 'auth-type': type, 'auth-secret': named, 'auth-realm': realm = DEFAULT_REALM } = options;
  if (type === undefined && named === undefined) return { auth: undefined, fault: '' };
  const auth = { secret: '', realm, removesHeader: options['auth-remove-header'] === true };
  const closed = (why: string): ReadAuth => ({
    auth,
    fault: `Cannot authenticate clients: ${why}; its requests get status 403`,
  });
  if (type === 'other') return closed('annotation auth-type is not basic');
  if (named === undefined) return closed('annotation auth-secret names no Secret');
  const [first = '', second] = named.split('/');
  // A Secret of another namespace could be anybody's.
  if (second !== undefined && first !== namespace) return closed(`Secret "${named}" is of another namespace`);
  return { auth: { ...auth, secret: `${namespace}/${second ?? first}` }, fault: '' };
}

/** A route with the Secret of its users: `namespace/name`. */
export interface AuthRoute {
  /** `HTTPRoute default/api`. */
  readonly object: string;
  readonly secret: string;
}

/** The lists that HAProxy can have, each once. */
export function userLists(
  routes: Iterable<AuthRoute>,
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): readonly UserList[] {
  const lists = new Map<string, UserList>();
  const known = new Set<string>();
  for (const { object, secret } of routes) {
    if (known.has(`${object} ${secret}`)) continue;
    known.add(`${object} ${secret}`);
    const name = `secret ${secret}` as const;
    reads.add(name);
    const { content, fault, isMissing } = certificates.users(name);
    // Who deletes the Secret wants its users to be let in no longer; one that is broken or not read yet keeps them.
    const usable = fault !== '' && isMissing ? undefined : content;
    if (usable !== undefined) lists.set(name, { name, fingerprint: usable.fingerprint });
    const ends = usable === undefined ? '; its requests get status 403' : '; the users that it had stay';
    for (const why of fault === '' ? (usable?.faults ?? []) : [`${fault}${ends}`])
      problems.push({
        object,
        reason: 'InvalidUsers',
        message: `Cannot use Secret "${secret}" for users: ${why}`,
      });
  }
  return [...lists.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
