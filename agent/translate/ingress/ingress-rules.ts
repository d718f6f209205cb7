// One Ingress as entries of routes by host: what its paths do on port 80 and on port 443, and its part of other Ingresses as a
// canary. Pure.

import type { Ingress, IngressBackend } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Service } from '../../kubernetes/objects.ts';
import { poolKey, poolListener } from '../../model/names.ts';
import type { PoolUse } from '../../model/pool-uses.ts';
import type {
  ForwardAction,
  HeaderChanges,
  PathRewrite,
  RedirectAction,
  RouteEntry,
  RouteMatch,
  RouteRule,
} from '../../model/routes.ts';
import {
  GRPC_PROFILE,
  GRPC_TLS_PROFILE,
  HTTP_PROFILE,
  TLS_PROFILE,
  withPersistence,
} from '../pool/pool-profile.ts';
import type { RouteEntries } from '../routes/host-routes.ts';
import { limitsOf, withHsts } from '../routes/route-annotations.ts';
import { authOf } from '../routes/route-users.ts';
import { corsOf } from './ingress-cors.ts';
import { full, plainMatch, readPath } from './ingress-paths.ts';
import { type IngressOptions, readIngressOptions } from './nginx-annotations.ts';

/** What an Ingress does with the requests of one host. */
export interface HostEntries {
  /** '' for all hosts. */
  readonly host: string;
  readonly plain: RouteEntries;
  readonly secure: RouteEntries;
}

/** A part of the requests that another Ingress has. */
export interface Canary {
  readonly host: string;
  readonly match: RouteMatch;
  readonly rule: RouteRule & { readonly action: ForwardAction };
  readonly weight: number;
  readonly total: number;
}

export interface ReadIngress {
  readonly options: IngressOptions;
  readonly hosts: readonly HostEntries[];
  /** For what no path of any Ingress matches. */
  readonly fallback: HostEntries | undefined;
  readonly canaries: readonly Canary[];
  readonly uses: readonly PoolUse[];
  /** `namespace/name` of each Service that is named. */
  readonly services: ReadonlySet<string>;
  /** The Secret of its users; '' for none. */
  readonly usersSecret: string;
  readonly faults: readonly string[];
  /** Names of annotations that have no effect. */
  readonly ignored: readonly string[];
}

export type FindService = (key: string) => Service | undefined;

export function readIngress(ingress: Ingress, service: FindService): ReadIngress {
  const { options, faults, ignored } = readIngressOptions(ingress.annotations);
  const { auth, fault } = authOf(options, ingress.namespace);
  const rules = new Rules(ingress, options, service, [...faults, fault].filter(Boolean), auth);
  const isCanary = options.canary === true;
  const secureHosts = new Set(ingress.tls.flatMap(({ hosts }) => (hosts.length > 0 ? hosts : [''])));
  const byHost = new Map<string, RouteEntry[]>();
  for (const { host, paths } of ingress.rules) {
    const entries = byHost.get(host) ?? [];
    byHost.set(host, entries);
    for (const path of paths) {
      const read = readPath(path, options);
      if (typeof read === 'string')
        rules.faults.push(`A path of host "${host || '*'}" is not served: ${read}`);
      else entries.push({ match: read.match, rule: rules.next(path.backend, read.rewrite) });
    }
    // The host of a rule without paths goes to the default backend.
    if (paths.length === 0 && ingress.defaultBackend !== undefined)
      entries.push({ match: plainMatch('/', 'Prefix'), rule: rules.next(ingress.defaultBackend, undefined) });
  }
  const hosts: HostEntries[] = [];
  const canaries: Canary[] = [];
  for (const [host, entries] of byHost) {
    if (isCanary) {
      canaries.push(...canariesOf(host, entries, options));
      continue;
    }
    const isSecure = secureHosts.has(host) || secureHosts.has(wildcardOf(host)) || secureHosts.has('');
    for (const name of [host, ...(options['server-alias'] ?? [])])
      hosts.push(hostEntries(ingress, name, rules.withAppRoot(entries), isSecure, options));
    const other = options['from-to-www-redirect'] === true ? otherWww(host) : '';
    if (other !== '') hosts.push(hostEntries(ingress, other, [rules.toHost(host)], isSecure, options));
  }
  const { defaultBackend } = ingress;
  const fallback =
    defaultBackend === undefined || isCanary
      ? undefined
      : hostEntries(
          // After every rule, whatever their age and name.
          { created: Number.POSITIVE_INFINITY, key: `~${ingress.key}` },
          '',
          [{ match: plainMatch('/', 'Prefix'), rule: rules.next(defaultBackend, undefined) }],
          false,
          options,
        );
  return {
    options,
    hosts,
    fallback,
    canaries,
    uses: rules.uses,
    services: rules.services,
    usersSecret: auth?.secret ?? '',
    faults: rules.faults,
    ignored,
  };
}

