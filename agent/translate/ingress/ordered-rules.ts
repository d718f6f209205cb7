// The rules of one Ingress, in the order of its paths: the pool, the answer or the redirect of each, and what all of them have from
// the annotations. Pure.

import type { Ingress, IngressBackend } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import { poolKey, poolListener } from '../../model/names.ts';
import type { AskedTls, PoolUse } from '../../model/pool-uses.ts';
import type {
  AnswerAction,
  CustomErrors,
  ForwardAction,
  HeaderChanges,
  PathRewrite,
  RedirectAction,
  RouteEntry,
  RouteRule,
} from '../../model/routes.ts';
import {
  GRPC_PROFILE,
  GRPC_TLS_PROFILE,
  HTTP_PROFILE,
  TCP_PROFILE,
  TLS_PROFILE,
  withAskedTls,
  withHash,
  withPersistence,
  withRetry,
} from '../pool/pool-profile.ts';
import { limitsOf, withHsts } from '../routes/route-annotations.ts';
import { customErrorsOf } from './custom-errors.ts';
import type { AskedService, ReadExternalAuth } from './external-auth.ts';
import { corsOf } from './ingress-cors.ts';
import { plainMatch } from './ingress-paths.ts';
import { nextUpstreamOf } from './next-upstream.ts';
import type { IngressOptions } from './nginx-annotations.ts';
import type { PathEntries } from './path-entries.ts';
import { isOfChallenges, TO_HTTPS } from './plain-http.ts';
import { targetOf } from './rewrite-target.ts';
import { sessionCookieOf } from './session-cookie.ts';

export type FindService = (key: string) => Service | undefined;

/** What cannot be carried out keeps its match. */
export const BROKEN = { kind: 'answer', status: 500 } as const;

interface RulesOptions {
  readonly ingress: Ingress;
  readonly options: IngressOptions;
  readonly service: FindService;
  /** Further ones are added. */
  readonly faults: string[];
  readonly guards: {
    readonly auth: RouteRule['auth'];
    readonly jwt: RouteRule['jwt'];
    readonly external: ReadExternalAuth;
    readonly memberTls: AskedTls | undefined;
  };
  readonly refusal: AnswerAction | undefined;
}

type ServiceBackend = Extract<IngressBackend, { kind: 'service' }>;

/** The rules of one Ingress, in their order. */
export class Rules {
  readonly faults: string[];
  readonly pathFaults: string[] = [];
  readonly services = new Set<string>();
  readonly #uses = new Map<string, PoolUse>();
  readonly #ingress: Ingress;
  readonly #options: IngressOptions;
  readonly #service: FindService;
  readonly #common: Pick<
    RouteRule,
    'cors' | 'responseHeaders' | 'limits' | 'certificateName' | 'auth' | 'jwt'
  >;
  readonly #cookie: ForwardAction['cookie'];
  readonly #fallback: string | undefined;
  readonly #codes: readonly number[];
  readonly #asked: AskedService | undefined;
  readonly #memberTls: AskedTls | undefined;
  /** The answer of all rules. */
  readonly #refusal: AnswerAction | undefined;
  #count = 0;

