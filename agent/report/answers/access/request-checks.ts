// What is checked for a request, from its path to the members that get it. Pure.

import { addressesOf, hasAddress, hasAll } from '../../../base/address-set.ts';
import { withGroups } from '../../../base/expression/groups.ts';
import { encodedPath, expressionText } from '../../../base/one-spelling.ts';
import type { Listener } from '../../../model/load-balancer.ts';
import { ownerOfListener } from '../../../model/names.ts';
import { actionInWords } from '../route-words.ts';
import { asked, type CheckResult, CLOSED, limited, passed, refused, type Way } from './check.ts';
import type { Client } from './client.ts';
import { forwardedClient } from './forwarded-client.ts';
import { admittedBy, type Ranges, rangesInWords, rangesResult } from './ranges.ts';

export function path({ request }: Way): CheckResult | undefined {
  if (request === undefined || request.refusedPath === '') return undefined;
  return refused(request.refusedPath, 'status 400');
}

/** Without a header of its own, a client names the same host twice. */
export function requestHost({
  listener: { routing, tls },
  serverName,
  request,
  client,
}: Way): CheckResult | undefined {
  const given = client.headers?.get('host') ?? [];
  if (request === undefined || routing?.kind !== 'http') return undefined;
  if (given.length > 1) return refused('the request has several headers Host', 'status 400');
  if (given.some((host) => host !== '' && !HOST.test(host)))
    return refused('its header Host is no host', 'status 400');
  if (tls === undefined || !routing.detectMisdirected) return undefined;
  if (request.isMisdirected)
    return refused('the name in the handshake belongs to another listener', 'status 421');
  return passed(serverName === '' ? 'without a name in the handshake' : 'the name in the handshake');
}