/** `*.example.org` for `a.example.org`. */
function wildcardOf(host: string): string {
  return host.replace(/^[^.]*/, '*');
}

function otherWww(host: string): string {
  if (host === '' || host.startsWith('*.')) return '';
  return host.startsWith('www.') ? host.slice('www.'.length) : `www.${host}`;
}

function hostEntries(
  { created, key }: Pick<Ingress, 'created' | 'key'>,
  host: string,
  entries: readonly RouteEntry[],
  hasTls: boolean,
  options: IngressOptions,
): HostEntries {
  const secure = { created, key, entries };
  const toHttps = options['force-ssl-redirect'] === true || (hasTls && options['ssl-redirect'] !== false);
  const plain = toHttps ? { created, key, entries: entries.map(redirected) } : secure;
  return { host, plain, secure };
}

const TO_HTTPS: RedirectAction = {
  kind: 'redirect',
  status: 308,
  scheme: 'https',
  hostname: '',
  port: 0,
  path: undefined,
};

function redirected({ match, rule: { name, route } }: RouteEntry): RouteEntry {
  return {
    match,
    rule: { name, route, action: TO_HTTPS, cors: undefined, responseHeaders: undefined, limits: undefined },
  };
}

function canariesOf(
  host: string,
  entries: readonly RouteEntry[],
  options: IngressOptions,
): readonly Canary[] {
  const header = options['canary-by-header'];
  const value = options['canary-by-header-value'] ?? 'always';
  const headers = header === undefined ? [] : [{ name: header.toLowerCase(), kind: 'exact' as const, value }];
  return entries.flatMap(({ match, rule }) => {
    const { action } = rule;
    if (action.kind !== 'forward') return [];
    const weight = options['canary-weight'] ?? 0;
    const total = options['canary-weight-total'] ?? 100;
    return [{ host, match: { ...match, headers }, rule: { ...rule, action }, weight, total }];
  });
}

/** The rules of one Ingress, in their order. */
class Rules {
  readonly faults: string[];
  readonly services = new Set<string>();
  readonly #uses = new Map<string, PoolUse>();
  readonly #ingress: Ingress;
  readonly #options: IngressOptions;
  readonly #service: FindService;
  readonly #common: Pick<RouteRule, 'cors' | 'responseHeaders' | 'limits' | 'auth'>;
  #count = 0;

