// Explains one request for the command `why`: which listener takes it, which rule of which route, which pool gets it, why rules
// that stand before it do not; and to whom it is open. Reads the parts of the agent; changes nothing.
// It decides by the values that the dataplane has: by host, then by the order of precedence of the Gateway API.

import { quote } from '../../base/quote.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { HttpRouting, RouteSection, TlsRouting, WeightedBackend } from '../../model/routes.ts';
import { type Access, accessOf } from './access/access.ts';
import { type AskedRequest, askedRequest } from './access/asked-request.ts';
import { askedOf } from './access/certificate-checks.ts';
import { CLOSED, type RequestWay } from './access/check.ts';
import { ANY_CLIENT, type Client } from './access/client.ts';
import { findRule, type OtherRule } from './access/find-rule.ts';
import { withHeaders } from './access/given-headers.ts';
import { mostSpecific } from './access/hosts.ts';
import { readPath } from './access/path-rules.ts';
import { memberNotes } from './explain-member.ts';
import { type PoolExplanation, poolsOf, poolsOfBackends } from './explain-pools.ts';
import { actionInWords, hostInWords, matchInWords } from './route-words.ts';
import type { StatusSources } from './status.ts';

export interface RequestExplanation {
  /** As asked. */
  readonly url: string;
  /** One for each load balancer that listens on the port: the address that a client uses decides between them. */
  readonly answers: readonly RequestAnswer[];
  /** If there is none. */
  readonly reason: string;
}

export interface RequestAnswer {
  /** `Gateway default/edge`. */
  readonly loadBalancer: string;
  readonly addresses: readonly string[];
  /** The dataplane serves the listener. */
  readonly isServed: boolean;
  /** The listener's entry of the Gateway that the host belongs to; '' for none. */
  readonly section: string;
  /** `HTTPRoute default/api#0`; '' if no rule matches, or if there are no routes. */
  readonly rule: string;
  /** What is done with the request, in words. */
  readonly action: string;
  readonly pools: readonly PoolExplanation[];
  /** Rules that stand before it and have its path, and why the request does not match; without a rule all of the host. */
  readonly others: readonly OtherRule[];
  /** To whom it is open. */
  readonly access: Access;
  /** What members get besides the request, and which one a client keeps, as sentences. */
  readonly toMember: readonly string[];
}

const MAX_OTHERS = 10;

/** Errors: USAGE if it is not a URL of HTTP. */
export function explainRequest(
  text: string,
  sources: StatusSources,
  client: Client = ANY_CLIENT,
): RequestExplanation {
  const url = askedRequest(text);
  const { isTls, port, address } = url;
  const answers: RequestAnswer[] = [];
  for (const loadBalancer of sources.desired.loadBalancers.values())
    for (const listener of loadBalancer.listeners) {
      if (listener.port !== port || listener.protocol !== 'TCP' || listener.reachedBy === 'routes') continue;
      if (address !== '' && !listener.addresses.includes(address)) continue;
      if (client.from !== undefined && client.from.family !== listener.family) continue;
      const request = withHeaders(url, client, listener);
      const serverName = address === '' ? url.host : '';
      const answer = answerOf({ loadBalancer, listener, request, client, serverName, sources });
      if (answer !== undefined) answers.push(answer);
    }
  const protocol = isTls ? 'HTTPS' : 'HTTP';
  const family = client.from === undefined ? '' : ` of ${client.from.family === 'v4' ? 'IPv4' : 'IPv6'}`;
  const reason =
    answers.length > 0 ? '' : `No Gateway or Ingress listens for ${protocol} on port ${port}${family}`;
  return { url: text, answers, reason };
}

interface Asked {
  readonly loadBalancer: LoadBalancer;
  readonly listener: Listener;
  readonly request: AskedRequest;
  readonly client: Client;
  /** In the handshake; '' for an address. */
  readonly serverName: string;
  readonly sources: StatusSources;
}

/** undefined if such a request is not for the listener. */
function answerOf(asked: Asked): RequestAnswer | undefined {
  const { listener, request } = asked;
  const { routing, tls, mode } = listener;
  const passing = request.isTls ? passingOn(listener, asked.serverName || request.host) : undefined;
  if (passing !== undefined) return passedOn(asked, passing);
  const isMeant = (tls !== undefined) === request.isTls;
  if (routing?.kind === 'http') return isMeant ? routed(asked, routing) : undefined;
  // Any name may lead to the address of a Service.
  if (request.address === '' || routing?.kind === 'tls' || (mode === 'http' && !isMeant)) return undefined;
  const own = { pool: listener.name, weight: 1 };
  const action = 'forwards to its members';
  return connected(asked, action, routing === undefined ? [own] : routing.backends);
}

/** How a connection with this name is passed on; undefined if its requests are read here. */
function passingOn({ routing, dispatch }: Listener, host: string): TlsRouting | undefined {
  const passing = routing?.kind === 'tls' ? routing : dispatch;
  const [found] = mostSpecific(passing?.hosts ?? [], host, (each) => each.host);
  return found?.isEnded ? undefined : passing;
}

