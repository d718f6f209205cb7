// Explains one request for the command `why`: which listener takes it, which rule of which route, and which pool gets it; and
// why rules that stand before it do not. Reads the parts of the agent; changes nothing.
// It decides by the values that the dataplane has: by host, then by the order of precedence of the Gateway API.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import type { HostPattern, HttpRouting, RouteEntry, RouteSection, TlsRouting } from '../../model/routes.ts';
import { type PoolExplanation, poolsOf, poolsOfBackends } from './explain-pools.ts';
import { actionInWords, hostInWords, matchInWords, valueInWords } from './route-words.ts';
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
  /** `HTTPRoute default/api#0`; '' if no rule matches. */
  readonly rule: string;
  /** What is done with the request, in words. */
  readonly action: string;
  readonly pools: readonly PoolExplanation[];
  /** Rules that stand before it and have its path, and why the request does not match; without a rule all of the host. */
  readonly others: readonly OtherRule[];
}

export interface OtherRule {
  readonly rule: string;
  readonly why: string;
  /** It differs in something else than the path. */
  readonly hasPath: boolean;
}

const MAX_OTHERS = 10;

/** Errors: USAGE if it is not a URL of HTTP. */
export function explainRequest(text: string, sources: StatusSources): RequestExplanation {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new HeadgateError(
      'USAGE',
      `Cannot look up ${quote(text)}: it is not a URL such as "https://example.org/path"`,
      {
        retry: 'never',
      },
    );
  const isTls = url.protocol === 'https:';
  const port = Number(url.port) || (isTls ? 443 : 80);
  const host = url.hostname.toLowerCase();
  const answers: RequestAnswer[] = [];
  for (const loadBalancer of sources.desired.loadBalancers.values())
    for (const listener of loadBalancer.listeners) {
      const isMeant = listener.port === port && (listener.tls !== undefined) === isTls;
      const isItsAddress = !isAddress(host) || listener.addresses.includes(addressOf(host));
      const { routing } = listener;
      const passing = passingOn(listener, host);
      if (passing !== undefined && isTls && listener.port === port && isItsAddress)
        answers.push(passedOn(loadBalancer, listener, passing, host, sources));
      else if (routing?.kind === 'http' && isMeant && isItsAddress)
        answers.push(answerOf(loadBalancer, listener, routing, host, url, sources));
    }
  const protocol = isTls ? 'HTTPS' : 'HTTP';
  const reason = answers.length > 0 ? '' : `No Gateway or Ingress listens for ${protocol} on port ${port}`;
  return { url: text, answers, reason };
}

/** How a connection with this name is passed on; undefined if its requests are read here. */
function passingOn({ routing, dispatch }: Listener, host: string): TlsRouting | undefined {
  const passing = routing?.kind === 'tls' ? routing : dispatch;
  const [found] = mostSpecific(passing?.hosts ?? [], host, (each) => each.host);
  return found?.isEnded ? undefined : passing;
}

function passedOn(
  loadBalancer: LoadBalancer,
  listener: Listener,
  { hosts }: TlsRouting,
  host: string,
  sources: StatusSources,
): RequestAnswer {
  const [found] = mostSpecific(hosts, host, (each) => each.host);
  const base = {
    loadBalancer: objectOf(loadBalancer.key),
    addresses: listener.addresses,
    isServed: sources.dataplane.serves(listener.name),
    section: '',
    others: [],
  };
  if (found === undefined || found.backends.length === 0)
    return {
      ...base,
      rule: '',
      action: `closes the connection: no TLSRoute has the host ${quote(host)}`,
      pools: [],
    };
  const how =
    listener.routing?.kind === 'tls' && listener.tls
      ? 'ends TLS and passes on what is in it'
      : 'passes TLS on';
  const action = `${how} (${hostInWords(found.host)})`;
  return { ...base, rule: 'TLSRoute', action, pools: poolsOfBackends(found.backends, sources) };
}

