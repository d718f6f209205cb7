// Annotations that mean the same for HTTPRoutes and Ingresses: what their clients may do. Pure.

import { quote } from '../../base/quote.ts';
import type { HeaderChanges, RouteLimits } from '../../model/routes.ts';
import {
  type AnnotationRule,
  BOOL,
  bool,
  cidr,
  list,
  matching,
  number,
  oneOf,
  rule,
  SECRET,
  size,
} from './annotation-values.ts';

const OWN_PREFIX = 'headgate.io/';

/** By the name after the prefix. */
export const ROUTE_ANNOTATIONS = {
  'proxy-body-size': rule(
    size,
    'bytes, with k, m or g',
    'The longest body of a request, by its `Content-Length`; a longer one is answered with 413. A body without one is not counted. 0: no limit.',
  ),
  'whitelist-source-range': rule(
    list(cidr),
    'a list of CIDRs, separated by commas',
    'Only these clients are served; others get 403.',
  ),
  'allowlist-source-range': rule(
    list(cidr),
    'a list of CIDRs, separated by commas',
    'As `whitelist-source-range`.',
  ),
  'denylist-source-range': rule(list(cidr), 'a list of CIDRs, separated by commas', 'These clients get 403.'),
  'limit-rps': rule(
    number(0, 1_000_000),
    'a number',
    'Requests per second from one client; more get 429. 0: no limit.',
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

export interface ReadOptions<T extends AnnotationTable> {
  readonly options: OptionsOf<T>;
  /** A sentence for each value that is not allowed. */
  readonly faults: readonly string[];
  /** Annotations with `prefix` that the table does not have, sorted. */
  readonly ignored: readonly string[];
}

/** `prefix`: whose names mean the same; the agent's own has precedence. */
export function readOptions<T extends AnnotationTable>(
  table: T,
  annotations: Readonly<Record<string, string>>,
  prefix = OWN_PREFIX,
): ReadOptions<T> {
  const options: Record<string, unknown> = {};
  const faults: string[] = [];
  const ignored: string[] = [];
  for (const [full, text] of Object.entries(annotations)) {
    const isOwn = full.startsWith(OWN_PREFIX);
    if (!isOwn && !full.startsWith(prefix)) continue;
    const name = full.slice((isOwn ? OWN_PREFIX : prefix).length);
    const entry = Object.hasOwn(table, name) ? table[name] : undefined;
    if (entry === undefined) {
      if (!isOwn) ignored.push(full);
      continue;
    }
    if (!isOwn && `${OWN_PREFIX}${name}` in annotations) continue;
    const value = entry.parse(text.trim());
    if (value === undefined)
      faults.push(`Annotation "${full}" is ignored: ${quote(text)} is not ${entry.allowed}`);
    else options[name] = value;
  }
  return { options: options as OptionsOf<T>, faults, ignored: ignored.sort() };
}

export function limitsOf(options: RouteOptions): RouteLimits | undefined {
  const allowedCidrs = options['whitelist-source-range'] ?? options['allowlist-source-range'] ?? [];
  const deniedCidrs = options['denylist-source-range'] ?? [];
  const requestRate = options['limit-rps'] ?? 0;
  const bodyBytes = options['proxy-body-size'] ?? 0;
  if (allowedCidrs.length + deniedCidrs.length + requestRate + bodyBytes === 0) return undefined;
  return { allowedCidrs, deniedCidrs, requestRate, bodyBytes };
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
