// The one list of what protects: annotations, filters, fields and settings by which an author restricts who is served, and how.
// The rule of them all: what protects and cannot be given, in whole or in part, closes, and is reported to its author; what
// only adds comfort is ignored and reported. Translators ask this list, docs/security.md is made from it. Values only.
// Why: docs/design/decisions/0075-what-protects-closes.md

import { asksOtherwise, hasRules } from './nginx-snippets.ts';

/** Kinds of object whose annotations are read. */
export const KINDS = [
  'Service',
  'Ingress',
  'IngressClass',
  'Gateway',
  'HTTPRoute',
  'GRPCRoute',
  'TLSRoute',
  'TCPRoute',
  'UDPRoute',
] as const;
export type Kind = (typeof KINDS)[number];

/** What is closed. */
export const CLOSES = {
  requests: 'requests get status 403; ports without HTTP refuse connections',
  tls: 'ports that end TLS refuse connections',
  members: 'nothing is sent to the members',
  origins: 'no other site is allowed to read answers',
  trust: 'no proxy is trusted',
} as const;
export type Closes = keyof typeof CLOSES;

/** An annotation, by its name after the prefix `headgate.io/`; on Ingresses also after `nginx.ingress.kubernetes.io/`. */
export interface Protection {
  readonly name: string;
  /** Kinds that can give it; on any other kind it closes. Empty: Headgate does not have it yet. */
  readonly kinds: readonly Kind[];
  readonly closes: Closes;
  /** It protects, completes "protects by". */
  readonly by: string;
  /** False for a value that asks for nothing. */
  readonly asks?: (value: string) => boolean;
}

const ROUTES: readonly Kind[] = ['Ingress', 'HTTPRoute'];
const TLS = { kinds: ['Service'], closes: 'tls' } as const;
const MEMBERS = { kinds: ['Service'], closes: 'members' } as const;
const LIMIT = { kinds: ['Service'], closes: 'requests' } as const;
const OF_ROUTES = { kinds: ROUTES, closes: 'requests' } as const;
const OF_CLASSES = { kinds: ['IngressClass'], closes: 'requests' } as const;
const OF_INGRESSES = { kinds: ['Ingress'], closes: 'requests' } as const;
const CORS = { kinds: ['Ingress'], closes: 'origins' } as const;
const NOWHERE = { kinds: [], closes: 'requests' } as const;

export const isNotOff = (value: string): boolean => !/^(?:false|off|no|0)?$/i.test(value.trim());
export const isNotZero = (value: string): boolean => !/^0*$/.test(value.trim());