  constructor({ ingress, options, service, faults, guards, refusal }: RulesOptions) {
    const { auth, jwt, external, memberTls } = guards;
    this.#asked = external.asked;
    this.#memberTls = memberTls;
    if (external.service !== '') this.services.add(external.service);
    const { use } = external;
    if (use !== undefined) this.#uses.set(poolListener(use.pool, use.port), use);
    this.#ingress = ingress;
    this.#options = options;
    this.#cookie = sessionCookieOf(options);
    this.#service = service;
    this.faults = faults;
    this.#refusal = refusal;
    this.#fallback = this.#defaultBackend(options['default-backend']);
    this.#codes = customErrorsOf(options).codes;
    const { cors, fault } = corsOf(options);
    if (fault !== '') faults.push(fault);
    this.#common = {
      cors: refusal === undefined ? cors : undefined,
      responseHeaders: withHsts(options, undefined),
      limits: limitsOf(options),
      ...(options['auth-tls-match-cn'] && { certificateName: options['auth-tls-match-cn'] }),
      ...(auth && { auth }),
      ...(jwt && { jwt }),
    };
  }

  /** A path, or a backend, that is not served. */
  unserved(fault: string): void {
    this.faults.push(fault);
    this.pathFaults.push(fault);
  }

  get uses(): readonly PoolUse[] {
    return [...this.#uses.values()];
  }

  /** `path`: of the Ingress. The class's own authorization server is not asked about challenges, as in ingress-nginx. */
  next(backend: IngressBackend, rewrite: PathRewrite | undefined, path = ''): RouteRule {
    const rule = this.#rule(
      this.#redirect() ?? this.#rewriteElsewhere(rewrite) ?? this.#action(backend, rewrite),
    );
    const asked = this.#asked;
    if (asked === undefined || rule.action.kind !== 'forward' || (asked.isOfClass && isOfChallenges(path)))
      return rule;
    return { ...rule, externalAuth: asked.externalAuth };
  }

  /** It cannot be carried out. */
  broken(): RouteRule {
    return this.#rule(BROKEN);
  }

  /** All of a host to another host. */
  toHost(hostname: string): RouteEntry {
    const action: RedirectAction = { ...TO_HTTPS, scheme: '', hostname };
    return { match: plainMatch('/', 'Prefix'), rule: this.#rule(action) };
  }

  /** The pool to which TLS is passed through. */
  passed(backend: IngressBackend): string | undefined {
    return backend.kind === 'service' ? this.#pool(backend, TCP_PROFILE) : undefined;
  }

  withAppRoot(own: PathEntries): Pick<PathEntries, 'entries' | 'inEverySpelling'> {
    const root = this.#options['app-root'];
    if (root === undefined) return own;
    const action: RedirectAction = { ...TO_HTTPS, status: 302, location: `$scheme://$host${root}` };
    const first = { match: plainMatch('/', 'Exact'), rule: this.#rule(action) };
    return { entries: [first, ...own.entries], inEverySpelling: [first, ...own.inEverySpelling] };
  }

  #rule(action: RouteRule['action']): RouteRule {
    const route = `Ingress ${this.#ingress.key}`;
    return { name: `${route}#${this.#count++}`, route, action: this.#refusal ?? action, ...this.#common };
  }

  /** The redirect of the annotations that send all requests elsewhere; of both the temporal one, as in ingress-nginx. */
  #redirect(): RedirectAction | undefined {
    const temporal = this.#options['temporal-redirect'];
    const target = temporal ?? this.#options['permanent-redirect'];
    if (target === undefined) return undefined;
    const code =
      temporal === undefined
        ? (this.#options['permanent-redirect-code'] ?? 301)
        : (this.#options['temporal-redirect-code'] ?? 302);
    return { ...TO_HTTPS, status: Number(code) as RedirectAction['status'], location: target };
  }

  /** `rewrite-target` is a URL. */
  #rewriteElsewhere(path: PathRewrite | undefined): RedirectAction | undefined {
    const target = this.#options['rewrite-target'];
    const to = target === undefined ? undefined : targetOf(target)?.to;
    return to && { ...TO_HTTPS, status: 302, ...to, path };
  }

  #action(backend: IngressBackend, rewrite: PathRewrite | undefined): RouteRule['action'] {
    if (backend.kind === 'resource') {
      this.unserved(
        `The backend "${backend.resource}" is not a Service: its requests get status 500; name a Service`,
      );
      return BROKEN;
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
      ...(this.#options['upstream-hash-by'] && { hashBy: this.#options['upstream-hash-by'] }),
      ...(this.#fallback && { fallback: this.#fallback }),
      ...((this.#fallback || this.#codes.length > 0) && { customErrors: this.#customErrors(backend) }),
      ...(nextUpstreamOf(this.#options)?.idempotentOnly && { retriesIdempotentOnly: true }),
      ...(this.#cookie && { cookie: this.#cookie }),
      ...(this.#options['auth-tls-pass-certificate-to-upstream'] && { passesCertificate: true }),
    };
  }

  #customErrors(backend: ServiceBackend): CustomErrors {
    const { namespace, name: ingress } = this.#ingress;
    const port = this.#port(backend)?.port ?? backend.port;
    return { codes: this.#codes, namespace, ingress, service: backend.name, port };
  }

  #port({ name, port: number, portName }: ServiceBackend): ServicePort | undefined {
    return this.#service(`${this.#ingress.namespace}/${name}`)?.ports.find(
      (each) => each.protocol === 'TCP' && (portName === '' ? each.port === number : each.name === portName),
    );
  }

  /** The pool of the annotation's Service. */
  #defaultBackend(name: string | undefined): string | undefined {
    if (name === undefined) return undefined;
    const { namespace } = this.#ingress;
    const key = `${namespace}/${name}`;
    this.services.add(key);
    const service = this.#service(key);
    const port = service?.ports.find(({ protocol }) => protocol === 'TCP')?.port;
    if (service === undefined || port === undefined || service.type === 'ExternalName') {
      this.faults.push(
        `Annotation "default-backend" has no effect: Service "${key}" does not exist, or has no TCP port and endpoints`,
      );
      return undefined;
    }
    const pool = poolKey(namespace, name, HTTP_PROFILE);
    const listener = poolListener(pool, port);
    this.#uses.set(listener, { pool, port });
    return listener;
  }

  #pool(backend: ServiceBackend, profile = profileOf(this.#options, this.#memberTls)): string | undefined {
    const { name, port: number, portName } = backend;
    const { namespace } = this.#ingress;
    const key = `${namespace}/${name}`;
    this.services.add(key);
    const service = this.#service(key);
    const port = this.#port(backend);
    const isExternal = service?.type === 'ExternalName';
    if (service === undefined || port === undefined || isExternal) {
      const wanted = portName === '' ? String(number) : `"${portName}"`;
      const without = isExternal
        ? 'it is of type ExternalName, which has no endpoints'
        : `it has no TCP port ${wanted}`;
      const why = service === undefined ? 'it does not exist' : without;
      this.unserved(`Cannot send to Service "${key}": ${why}; its requests get status 503`);
      return undefined;
    }
    const pool = poolKey(namespace, name, profile);
    const listener = poolListener(pool, port.port);
    const tls = profile === TCP_PROFILE ? undefined : this.#memberTls;
    this.#uses.set(listener, { pool, port: port.port, ...(tls && { tls }) });
    return listener;
  }
}

function profileOf(options: IngressOptions, memberTls: AskedTls | undefined): string {
  const { 'backend-protocol': protocol = 'HTTP', affinity } = options;
  const words = { HTTP: HTTP_PROFILE, HTTPS: TLS_PROFILE, GRPC: GRPC_PROFILE, GRPCS: GRPC_TLS_PROFILE }[
    protocol
  ];
  const next = nextUpstreamOf(options);
  const profile = next === undefined ? words : withRetry(next.retry, words);
  const chosen = options['upstream-hash-by'] === undefined ? profile : withHash(profile);
  const whole = affinity === undefined ? chosen : withPersistence(chosen);
  return withAskedTls(memberTls, whole);
}

function requestHeaders({ 'x-forwarded-prefix': prefix }: IngressOptions): HeaderChanges | undefined {
  if (prefix === undefined) return undefined;
  return { set: [{ name: 'X-Forwarded-Prefix', value: prefix }], add: [], remove: [] };
}
