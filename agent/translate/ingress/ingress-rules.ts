// One Ingress as entries of routes by host: what its paths do on port 80 and on port 443, and its part of other Ingresses as a
// canary. Pure.

import { Expressions } from '../../base/expression/expression.ts';
import type { Ingress } from '../../kubernetes/ingress/ingress-objects.ts';
import { CLOSED } from '../../model/answering-rule.ts';
import type { AskedTls, PoolUse } from '../../model/pool-uses.ts';
import { isOpen } from '../../model/route-guards.ts';
import type { ForwardAction, PathRewrite, RouteEntry, RouteMatch, RouteRule } from '../../model/routes.ts';
import { wildcardOf } from '../routes/host-pattern.ts';
import type { RouteEntries } from '../routes/host-routes.ts';
import { tokensOf } from '../routes/route-tokens.ts';
import { authOf } from '../routes/route-users.ts';
import { type CanaryChoice, canaryChoices } from './canary-choices.ts';
import { customErrorsOf } from './custom-errors.ts';
import { type AskedService, ingressAuth, NO_CLASS_AUTH, type ReadExternalAuth } from './external-auth.ts';
import { hasExpressions, inEverySpelling, lettersBehind, plainMatch, readPath } from './ingress-paths.ts';
import { type IngressOptions, isAnnotated, readIngressOptions } from './nginx-annotations.ts';
import { BROKEN, type FindService, Rules } from './ordered-rules.ts';
import { passthroughFault } from './passthrough-fault.ts';
import { PathEntries, withRewrite } from './path-entries.ts';
import { proxySslOf } from './proxy-ssl.ts';

/** What an Ingress does with the requests of one host. */
export interface HostEntries {
  /** '' for all hosts. */
  readonly host: string;
  readonly entries: RouteEntries;
  /** The same for a host with expressions that is guarded in part: its guarded paths have every spelling. */
  readonly inEverySpelling: RouteEntries;
  /** In ingress-nginx all paths of the host are expressions then. */
  readonly hasExpressions: boolean;
  /** When clients of port 80 are sent to https: if that is served for the host, in any case, or never. */
  readonly toHttps: 'if-served' | 'always' | 'never';
}

/** A part of the requests that another Ingress has. */
export interface Canary {
  readonly host: string;
  /** Only Ingresses of its own namespace share their requests with it. */
  readonly namespace: string;
  readonly match: RouteMatch;
  /** The first whose headers a request has decides, before the weight. */
  readonly choices: readonly CanaryChoice[];
  readonly rule: RouteRule & { readonly action: ForwardAction };
  /** For the path in every spelling. */
  readonly rewrite: PathRewrite | undefined;
  readonly weight: number;
  readonly total: number;
  /** It gets no requests of port 80. */
  readonly forcesTls: boolean;
  readonly verifiesMembers: boolean;
}

export interface ReadIngress {
  readonly options: IngressOptions;
  readonly hosts: readonly HostEntries[];
  /** For what no path of any Ingress matches. */
  readonly fallback: HostEntries | undefined;
  readonly canaries: readonly Canary[];
  readonly uses: readonly PoolUse[];
  /** By host: the pool to which its TLS is passed through. */
  readonly passed: ReadonlyMap<string, string>;
  /** `namespace/name` of each Service that is named. */
  readonly services: ReadonlySet<string>;
  /** The authority for client certificates is named in a way that is not allowed. */
  readonly hasInvalidAuthority: boolean;
  /** The Secret of its users; '' for none. */
  readonly usersSecret: string;
  /** The name of the keys of its tokens; '' for none. */
  readonly tokenKeys: string;
  /** The service that is asked about its requests. */
  readonly asked: AskedService | undefined;
  /** TLS to its members, if it says more than whether there is any. */
  readonly memberTls: AskedTls | undefined;
  /** The same, or that of the Service that `auth-url` names alone. */
  readonly askedTls: AskedTls | undefined;
  /** Answers of members are replaced. */
  readonly replacesErrors: boolean;
  readonly faults: readonly string[];
  /** Faults that keep a path or a backend from being served. */
  readonly pathFaults: readonly string[];
  /** Protections that are missing with its author's consent, a sentence each. */
  readonly without: readonly string[];
  /** Names of annotations that have no effect. */
  readonly ignored: readonly string[];
}

