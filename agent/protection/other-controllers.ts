// Annotations by which Ingresses ask other controllers for protection: an Ingress that was written for one of them and names a
// class of this agent must not be open here. Only whole names count, and what adds comfort is not listed. Values only. Sources:
// the documents of Traefik 1 to 3, HAProxy Ingress, HAProxy's, F5's and the first ingress-nginx controllers.
// Why: docs/design/decisions/0081-a-foreign-status-is-not-taken.md

import { hasRules } from './nginx-snippets.ts';
import { isNotOff, isNotZero } from './protections.ts';

export interface OtherProtectionName {
  /** With its prefix. */
  readonly full: string;
  /** It protects, completes "protects by". */
  readonly by: string;
  /** Names of annotations that protect by the same here; one of them on the same Ingress is in force instead. */
  readonly here: readonly string[];
  /** False for a value that asks for nothing. */
  readonly asks: (value: string) => boolean;
}

type Meaning = Omit<OtherProtectionName, 'full'>;

const isGiven = (value: string): boolean => value.trim() !== '';
const by = (words: string, here: readonly string[] = [], asks = isGiven): Meaning => ({
  ...{ by: words, here, asks },
});

const RANGES = by('ranges of clients', ['whitelist-source-range', 'allowlist-source-range']);
const DENIED = by('ranges of clients that are refused', ['denylist-source-range']);
const USERS = by('users', ['auth-secret']);
const RATE = by('a limit of requests', ['limit-rps', 'limit-rpm'], isNotZero);
const BODIES = by('a limit of bodies', ['proxy-body-size'], isNotZero);
const CONNECTIONS = by('a limit of connections', ['limit-connections'], isNotZero);
const CLIENT_CA = by('authorities of clients', ['auth-tls-secret']);
const SIGN_ON = by('single sign-on', ['auth-url']);
const JWT = by('single sign-on');
const FIREWALL = by('a firewall of requests', [], isNotOff);
const MEMBER_CA = by('authorities of members');
const TLS_ONLY = by('TLS', ['force-ssl-redirect'], isNotOff);
const PASSTHROUGH = by('TLS that members end', ['ssl-passthrough'], isNotOff);
const RULES = by('rules of HAProxy');
const NGINX_RULES = by('rules of nginx', [], hasRules);
const POLICIES = by('policies');

/** Annotations of HAProxy Ingress, under both of its prefixes. */
const OF_HAPROXY_INGRESS: Readonly<Record<string, Meaning>> = {
  'whitelist-source-range': RANGES,
  'allowlist-source-range': RANGES,
  'denylist-source-range': DENIED,
  'auth-type': USERS,
  'auth-secret': USERS,
  'auth-url': SIGN_ON,
  oauth: SIGN_ON,
  'auth-tls-secret': CLIENT_CA,
  'auth-tls-verify-client': { ...CLIENT_CA, asks: (value) => isGiven(value) && value.trim() !== 'off' },
  'limit-rps': RATE,
  'limit-connections': CONNECTIONS,
  'proxy-body-size': { ...BODIES, asks: (value) => value.trim() !== 'unlimited' && isNotZero(value) },
  waf: FIREWALL,
  'secure-verify-ca-secret': MEMBER_CA,
  'ssl-passthrough': PASSTHROUGH,
  'config-backend': RULES,
  'config-backend-early': RULES,
  'config-backend-late': RULES,
};

const BY_PREFIX: Readonly<Record<string, Readonly<Record<string, Meaning>>>> = {
  // Also of Traefik 1 and of ingress-nginx before 0.9.
  'ingress.kubernetes.io/': {
    ...OF_HAPROXY_INGRESS,
    'auth-signin': SIGN_ON,
    'rate-limit': RATE,
    'limit-rpm': RATE,
    'force-ssl-redirect': TLS_ONLY,
    'configuration-snippet': NGINX_RULES,
    'server-snippet': NGINX_RULES,
    'allowed-hosts': by('hosts that are served'),
  },
  'haproxy-ingress.github.io/': OF_HAPROXY_INGRESS,
  'haproxy.org/': {
    'allow-list': RANGES,
    whitelist: RANGES,
    'deny-list': DENIED,
    blacklist: DENIED,
    'auth-type': USERS,
    'auth-secret': USERS,
    'client-ca': CLIENT_CA,
    'rate-limit-requests': RATE,
    'server-ca': MEMBER_CA,
    'ssl-passthrough': PASSTHROUGH,
    'backend-config-snippet': RULES,
  },
  'nginx.org/': {
    'basic-auth-secret': USERS,
    policies: POLICIES,
    'limit-req-rate': RATE,
    'client-max-body-size': BODIES,
    'server-snippets': NGINX_RULES,
    'location-snippets': NGINX_RULES,
  },
  'nginx.com/': { policies: POLICIES, 'jwt-key': JWT },
  'appprotect.f5.com/': { 'app-protect-enable': FIREWALL, 'app-protect-policy': FIREWALL },
  'traefik.ingress.kubernetes.io/': {
    'router.middlewares': by('middlewares'),
    'router.tls.options': { ...CLIENT_CA, asks: (value) => isGiven(value) && value.trim() !== 'default' },
    'router.entrypoints': by('the entry points that serve it', [], isOfOwnEntryPoint),
    'whitelist-source-range': RANGES,
    'auth-type': USERS,
    'auth-secret': USERS,
    'rate-limit': RATE,
  },
};

/** The names that Traefik's own charts use serve everybody; others may be restricted. */
function isOfOwnEntryPoint(value: string): boolean {
  const names = value.split(',').map((each) => each.trim());
  return names.some((each) => !['', 'web', 'websecure', 'http', 'https'].includes(each));
}

/** By the whole name. */
export const OTHER_CONTROLLERS: ReadonlyMap<string, OtherProtectionName> = new Map(
  Object.entries(BY_PREFIX).flatMap(([prefix, names]) =>
    Object.entries(names).map(([name, meaning]) => [prefix + name, { full: prefix + name, ...meaning }]),
  ),
);
