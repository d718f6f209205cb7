// Annotations that mean the same for HTTPRoutes and Ingresses: what their clients may do. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import { quote } from '../../base/quote.ts';
import type { HeaderChanges, RouteLimits } from '../../model/routes.ts';
import { closed, judgeNames, NGINX_PREFIX, OWN_PREFIX, protection } from '../../protection/judge-names.ts';
import type { Closes, Kind } from '../../protection/protections.ts';
import {
  type AnnotationRule,
  BOOL,
  bool,
  cidr,
  list,
  listRule,
  matching,
  number,
  oneOf,
  rule,
  SECRET,
  size,
} from './annotation-values.ts';
import { readJwt } from './jwt-annotation.ts';

/** By the name after the prefix. */
export const ROUTE_ANNOTATIONS = {
  'proxy-body-size': rule(
    size,
    'bytes, with k, m or g',
    'The longest body of a request, by its `Content-Length`; a longer one is answered with 413. A body without one is not counted. 0: no limit.',
  ),
  'whitelist-source-range': listRule(
    cidr,
    'a list of CIDRs, separated by commas',
    'Only these clients are served; others get 403.',
  ),
  'allowlist-source-range': listRule(
    cidr,
    'a list of CIDRs, separated by commas',
    'As `whitelist-source-range`.',
  ),
  'denylist-source-range': rule(list(cidr), 'a list of CIDRs, separated by commas', 'These clients get 403.'),
  'limit-rps': rule(
    number(0, 1_000_000),
    'a number',
    'Requests per second from one client; more get 429. 0: no limit.',
  ),
  'limit-rpm': rule(
    number(0, 1_000_000),
    'a number',
    'Requests per minute from one client, in any 60 seconds and without bursts; more get 429. 0: no limit.',
  ),
  'limit-connections': rule(
    number(0, 1_000_000),
    'a number',
    'Requests at once from one client, WebSockets and streams among them; more get 429. 0: no limit.',
  ),
  'auth-type': rule(
    (text) => (text === 'basic' ? 'basic' : 'other'),
    'basic',
    'Clients need a user name and a password (RFC 7617). Another value lets no client in.',
  ),
  'auth-secret': rule(
    matching(SECRET),
    'NAME or NAMESPACE/NAME of a Secret',
    'The Secret with the users, in the namespace of the object: a field `auth` with lines as `htpasswd` writes them, or a field for each user. Hashes are `$2y$` (bcrypt) with a cost of 8 at most, `$5$` or `$6$`. Without it, and while none can be used, clients get 403. A change is a reload.',
  ),
  'auth-realm': rule(
    matching(/^[A-Za-z0-9 ._-]{1,100}$/),
    'at most 100 letters, digits, blanks and characters of . _ -',
    'What browsers show. Default: Authentication required.',
  ),
  'auth-secret-type': rule(
    oneOf('auth-file', 'auth-map'),
    'auth-file or auth-map',
    'Not needed: a Secret with a field `auth` is a file, another one a map.',
  ),
  'auth-remove-header': rule(bool, BOOL, 'Members do not get the header `Authorization`. Default: they do.'),
  jwt: rule(
    readJwt,
    'a mapping',
    'Clients need a [JSON Web Token](jwt.md), signed by one of these keys; others get 401, and all of them 403 while no key can be used.',
  ),
  hsts: rule(
    number(0, 86_400 * 365 * 10),
    'seconds',
    'Browsers come by https only for so long (the header `Strict-Transport-Security`).',
  ),
} as const;

export type AnnotationTable = Readonly<Record<string, AnnotationRule<unknown>>>;

export type OptionsOf<T extends AnnotationTable> = {
  readonly [N in keyof T]?: NonNullable<ReturnType<T[N]['parse']>>;
};

export type RouteOptions = OptionsOf<typeof ROUTE_ANNOTATIONS>;

/** What the annotations of a route ask for. */
export type RouteAnnotations = Pick<ReadOptions<typeof ROUTE_ANNOTATIONS>, 'options' | 'isClosed' | 'faults'>;

const NO_ANNOTATIONS: AnnotationTable = {};

/** Only HTTPRoutes have any; a route of another kind that asks for protection by one is closed. */
export function routeAnnotations(
  kind: Kind,
  annotations: Readonly<Record<string, string>>,
): RouteAnnotations {
  if (kind === 'HTTPRoute') return readOptions(ROUTE_ANNOTATIONS, kind, annotations);
  return readOptions(NO_ANNOTATIONS, kind, annotations) as RouteAnnotations;
}

export interface ReadOptions<T extends AnnotationTable> {
  readonly options: OptionsOf<T>;
  /** A sentence for each annotation that cannot be used as it is. */
  readonly faults: readonly string[];
  /** What protects cannot be given: no client is let in. */
  readonly isClosed: boolean;
  /** What its requests become cannot be carried out: they get status 500. */
  readonly isBroken: boolean;
  /** Protections that are missing with the author's consent, a sentence each. */
  readonly without: readonly string[];
  /** Annotations that the table does not have and that add comfort only, sorted. */
  readonly ignored: readonly string[];
}