function passedOn(asked: Asked, { hosts }: TlsRouting): RequestAnswer {
  const { listener, request, serverName } = asked;
  const { routing, tls } = listener;
  const host = serverName || request.host;
  const [found] = mostSpecific(hosts, host, (each) => each.host);
  const isEnded = routing?.kind === 'tls' && tls !== undefined;
  // The frontend that passes TLS on knows nothing of the other hosts.
  const { dispatch: _, ...passingListener } = listener;
  const own = isEnded ? asked : { ...asked, listener: { ...passingListener, tls: undefined } };
  if (found === undefined || found.backends.length === 0)
    return connected(own, `closes the connection: no TLSRoute has the host ${quote(host)}`, []);
  const how = isEnded ? 'ends TLS and passes on what is in it' : 'passes TLS on';
  return { ...connected(own, `${how} (${hostInWords(found.host)})`, found.backends), rule: 'TLSRoute' };
}

/** Explains a connection whose requests are not read. */
function connected(
  asked: Asked,
  action: string,
  backends: readonly Pick<WeightedBackend, 'pool' | 'weight'>[],
): RequestAnswer {
  const pools = poolsOfBackends(backends, asked.sources);
  const isFound = pools.length > 0;
  const route = { words: action, isFound, answer: CLOSED };
  const way = {
    refusedPath: '',
    ambiguity: '',
    hostname: undefined,
    route,
    rule: undefined,
    perhaps: [],
    pools,
  };
  return {
    ...placeOf(asked),
    section: '',
    rule: '',
    action,
    pools,
    others: [],
    access: accessTo(asked, way),
    toMember: [],
  };
}

/** The name in the handshake belongs to another listener of the Gateway than the host. */
function isMisdirected(
  { request, serverName }: Asked,
  { sections }: HttpRouting,
  section: RouteSection | undefined,
): boolean {
  const [own] = mostSpecific(sections, serverName, ({ hostname }) => hostname);
  return request.isTls && own !== undefined && section !== undefined && own !== section;
}

function routed(asked: Asked, routing: HttpRouting): RequestAnswer {
  const { request, sources } = asked;
  const settings = { dotSegments: sources.dotSegments(), ambiguousPaths: sources.ambiguousPaths() };
  const read = readPath(request.path, settings);
  const { section, found, strict, others } = findRule(routing, request, read);
  const rule = found?.entry.rule;
  const pools = rule === undefined ? [] : poolsOf(rule, sources);
  const guarded =
    strict && `some paths of ${hostInWords(strict)} are guarded, and it can be read as one of them`;
  const words =
    found === undefined
      ? (guarded ?? noRule(section, request.host, others.length))
      : `${hostInWords(found.host)}, ${matchInWords(found.entry.match)}`;
  const way: RequestWay = {
    asked: request,
    refusedPath: read.refused,
    path: read.path,
    isMisdirected: isMisdirected(asked, routing, section),
    ambiguity: guarded ?? '',
    hostname: section?.hostname,
    route: { words, isFound: rule !== undefined, answer: 'status 404' },
    rule,
    perhaps: others.filter(({ isUnclear }) => isUnclear).map((each) => each.rule),
    pools,
  };
  const access = accessTo(asked, way);
  const isForwarded = rule !== undefined && ['open', 'asks'].includes(access.verdict);
  const asksForCertificates = askedOf(asked) !== undefined;
  const shown = rule === undefined ? others : others.filter(({ hasPath }) => hasPath);
  return {
    ...placeOf(asked),
    section: section?.name ?? '',
    rule: rule?.name ?? '',
    action:
      rule === undefined
        ? `answers ${strict === undefined ? 404 : 400}: ${words}`
        : `${actionInWords(rule)} (${words})`,
    pools,
    others: shown.slice(0, MAX_OTHERS),
    access,
    toMember: isForwarded ? memberNotes(rule, asked.client, asksForCertificates, sources) : [],
  };
}

function placeOf({
  loadBalancer,
  listener,
  sources,
}: Asked): Pick<RequestAnswer, 'loadBalancer' | 'addresses' | 'isServed'> {
  return {
    loadBalancer: objectOf(loadBalancer.key),
    addresses: listener.addresses,
    isServed: sources.dataplane.serves(listener.name),
  };
}

function accessTo({ listener, client, serverName, sources }: Asked, way: RequestWay): Access {
  return accessOf({
    ...{ listener, client, serverName, request: way, proofs: sources.proofs },
    atEachHost: atEachHost(sources.bgpHost),
  });
}

function noRule(section: RouteSection | undefined, host: string, tried: number): string {
  if (section === undefined) return `no listener has a hostname that ${quote(host)} matches`;
  const { name, hosts } = section;
  if (hosts.length === 0) return `no route is attached to listener ${quote(name)}`;
  return tried === 0
    ? `no route of listener ${quote(name)} has the host ${quote(host)}`
    : 'none of the rules matches';
}

/** As of Way. */
function atEachHost(bgpHost: StatusSources['bgpHost']): string {
  if (bgpHost === undefined) return '';
  const { hosts = [] } = bgpHost.hosts() ?? {};
  return hosts.length === 0 ? ', at each host' : `, at each of ${hosts.length} hosts`;
}
