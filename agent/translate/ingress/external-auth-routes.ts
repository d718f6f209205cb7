// Finds the pools of authorization servers that Ingresses name by a host of their class, as `https://$host/oauth2/auth`: the
// question goes to the members of that route, and not through its rules, so that it cannot go in a circle. A route that only some
// clients may use is asked for its own namespace only. What is not found closes. Pure; keeps hosts that do not change.

import type { Anchoring } from '../../base/expression/automaton.ts';
import { expressionOf, isMatch } from '../../base/expression/expression.ts';
import { withGroups } from '../../base/expression/groups.ts';
import { memoByIdentity } from '../../base/memo.ts';
import { encodedPath, expressionText, oneSpelling } from '../../base/one-spelling.ts';
import { CLOSED } from '../../model/answering-rule.ts';
import type { OwnerKey, Problem } from '../../model/load-balancer.ts';
import {
  labelsOfListener,
  ownerOfListener,
  poolKey,
  poolListener,
  serviceOfPool,
} from '../../model/names.ts';
import type { AskedTls, PoolUse } from '../../model/pool-uses.ts';
import type { ExternalAuth, ForwardAction, HostRoutes, RouteMatch, RouteRule } from '../../model/routes.ts';
import { askedProfile } from '../pool/pool-profile.ts';
import { hostText } from '../routes/host-pattern.ts';
import type { AskedService } from './external-auth.ts';
import type { AuthUrl } from './external-auth-annotations.ts';
import { widerHosts } from './owned-hosts.ts';

export interface AuthRoutes {
  /** The services that are asked by a host of the class, by the value that rules have. */
  readonly asked: ReadonlyMap<ExternalAuth, AskedService>;
  /** Where to look: the routes that clients of https reach, then those of http. */
  readonly served: readonly (readonly HostRoutes[])[];
  /** Hosts whose clients need a certificate. */
  readonly isGuarded: (host: string) => boolean;
  /** The TLS to members that an Ingress asks for. */
  readonly tlsOf: (pool: OwnerKey) => AskedTls | undefined;
}

export interface WithAuthRoutes {
  readonly hosts: readonly HostRoutes[];
  readonly uses: readonly PoolUse[];
  readonly problems: readonly Problem[];
}

interface Found {
  readonly externalAuth: ExternalAuth;
  readonly use: PoolUse;
}

/** By host: what was found for it, and what it became. */
const known = new WeakMap<HostRoutes, { readonly text: string; readonly value: HostRoutes }>();

export function withAuthRoutes(hosts: readonly HostRoutes[], routes: AuthRoutes): WithAuthRoutes {
  if (routes.asked.size === 0) return { hosts, uses: [], problems: [] };
  const uses: PoolUse[] = [];
  const problems = new Map<string, Problem>();
  const changed = hosts.map((each): HostRoutes => {
    const found = new Map<RouteRule, Found | string>();
    for (const { rule } of each.entries) {
      const asked = rule.externalAuth && routes.asked.get(rule.externalAuth);
      if (asked?.route === undefined || found.has(rule)) continue;
      const answer = find(hostOf(each), rule, asked, asked.route, routes);
      found.set(rule, answer);
      if (typeof answer !== 'string') uses.push(answer.use);
      else {
        const message = `Cannot ask an authorization server (${asked.isOfClass ? 'global-' : ''}auth-url): ${answer}; its requests get status 403`;
        problems.set(rule.route + message, { object: rule.route, reason: 'InvalidAnnotation', message });
      }
    }
    return found.size === 0 ? each : withFound(each, found);
  });
  return { hosts: changed, uses, problems: [...problems.values()] };
}

function withFound(host: HostRoutes, found: ReadonlyMap<RouteRule, Found | string>): HostRoutes {
  const text = JSON.stringify([...found.values()]);
  const last = known.get(host);
  if (last?.text === text) return last.value;
  const rules = new Map(Array.from(found, ([rule, answer]) => [rule, ruleWith(rule, answer)]));
  const entries = host.entries.map(({ match, rule }) => ({ match, rule: rules.get(rule) ?? rule }));
  const value = { host: host.host, entries };
  known.set(host, { text, value });
  return value;
}

function ruleWith(rule: RouteRule, answer: Found | string): RouteRule {
  if (typeof answer !== 'string') return { ...rule, externalAuth: answer.externalAuth };
  const { externalAuth: _, ...others } = rule;
  return { ...others, action: CLOSED, cors: undefined };
}