/** With a wrong value, requests would get what their author did not mean. */
const CHANGES_REQUESTS = new Set(['rewrite-target', 'use-regex', 'permanent-redirect', 'temporal-redirect']);

/** The agent's own prefix has precedence over that of ingress-nginx, which Ingresses may have. `consent`: see judgeNames(). */
export function readOptions<T extends AnnotationTable>(
  table: T,
  kind: Kind,
  annotations: Readonly<Record<string, string>>,
  consent?: ReadonlySet<string>,
): ReadOptions<T> {
  const options: Record<string, unknown> = {};
  const faults: string[] = [];
  const closes = new Set<Closes>();
  let isBroken = false;
  const takes = namesOf(table);
  for (const [full, text] of Object.entries(annotations)) {
    const isOwn = full.startsWith(OWN_PREFIX);
    if (!isOwn && !(kind === 'Ingress' && full.startsWith(NGINX_PREFIX))) continue;
    const name = full.slice((isOwn ? OWN_PREFIX : NGINX_PREFIX).length);
    const entry = Object.hasOwn(table, name) ? table[name] : undefined;
    if (entry === undefined || (!isOwn && `${OWN_PREFIX}${name}` in annotations)) continue;
    const value = entry.parse(text.trim());
    if (value !== undefined) {
      options[name] = value;
      continue;
    }
    const protects = protection(name);
    const { good, wrong } = entriesOf(entry, text);
    if (good.length > 0) options[name] = good;
    else if (protects !== undefined) closes.add(protects.closes);
    isBroken ||= CHANGES_REQUESTS.has(name);
    faults.push(
      good.length > 0
        ? `Annotation "${full}" is used in part: ${quote(wrong[0] ?? '')} is not ${entry.allowed}, and lets no client in`
        : `Annotation "${full}" ${CHANGES_REQUESTS.has(name) ? 'cannot be carried out' : 'is ignored'}: ${quote(text)} is not ${entry.allowed}${consequence(kind, name)}`,
    );
  }
  const [white, allow] = [options['whitelist-source-range'], options['allowlist-source-range']];
  if (white !== undefined && allow !== undefined && String(white) !== String(allow)) {
    closes.add('requests');
    faults.push(
      `Annotations "whitelist-source-range" and "allowlist-source-range" differ: remove one; ${closed(kind)}`,
    );
  }
  const names = judgeNames(kind, annotations, takes, consent);
  // Without a usable list no other site is allowed to read.
  if (closes.has('origins')) delete options['enable-cors'];
  return {
    options: options as OptionsOf<T>,
    faults: [...faults, ...names.faults],
    isClosed: names.closedBy.length > 0 || closes.has('requests'),
    isBroken,
    without: names.without,
    ignored: names.ignored,
  };
}

const namesOf = memoByIdentity((table: AnnotationTable): ReadonlySet<string> => new Set(Object.keys(table)));

function entriesOf({ entry }: AnnotationRule<unknown>, text: string) {
  if (entry === undefined) return { good: [], wrong: [] };
  const items = text.split(',').map((each) => each.trim());
  const good = items.map(entry).filter((each) => each !== undefined);
  return { good, wrong: items.filter((each) => entry(each) === undefined) };
}

/** What follows from a value that is not allowed. */
function consequence(kind: Kind, name: string): string {
  if (CHANGES_REQUESTS.has(name)) return '; its requests get status 500';
  const closes = protection(name)?.closes;
  if (closes === 'origins') return '; no other site may read its answers';
  return closes === undefined ? '' : `; ${closed(kind)}`;
}

export function limitsOf(options: RouteOptions): RouteLimits | undefined {
  const { 'whitelist-source-range': white, 'allowlist-source-range': allow } = options;
  const allowedCidrs = white ?? allow ?? [];
  const deniedCidrs = options['denylist-source-range'] ?? [];
  const requestRate = options['limit-rps'] ?? 0;
  const minuteRate = options['limit-rpm'] ?? 0;
  const bodyBytes = options['proxy-body-size'] ?? 0;
  const requestsAtOnce = options['limit-connections'] ?? 0;
  const limits = requestRate + minuteRate + requestsAtOnce + bodyBytes;
  if (allowedCidrs.length + deniedCidrs.length + limits === 0) return undefined;
  return {
    allowedCidrs,
    deniedCidrs,
    requestRate,
    ...(minuteRate > 0 && { minuteRate }),
    ...(requestsAtOnce > 0 && { requestsAtOnce }),
    bodyBytes,
  };
}

/** The changes of a rule with those of the annotations, which a filter for the same header overrules. */
export function withHsts(
  { hsts }: RouteOptions,
  changes: HeaderChanges | undefined,
): HeaderChanges | undefined {
  const name = 'Strict-Transport-Security';
  const { set = [], add = [], remove = [] } = changes ?? {};
  const own = [...set, ...add].map((header) => header.name).concat(remove);
  if (hsts === undefined || own.some((each) => each.toLowerCase() === name.toLowerCase())) return changes;
  return { set: [...set, { name, value: `max-age=${hsts}` }], add, remove };
}