/** Servers read what is more than a name and a port differently (templates/haproxy/routes.mustache). */
const HOST = /^(([\w-]+\.)*[\w-]+\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?$/;

/** `//`, `;` and others, which members read in different ways. */
export function ambiguousPath({ request }: Way): CheckResult | undefined {
  if (request === undefined || request.ambiguity === '') return undefined;
  return refused(`${request.ambiguity} (setting ambiguousPaths)`, 'status 400');
}

export function route({ request }: Way): CheckResult | undefined {
  if (request === undefined || request.ambiguity !== '') return undefined;
  const { perhaps, route: found } = request;
  if (perhaps.length > 0)
    return asked(`only HAProxy can tell whether ${perhaps.join(', ')} matches`, 'what that rule does');
  return found.isFound ? passed(found.words) : refused(found.words, found.answer);
}

export function routeRanges(way: Way): CheckResult | undefined {
  const ranges = rangesOfRoute(way.request);
  return ranges && rangesBehindProxies(ranges, way, 'status 403');
}

/** `answer`: what the others get. */
function rangesBehindProxies(ranges: Ranges, { listener, client }: Way, answer: string): CheckResult {
  const proxy = proxyInWords(listener, client);
  if (proxy === '') return rangesResult(ranges, listener.family, client, answer);
  const from = forwardedClient(listener, client);
  if (from !== undefined) return rangesResult(ranges, from.family, { ...client, from }, answer);
  const sets = (['v4', 'v6'] as const).map((family) => [admittedBy(ranges, family), family] as const);
  if (sets.every(([set, family]) => hasAll(set, family))) return passed('all addresses');
  if (sets.every(([set]) => set.length === 0)) return refused('no address', answer);
  return asked(`${rangesInWords(ranges)} (${proxy})`, answer);
}

/** undefined if all addresses are let in. */
export function rangesOfRoute(request: Way['request']): Ranges | undefined {
  const { allowedCidrs: allowed = [], deniedCidrs: denied = [] } = request?.rule?.limits ?? {};
  if (allowed.length + denied.length === 0) return undefined;
  return { allowed: allowed.length === 0 ? undefined : allowed, denied };
}

/** Says that the client's address need not be that of its connection; '' if it is. */
function proxyInWords({ trustedProxies = [], family }: Listener, { from }: Client): string {
  if (trustedProxies.length === 0) return '';
  if (from === undefined) return 'trusted proxies name their clients';
  const isProxy = from.family === family && hasAddress(addressesOf(trustedProxies, family), from.address);
  return isProxy ? `${from.address} is a trusted proxy, which names its clients` : '';
}

export function requestRate({ request, atEachHost }: Way): CheckResult | undefined {
  const { requestRate = 0, minuteRate = 0, requestsAtOnce = 0 } = request?.rule?.limits ?? {};
  const words = [
    ...(requestRate === 0 ? [] : [`${requestRate} requests a second`]),
    ...(minuteRate === 0 ? [] : [`${minuteRate} requests a minute`]),
    ...(requestsAtOnce === 0 ? [] : [`${requestsAtOnce} requests at once`]),
  ];
  return words.length === 0
    ? undefined
    : limited(`${words.join(' and ')} from one address${atEachHost}`, 'status 429');
}

export function body({ request, client }: Way): CheckResult | undefined {
  const { bodyBytes: most = 0 } = request?.rule?.limits ?? {};
  if (most === 0) return undefined;
  const [length] = client.headers?.get('content-length') ?? [];
  const words = `bodies of at most ${most} bytes`;
  return Number(length) > most ? refused(words, 'status 413') : limited(words, 'status 413');
}

/** Groups of an expression could make a way up of a path that is none. */
export function rewrittenPath({ request }: Way): CheckResult | undefined {
  const { rule, path: asked } = request ?? {};
  const change = rule?.action.kind === 'forward' ? rule.action.rewrite?.path : undefined;
  if (asked === undefined || change?.kind !== 'groups') return undefined;
  const now = encodedPath(withGroups(change.pattern ?? '', change.value, expressionText(asked)) ?? '');
  return DOTS.test(now) && !DOTS.test(asked) ? refused(`${now} has dot segments`, 'status 400') : passed(now);
}

const DOTS = /(\/|%2f)(\.|%2e){1,2}(\/|%2f|;|$)/i;

export function redirect({ request }: Way): CheckResult | undefined {
  const rule = request?.rule;
  if (rule?.action.kind !== 'redirect') return undefined;
  return { result: 'redirected', detail: actionInWords(rule), answer: `status ${rule.action.status}` };
}

/** Also that for the share of backends that do not exist. */
export function fixedAnswer({ request }: Way): CheckResult | undefined {
  const rule = request?.rule;
  if (rule === undefined || rule.action.kind === 'redirect') return undefined;
  const { action } = rule;
  if (action.kind === 'answer') return refused(actionInWords(rule), `status ${action.status}`);
  const answer = `status ${action.failure}`;
  const total = sum(action.backends);
  const known = sum(action.backends.filter(({ pool }) => pool !== undefined));
  if (known === 0 && action.fallback !== undefined)
    return limited(`no backend: those of ${ownerOfListener(action.fallback)} get the requests`, answer);
  if (known === 0) return refused('it has no backend with a weight', answer);
  return known === total ? undefined : limited(`${known} of ${total} requests have a backend`, answer);
}

/** A client that some pools refuse has luck with the others. */
export function poolClients(way: Way): CheckResult | undefined {
  const pools = way.request?.pools.filter(({ weight }) => weight > 0) ?? [];
  if (pools.every(({ clients }) => clients === undefined)) return undefined;
  const answer = way.listener.mode === 'http' ? 'status 403' : CLOSED;
  const results = pools.map(({ clients: allowed, weight }) => ({
    weight,
    ...rangesBehindProxies({ allowed, denied: [] }, way, answer),
  }));
  const isAsked = results.find(({ result }) => result === 'asked');
  if (isAsked !== undefined) return asked(`${isAsked.detail}, by NetworkPolicies of members`, answer);
  const [total, open] = [sum(results), sum(results.filter(({ result }) => result === 'passed'))];
  if (open === 0) return refused(`${results[0]?.detail}, by NetworkPolicies of members`, answer);
  return open === total
    ? passed(results[0]?.detail ?? '')
    : limited(`${open} of ${total} have a pool that lets it in`, answer);
}

/** What is not there has had its answer before, but for connections. */
export function members({ listener, request }: Way): CheckResult | undefined {
  const isHttp = listener.mode === 'http';
  const answer = isHttp ? 'status 503' : CLOSED;
  const pools = request?.pools.filter(({ name, weight }) => weight > 0 && !(isHttp && name === '')) ?? [];
  if (pools.length === 0) return undefined;
  const [total, served] = [sum(pools), sum(pools.filter(({ ready }) => ready > 0))];
  if (served === 0) {
    const action = request?.rule?.action;
    const fallback = action?.kind === 'forward' ? action.fallback : undefined;
    return fallback === undefined
      ? refused('none takes connections', answer)
      : limited(`none takes connections: those of ${ownerOfListener(fallback)} get the requests`, answer);
  }
  if (served < total) return limited(`${served} of ${total} have a pool with members`, answer);
  return passed(`${pools.reduce((all, { ready }) => all + ready, 0)} take connections`);
}

function sum(all: readonly { readonly weight: number }[]): number {
  return all.reduce((total, { weight }) => total + weight, 0);
}