/** A phrase that says why there is none, or the pool. */
function find(
  ownHost: string,
  rule: RouteRule,
  { externalAuth, isOfClass }: AskedService,
  url: AuthUrl,
  { served, isGuarded, tlsOf }: AuthRoutes,
): Found | string {
  const host = url.host === '$host' ? ownHost : url.host;
  const path = url.path.replace(/\?.*/, '');
  const place = `"${host || '*'}${path}"`;
  const target = served.map((hosts) => ruleFor(hosts, host, oneSpelling(path))).find((each) => each);
  if (target === undefined)
    return `no route of the class serves ${place}; name a Service as "http://NAME.NAMESPACE.svc.cluster.local:PORT/PATH"`;
  const { action } = target.rule;
  if (target.rule.externalAuth !== undefined)
    return `the route of ${place} asks an authorization server itself (${target.rule.route}); serve it by an Ingress that asks none`;
  if (action.kind !== 'forward') return `the route of ${place} sends to no Service (${target.rule.route})`;
  const isOwn = namespaceOf(target.rule) === namespaceOf(rule);
  if (!isOwn && !isOfClass && (isRestricted(target.rule) || (isGuarded(host) && host !== ownHost)))
    return `the route of ${place} is of another namespace, and only some clients may use it (${target.rule.route})`;
  const pool = action.backends.find((each) => each.pool !== undefined && each.weight > 0)?.pool;
  const use = pool === undefined ? undefined : useOf(pool, tlsOf);
  if (use === undefined) return `the route of ${place} has no Service (${target.rule.route})`;
  return {
    use,
    externalAuth: {
      ...externalAuth,
      pool: poolListener(use.pool, use.port),
      path: rewritten(url.path, target.match, action),
      host: action.rewrite?.hostname || externalAuth.host,
    },
  };
}

/** Thousands of Ingresses may ask by their own host. */
const byHost = memoByIdentity(
  (hosts: readonly HostRoutes[]): ReadonlyMap<string, HostRoutes> =>
    new Map(hosts.map((each) => [hostOf(each), each])),
);

/** '' for any host. */
function hostOf({ host }: HostRoutes): string {
  return host.kind === 'any' ? '' : hostText(host);
}

function ruleFor(
  hosts: readonly HostRoutes[],
  host: string,
  path: string,
): { readonly match: RouteMatch; readonly rule: RouteRule } | undefined {
  for (const each of [host, ...widerHosts(host)]) {
    const found = byHost(hosts)
      .get(each)
      ?.entries.find(({ match }) => matches(match, path));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The question has no header by which a canary chooses. */
function matches({ path: { kind, value }, method, headers, query }: RouteMatch, path: string): boolean {
  if (method !== '' || headers.length + query.length > 0) return false;
  const anchoring: Anchoring = 'start';
  if (kind === 'regex')
    return (
      typeof expressionOf(value, anchoring) !== 'string' && isMatch(value, anchoring, expressionText(path))
    );
  const wanted = oneSpelling(value);
  return kind === 'exact' ? path === wanted : `${path}/`.startsWith(`${wanted}/`);
}

function namespaceOf({ route }: RouteRule): string {
  return /^Ingress ([^/]*)\//.exec(route)?.[1] ?? '';
}

function isRestricted({ limits, certificateName, auth, jwt }: RouteRule): boolean {
  const isGuarded = (certificateName ?? auth ?? jwt) !== undefined;
  return isGuarded || (limits?.allowedCidrs.length ?? 0) + (limits?.deniedCidrs.length ?? 0) > 0;
}

/** The pool of the same Service whose questions go to another member if one does not answer. */
function useOf(listener: string, tlsOf: AuthRoutes['tlsOf']): PoolUse | undefined {
  const port = labelsOfListener(listener)?.port;
  if (port === undefined) return undefined;
  const ofRoute = ownerOfListener(listener);
  const { service, profile } = serviceOfPool(ofRoute);
  const [namespace = '', name = ''] = service.split('/');
  const tls = tlsOf(ofRoute);
  return {
    pool: poolKey(namespace, name, askedProfile(profile)),
    port: Number(port),
    ...(tls && { tls }),
  };
}

function rewritten(url: string, { path: { value } }: RouteMatch, { rewrite }: ForwardAction): string {
  const change = rewrite?.path;
  if (change === undefined) return url;
  const [path = '', ...query] = url.split('?');
  const rest = query.length === 0 ? '' : `?${query.join('?')}`;
  if (change.kind === 'groups') {
    const now = withGroups(change.pattern ?? '', change.value, expressionText(oneSpelling(path)));
    return `${now === undefined ? path : encodedPath(now)}${rest}`;
  }
  const now = change.kind === 'full' ? change.value : change.value + path.slice(value.length);
  return `${now || '/'}${rest}`;
}