function answerOf(
  loadBalancer: LoadBalancer,
  listener: Listener,
  { sections }: HttpRouting,
  host: string,
  url: URL,
  sources: StatusSources,
): RequestAnswer {
  const section = mostSpecific(sections, host, ({ hostname }) => hostname)[0];
  const base = {
    loadBalancer: objectOf(loadBalancer.key),
    addresses: listener.addresses,
    isServed: sources.dataplane.serves(listener.name),
    section: section?.name ?? '',
  };
  const none = { ...base, rule: '', pools: [] };
  if (section === undefined)
    return {
      ...none,
      action: `answers 404: no listener has a hostname that ${quote(host)} matches`,
      others: [],
    };
  const others: OtherRule[] = [];
  for (const { host: pattern, entries } of mostSpecific(section.hosts, host, (each) => each.host))
    for (const entry of entries) {
      const why = whyNot(entry, url);
      const { rule } = entry;
      if (why === '')
        return {
          ...base,
          rule: rule.name,
          action: `${actionInWords(rule)} (${hostInWords(pattern)}, ${matchInWords(entry.match)})`,
          pools: poolsOf(rule, sources),
          others: others.filter(({ hasPath }) => hasPath).slice(0, MAX_OTHERS),
        };
      others.push({ rule: rule.name, why, hasPath: !isOfOtherPath(entry, url) });
    }
  return { ...none, action: noRule(section, host, others.length), others: others.slice(0, MAX_OTHERS) };
}

function noRule({ name, hosts }: RouteSection, host: string, tried: number): string {
  if (hosts.length === 0) return `answers 404: no route is attached to listener ${quote(name)}`;
  return tried === 0
    ? `answers 404: no route of listener ${quote(name)} has the host ${quote(host)}`
    : 'answers 404: none of the rules matches';
}

/** Those that the host matches, the most specific first. */
function mostSpecific<T>(all: readonly T[], host: string, patternOf: (each: T) => HostPattern): readonly T[] {
  return all
    .filter((each) => matches(patternOf(each), host))
    .sort((a, b) => specificity(patternOf(b)) - specificity(patternOf(a)));
}

function matches({ kind, suffix }: HostPattern, host: string): boolean {
  if (kind === 'any') return true;
  if (kind === 'exact') return host === suffix;
  if (!host.endsWith(`.${suffix}`)) return false;
  return kind === 'labels' || !host.slice(0, -suffix.length - 1).includes('.');
}

function specificity({ kind, suffix }: HostPattern): number {
  return kind === 'exact' ? Number.POSITIVE_INFINITY : suffix.length;
}

/** '' if the request matches. A GET without headers is meant. */
function whyNot({ match }: Pick<RouteEntry, 'match'>, url: URL): string {
  const { path, method, headers, query } = match;
  if (isOfOtherPath({ match }, url))
    return path.kind === 'exact'
      ? `only the path ${quote(path.value)}`
      : `only paths below ${quote(`${path.value}/`)}`;
  // The author's expression may run for long: the dataplane decides.
  if (path.kind === 'regex') return `only if the path matches the regular expression ${quote(path.value)}`;
  if (method !== '' && method !== 'GET') return `only the method ${method}`;
  const [header] = headers;
  if (header !== undefined) return `only if header ${valueInWords(header)}`;
  const parameter = query.find(
    ({ kind, name, value }) => kind === 'regex' || url.searchParams.get(name) !== value,
  );
  return parameter === undefined ? '' : `only if query parameter ${valueInWords(parameter)}`;
}

/** Of another path for sure. */
function isOfOtherPath({ match: { path } }: Pick<RouteEntry, 'match'>, { pathname }: URL): boolean {
  if (path.kind === 'regex') return false;
  const isBelow = path.kind === 'prefix' && pathname.startsWith(`${path.value}/`);
  return pathname !== path.value && !isBelow;
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || /^\d+(\.\d+){3}$/.test(host);
}

function addressOf(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host;
}