export const ANNOTATIONS_THAT_PROTECT: readonly Protection[] = [
  { name: 'mode', ...LIMIT, by: 'TLS, and by headers that clients cannot forge' },
  { name: 'tls-certificate', ...TLS, by: 'TLS' },
  { name: 'tls-min-version', ...TLS, by: 'a lowest version of TLS' },
  { name: 'tls-ciphers', ...TLS, by: 'ciphers' },
  { name: 'tls-client-certificates', ...TLS, by: 'certificates of clients' },
  { name: 'tls-client-ca', ...TLS, by: 'authorities of clients' },
  { name: 'tls-client-crl', ...TLS, by: 'revocation lists' },
  { name: 'member-tls', ...MEMBERS, by: 'TLS to members' },
  { name: 'member-tls-ca', ...MEMBERS, by: 'authorities of members' },
  { name: 'member-tls-name', ...MEMBERS, by: 'the name of members' },
  { name: 'rate-limit', ...LIMIT, by: 'a limit of new connections' },
  { name: 'connection-limit', ...LIMIT, by: 'a limit of connections' },
  { name: 'member-connection-limit', ...LIMIT, by: 'a limit of connections to a member' },
  {
    name: 'address-pool',
    kinds: ['Service', 'Gateway', 'IngressClass'],
    closes: 'requests',
    by: 'the network that reaches it',
  },
  {
    name: 'trusted-proxies',
    kinds: ['Service', 'Gateway', 'IngressClass'],
    closes: 'trust',
    by: 'the proxies whose headers are believed',
  },
  { name: 'whitelist-source-range', ...OF_ROUTES, by: 'ranges of clients' },
  { name: 'allowlist-source-range', ...OF_ROUTES, by: 'ranges of clients' },
  { name: 'denylist-source-range', ...OF_ROUTES, by: 'ranges of clients that are refused' },
  { name: 'limit-rps', ...OF_ROUTES, by: 'a limit of requests', asks: isNotZero },
  { name: 'limit-rpm', ...OF_ROUTES, by: 'a limit of requests', asks: isNotZero },
  { name: 'limit-connections', ...OF_ROUTES, by: 'a limit of requests at once', asks: isNotZero },
  { name: 'proxy-body-size', ...OF_ROUTES, by: 'a limit of bodies', asks: isNotZero },
  { name: 'auth-type', ...OF_ROUTES, by: 'passwords' },
  { name: 'auth-secret', ...OF_ROUTES, by: 'users' },
  { name: 'auth-remove-header', ...OF_ROUTES, by: 'a password that members do not get', asks: isNotOff },
  { name: 'jwt', ...OF_ROUTES, by: 'tokens' },
  { name: 'auth-tls-secret', ...OF_INGRESSES, by: 'authorities of clients' },
  {
    name: 'auth-tls-verify-client',
    ...OF_INGRESSES,
    by: 'certificates of clients',
    asks: (value) => value !== 'off',
  },
  { name: 'auth-tls-match-cn', ...OF_INGRESSES, by: 'names in certificates of clients' },
  { name: 'ssl-passthrough', ...OF_INGRESSES, by: 'TLS that members end', asks: isNotOff },
  { name: 'force-ssl-redirect', ...OF_INGRESSES, by: 'TLS', asks: isNotOff },
  {
    name: 'backend-protocol',
    ...OF_INGRESSES,
    by: 'TLS to members',
    asks: (value) => value.toUpperCase() !== 'HTTP',
  },
  { name: 'cors-allow-origin', ...CORS, by: 'origins' },
  { name: 'cors-allow-methods', ...CORS, by: 'methods of other origins' },
  { name: 'cors-allow-headers', ...CORS, by: 'headers of other origins' },
  { name: 'cors-allow-credentials', ...CORS, by: 'credentials only for named origins', asks: isNotOff },
  { name: 'auth-url', ...OF_INGRESSES, by: 'single sign-on' },
  { name: 'auth-signin', ...OF_INGRESSES, by: 'single sign-on' },
  { name: 'auth-method', ...OF_INGRESSES, by: 'what an authorization server is asked' },
  { name: 'auth-response-headers', ...OF_INGRESSES, by: 'headers that clients cannot forge' },
  { name: 'auth-proxy-set-headers', ...NOWHERE, by: 'what an authorization server is asked' },
  { name: 'enable-global-auth', ...OF_INGRESSES, by: 'single sign-on', asks: isNotOff },
  { name: 'global-auth-url', ...OF_CLASSES, by: 'single sign-on' },
  { name: 'global-auth-method', ...OF_CLASSES, by: 'what an authorization server is asked' },
  { name: 'global-auth-signin', ...OF_CLASSES, by: 'single sign-on' },
  { name: 'global-auth-response-headers', ...OF_CLASSES, by: 'headers that clients cannot forge' },
  { name: 'auth-tls-verify-depth', ...OF_INGRESSES, by: 'a depth of chains of clients' },
  { name: 'enable-modsecurity', ...NOWHERE, by: 'a firewall of requests', asks: isNotOff },
  { name: 'enable-owasp-core-rules', ...NOWHERE, by: 'a firewall of requests', asks: isNotOff },
  { name: 'enable-owasp-modsecurity-crs', ...NOWHERE, by: 'a firewall of requests', asks: isNotOff },
  { name: 'modsecurity-snippet', ...NOWHERE, by: 'a firewall of requests' },
  { name: 'configuration-snippet', ...NOWHERE, by: 'rules of nginx', asks: hasRules },
  { name: 'server-snippet', ...NOWHERE, by: 'rules of nginx', asks: hasRules },
  { name: 'stream-snippet', ...NOWHERE, by: 'rules of nginx', asks: hasRules },
  { name: 'auth-snippet', ...NOWHERE, by: 'rules of nginx', asks: asksOtherwise },
  // Some write attributes behind the path.
  {
    name: 'proxy-cookie-path',
    ...NOWHERE,
    by: 'attributes of cookies',
    asks: (value) => /;|secure|httponly|samesite/i.test(value),
  },
  { name: 'ssl-ciphers', ...NOWHERE, by: 'ciphers' },
  { name: 'limit-rate', ...NOWHERE, by: 'a limit of bytes', asks: isNotZero },
  { name: 'global-rate-limit', ...NOWHERE, by: 'a limit of requests', asks: isNotZero },
  { name: 'proxy-ssl-verify', ...OF_INGRESSES, by: 'authorities of members', asks: isNotOff },
  { name: 'proxy-ssl-verify-depth', ...OF_INGRESSES, by: 'a depth of chains of members' },
  { name: 'proxy-ssl-secret', ...OF_INGRESSES, by: 'authorities of members, and a certificate for them' },
  {
    name: 'proxy-ssl-ciphers',
    ...OF_INGRESSES,
    by: 'ciphers to members',
    asks: (value) => value.trim() !== 'DEFAULT',
  },
  { name: 'proxy-ssl-protocols', ...OF_INGRESSES, by: 'versions of TLS to members' },
];