/** `consent`: names of protections that its class consents to miss; `ofClass`: what it says of authorization servers. */
export function readIngress(
  ingress: Ingress,
  service: FindService,
  consent?: ReadonlySet<string>,
  ofClass = NO_CLASS_AUTH,
): ReadIngress {
  const read = readIngressOptions(ingress.annotations, consent);
  const { without, ignored } = read;
  // What cannot be read could have made expressions of the paths, which must match all the same.
  const options = read.isBroken ? { ...read.options, 'use-regex': true } : read.options;
  const { namespace } = ingress;
  const { auth, fault } = authOf(options, namespace);
  const tokens = tokensOf(options, namespace);
  const unverified = verifiesNothing(options) ? [NO_AUTHORITY] : [];
  const proxySsl = proxySslOf(options, namespace);
  const { asked: askedTls, isForQuestionsOnly } = proxySsl;
  const memberTls = isForQuestionsOnly ? undefined : askedTls;
  const external = ingressAuth({ options, namespace, ofClass, findService: service, askedTls });
  const passes = options['ssl-passthrough'] === true;
  const unseen = passes ? unseenFault(ingress, external) : '';
  const errors = customErrorsOf(options);
  const closing = [...unverified, external.fault, unseen, proxySsl.fault].filter(Boolean);
  const faults = [...read.faults, fault, tokens.fault, errors.fault, ...closing].filter(Boolean);
  const isClosed = read.isClosed || closing.length > 0;
  const refusal = isClosed || passes ? CLOSED : read.isBroken ? BROKEN : undefined;
  const guards = { auth, jwt: tokens.jwt, external, memberTls };
  const rules = new Rules({ ingress, options, service, faults, guards, refusal });
  const expressions = new Expressions();
  const isCanary = options.canary === true;
  const secureHosts = new Set(ingress.tls.flatMap(({ hosts }) => (hosts.length > 0 ? hosts : [''])));
  const byHost = new Map<string, PathEntries>();
  const passed = new Map<string, string>();
  for (const { host, paths } of ingress.rules) {
    const entries = byHost.get(host) ?? new PathEntries();
    byHost.set(host, entries);
    for (const path of paths) {
      const readAs = readPath(path, options, expressions);
      const { match, rewrite, fault: why } = readAs;
      if (why !== '') rules.unserved(`A path of host "${host || '*'}" answers 500: ${why}`);
      // Without the path its requests would get the rule of a wider one.
      const rule = why === '' ? rules.next(path.backend, rewrite, path.path) : rules.broken();
      entries.add({ match, rule });
      // An open rule of a wider path must not get them. Without a guard the rows stay without expressions.
      const behind = isOpen(rule) ? undefined : lettersBehind(path, match);
      if (behind !== undefined) entries.add({ match: behind, rule });
      const hasSpellings = isCanary || !isOpen(rule);
      const spelled = hasSpellings ? inEverySpelling(path, options, readAs, expressions) : undefined;
      if (spelled === undefined) continue;
      if (spelled.rewrite !== undefined) entries.rewrites.set(rule, spelled.rewrite);
      if (spelled.fault !== '' && !isOpen(rule))
        rules.unserved(`A path of host "${host || '*'}" answers 500 in some spellings: ${spelled.fault}`);
      entries.addSpelling(
        spelled.match,
        spelled.fault === '' ? withRewrite(rule, spelled.rewrite) : rules.broken(),
      );
    }
    const root = paths.find(({ path }) => path === '/');
    if (passes && !isClosed && !isCanary && host !== '') {
      const pool = root && rules.passed(root.backend);
      if (pool !== undefined) passed.set(host, pool);
      else
        rules.unserved(
          `Cannot pass TLS of host "${host}" through: its path / has no Service; it gets status 403`,
        );
    }
    // The host of a rule without paths goes to the default backend.
    if (paths.length === 0 && ingress.defaultBackend !== undefined)
      entries.add({ match: plainMatch('/', 'Prefix'), rule: rules.next(ingress.defaultBackend, undefined) });
  }
  const hosts: HostEntries[] = [];
  const canaries: Canary[] = [];
  for (const [host, entries] of byHost) {
    if (isCanary) {
      canaries.push(...canariesOf(namespace, host, entries, options, memberTls));
      continue;
    }
    const isSecure = secureHosts.has(host) || secureHosts.has(wildcardOf(host)) || secureHosts.has('');
    for (const name of [host, ...(options['server-alias'] ?? [])])
      hosts.push(hostEntries(ingress, name, rules.withAppRoot(entries), isSecure, options));
    const other = options['from-to-www-redirect'] === true ? otherWww(host) : '';
    if (other !== '') hosts.push(hostEntries(ingress, other, onlyOne(rules.toHost(host)), isSecure, options));
  }
  const { defaultBackend } = ingress;
  const fallback =
    defaultBackend === undefined || isCanary
      ? undefined
      : hostEntries(
          // After every rule, whatever their age and name.
          { created: Number.POSITIVE_INFINITY, key: `~${ingress.key}` },
          '',
          onlyOne({ match: plainMatch('/', 'Prefix'), rule: rules.next(defaultBackend, undefined) }),
          false,
          options,
        );
  return {
    options,
    hosts,
    fallback,
    canaries,
    uses: rules.uses,
    passed,
    services: rules.services,
    hasInvalidAuthority: options['auth-tls-secret'] === undefined && isAnnotated(ingress, 'auth-tls-secret'),
    usersSecret: auth?.secret ?? '',
    tokenKeys: tokens.jwt?.keys ?? '',
    asked: external.asked,
    memberTls,
    askedTls,
    replacesErrors: errors.codes.length > 0,
    faults: rules.faults,
    pathFaults: rules.pathFaults,
    without,
    ignored,
  };
}