  constructor(
    ingress: Ingress,
    options: IngressOptions,
    service: FindService,
    faults: string[],
    auth: RouteRule['auth'],
  ) {
    this.#ingress = ingress;
    this.#options = options;
    this.#service = service;
    this.faults = faults;
    this.#common = {
      cors: corsOf(options),
      responseHeaders: withHsts(options, undefined),
      limits: limitsOf(options),
      ...(auth && { auth }),
    };
  }

  get uses(): readonly PoolUse[] {
    return [...this.#uses.values()];
  }

  next(backend: IngressBackend, rewrite: PathRewrite | undefined): RouteRule {
    return this.#rule(this.#redirect() ?? this.#action(backend, rewrite));
  }

  /** All of a host to another host. */
  toHost(hostname: string): RouteEntry {
    const action: RedirectAction = { ...TO_HTTPS, scheme: '', hostname };
    return { match: plainMatch('/', 'Prefix'), rule: this.#rule(action) };
  }

  withAppRoot(entries: readonly RouteEntry[]): readonly RouteEntry[] {
    const root = this.#options['app-root'];
    if (root === undefined) return entries;
    const action: RedirectAction = { ...TO_HTTPS, status: 302, scheme: '', path: full(root) };
    return [{ match: plainMatch('/', 'Exact'), rule: this.#rule(action) }, ...entries];
  }

  #rule(action: RouteRule['action']): RouteRule {
    const route = `Ingress ${this.#ingress.key}`;
    return { name: `${route}#${this.#count++}`, route, action, ...this.#common };
  }

  /** Of the annotations that send all requests elsewhere. */
  #redirect(): RedirectAction | undefined {
    const permanent = this.#options['permanent-redirect'];
    const target = permanent ?? this.#options['temporal-redirect'];
    if (target === undefined) return undefined;
    const code =
      permanent === undefined
        ? this.#options['temporal-redirect-code']
        : this.#options['permanent-redirect-code'];
    return {
      kind: 'redirect',
      status: Number(code ?? (permanent === undefined ? 302 : 301)) as RedirectAction['status'],
      scheme: target.protocol === 'https:' ? 'https' : 'http',
      hostname: target.hostname,
      port: Number(target.port),
      path: full(target.pathname),
    };
  }

  #action(backend: IngressBackend, rewrite: PathRewrite | undefined): RouteRule['action'] {
    if (backend.kind === 'resource') {
      this.faults.push(
        `The backend "${backend.resource}" is not a Service: its requests get status 500; name a Service`,
      );
      return { kind: 'answer', status: 500 };
    }
    const vhost = this.#options['upstream-vhost'] ?? '';
    const timeout = Math.max(
      this.#options['proxy-read-timeout'] ?? 0,
      this.#options['proxy-send-timeout'] ?? 0,
    );
    return {
      kind: 'forward',
      backends: [
        { pool: this.#pool(backend), weight: 1, requestHeaders: undefined, responseHeaders: undefined },
      ],
      failure: 503,
      requestHeaders: requestHeaders(this.#options),
      rewrite: rewrite === undefined && vhost === '' ? undefined : { hostname: vhost, path: rewrite },
      mirrors: [],
      timeout,
    };
  }

  #pool({ name, port: number, portName }: Extract<IngressBackend, { kind: 'service' }>): string | undefined {
    const { namespace } = this.#ingress;
    const key = `${namespace}/${name}`;
    this.services.add(key);
    const service = this.#service(key);
    const port = service?.ports.find(
      (each) => each.protocol === 'TCP' && (portName === '' ? each.port === number : each.name === portName),
    );
    if (service === undefined || port === undefined) {
      const wanted = portName === '' ? String(number) : `"${portName}"`;
      const why = service === undefined ? 'it does not exist' : `it has no TCP port ${wanted}`;
      this.faults.push(`Cannot send to Service "${key}": ${why}; its requests get status 503`);
      return undefined;
    }
    const pool = poolKey(namespace, name, profileOf(this.#options));
    const listener = poolListener(pool, port.port);
    this.#uses.set(listener, { pool, port: port.port });
    return listener;
  }
}

function profileOf({ 'backend-protocol': protocol = 'HTTP', affinity }: IngressOptions): string {
  const profile = { HTTP: HTTP_PROFILE, HTTPS: TLS_PROFILE, GRPC: GRPC_PROFILE, GRPCS: GRPC_TLS_PROFILE }[
    protocol
  ];
  return affinity === undefined ? profile : withPersistence(profile);
}

function requestHeaders({ 'x-forwarded-prefix': prefix }: IngressOptions): HeaderChanges | undefined {
  if (prefix === undefined) return undefined;
  return { set: [{ name: 'X-Forwarded-Prefix', value: prefix }], add: [], remove: [] };
}