/** What protects besides annotations: for documents and tests. */
export interface OtherProtection {
  readonly name: string;
  readonly of: string;
  readonly by: string;
  readonly otherwise: string;
}

export const FILTERS_AND_FIELDS: readonly OtherProtection[] = [
  {
    name: 'loadBalancerSourceRanges',
    of: 'Service',
    by: 'ranges of clients',
    otherwise:
      'A wrong range lets no client in; an object with a name that is nearly this one, or with it beside `spec`, is refused',
  },
  {
    name: 'service.beta.kubernetes.io/load-balancer-source-ranges',
    of: 'Service',
    by: 'ranges of clients',
    otherwise: 'A wrong range lets no client in; a list without a range closes the ports',
  },
  {
    name: 'filters',
    of: 'HTTPRoute, GRPCRoute',
    by: 'what an extension checks',
    otherwise: 'A rule with a filter that Headgate does not have keeps its match and answers 500',
  },
  {
    name: 'matches',
    of: 'HTTPRoute, GRPCRoute, Ingress',
    by: 'the rule of a narrower path',
    otherwise:
      'A rule that cannot be served keeps its match and answers 500; its requests never get a wider rule',
  },
  {
    name: 'allowedRoutes',
    of: 'Gateway, ListenerSet',
    by: 'the namespaces whose routes attach',
    otherwise: 'A selector that cannot be read, or a kind that is not known, allows no route',
  },
  {
    name: 'ReferenceGrant',
    of: 'Secrets, Services, ConfigMaps of other namespaces',
    by: 'who may name them',
    otherwise: 'Without a grant a reference is refused',
  },
  {
    name: 'BackendTLSPolicy',
    of: 'Service',
    by: 'verified members',
    otherwise:
      'Requests get status 503 while it cannot be carried out; with a wrong `sectionName`, group or kind of a target, those to each port that it can mean and that no other policy covers',
  },
  {
    name: 'tls.frontend.validation',
    of: 'Gateway',
    by: 'certificates of clients',
    otherwise: 'Without a usable authority the listener is not accepted, and handshakes are refused',
  },
];

export const SETTINGS_THAT_PROTECT: readonly OtherProtection[] = [
  {
    name: 'hostsOfOneNamespace',
    of: 'settings',
    by: 'the namespace that owns a host',
    otherwise:
      'The agent does not start with a wrong or missing value, and a reload of the settings keeps those in force',
  },
  {
    name: 'enforceNetworkPolicy',
    of: 'settings',
    by: 'the clients that NetworkPolicies of members let in',
    otherwise: 'As above; what a policy lets in and an address cannot tell is refused',
  },
  {
    name: 'dotSegments',
    of: 'settings',
    by: 'one reading of paths',
    otherwise: 'As above',
  },
  {
    name: 'ambiguousPaths',
    of: 'settings',
    by: 'one reading of paths',
    otherwise: 'As above',
  },
  {
    name: 'maxRsaBits',
    of: 'settings',
    by: 'the length of RSA keys of certificates',
    otherwise: 'As above',
  },
  {
    name: 'defaults',
    of: 'settings',
    by: 'trusted proxies, versions of TLS, ciphers and limits of all Services',
    otherwise: 'As above',
  },
  {
    name: 'refusedMembers',
    of: 'settings',
    by: 'addresses that nothing is sent to',
    otherwise: 'As above',
  },
  {
    name: 'memberRanges',
    of: 'settings',
    by: 'the addresses that requests are sent to',
    otherwise: 'As above',
  },
  {
    name: 'membersWithoutTarget',
    of: 'settings',
    by: 'members that Kubernetes has chosen',
    otherwise: 'As above',
  },
];