/** What cannot be had of TLS that is passed through. */
function unseenFault({ annotations }: Ingress, { asked }: ReadExternalAuth): string {
  return asked?.isOfClass ? ASKED_OF_CLASS : passthroughFault(annotations);
}

const ASKED_OF_CLASS =
  'Cannot pass TLS through: an authorization server of the class is asked about requests; set "enable-global-auth" to "false"; its requests get status 403';
const NO_AUTHORITY =
  'Cannot verify clients: annotations "auth-tls-verify-client", "auth-tls-verify-depth" and "auth-tls-match-cn" need "auth-tls-secret"; its requests get status 403';

function verifiesNothing({
  'auth-tls-secret': secret,
  'auth-tls-verify-client': verify,
  'auth-tls-match-cn': name,
  'auth-tls-verify-depth': depth,
}: IngressOptions): boolean {
  if (name !== undefined && verify === 'off') return true;
  return (
    secret === undefined && ((name ?? depth) !== undefined || (verify !== undefined && verify !== 'off'))
  );
}

function otherWww(host: string): string {
  if (host === '' || host.startsWith('*.')) return '';
  return host.startsWith('www.') ? host.slice('www.'.length) : `www.${host}`;
}

function hostEntries(
  { created, key }: Pick<Ingress, 'created' | 'key'>,
  host: string,
  { entries, inEverySpelling }: Pick<PathEntries, 'entries' | 'inEverySpelling'>,
  hasTls: boolean,
  options: IngressOptions,
): HostEntries {
  const redirect = options['ssl-redirect'];
  const isForced =
    options['force-ssl-redirect'] === true ||
    options['ssl-passthrough'] === true ||
    (hasTls && redirect === true);
  const isMeant = hasTls && redirect !== false;
  const toHttps = isForced ? 'always' : isMeant ? 'if-served' : 'never';
  const own = { created, key, entries };
  return {
    host,
    entries: own,
    inEverySpelling:
      entries.length === inEverySpelling.length ? own : { created, key, entries: inEverySpelling },
    hasExpressions: hasExpressions(options),
    toHttps,
  };
}

function onlyOne(entry: RouteEntry): PathEntries {
  const entries = new PathEntries();
  entries.add(entry);
  return entries;
}

function canariesOf(
  namespace: string,
  host: string,
  { entries, rewrites }: PathEntries,
  options: IngressOptions,
  memberTls: AskedTls | undefined,
): readonly Canary[] {
  const verifiesMembers = memberTls?.isVerified === true;
  const choices = canaryChoices(options);
  return entries.flatMap(({ match, rule }) => {
    const { action } = rule;
    if (action.kind !== 'forward') return [];
    const weight = options['canary-weight'] ?? 0;
    const total = options['canary-weight-total'] ?? 100;
    const forcesTls = options['force-ssl-redirect'] === true;
    const rewrite = rewrites.get(rule);
    return [
      {
        host,
        namespace,
        match,
        choices,
        rule: { ...rule, action },
        rewrite,
        weight,
        total,
        forcesTls,
        verifiesMembers,
      },
    ];
  });
}
