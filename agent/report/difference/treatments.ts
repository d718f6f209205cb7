// What one state does with requests: the listener that takes one, its rule, and what happens then, as values that can be
// compared with those of another state. Decides by the matcher of `why URL`. Pure.

import type { DesiredState } from '../../model/desired-state.ts';
import type { Family, Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf, ownerOfListener } from '../../model/names.ts';
import type { RouteRule, WeightedBackend } from '../../model/routes.ts';
import { accessOf } from '../answers/access/access.ts';
import type { AskedRequest } from '../answers/access/asked-request.ts';
import { CLOSED, type RequestWay, type Way } from '../answers/access/check.ts';
import { ANY_CLIENT } from '../answers/access/client.ts';
import { mostSpecific } from '../answers/access/hosts.ts';
import { type PathSettings, type ReadPath, readPath } from '../answers/access/path-rules.ts';
import { NO_PROOFS } from '../answers/access/proofs.ts';
import { RuleIndex } from '../answers/access/rule-index.ts';
import { actionInWords, hostInWords, matchInWords, poolName } from '../answers/route-words.ts';

/** Where a request goes; what is not known of it is undefined or ''. */
export interface RequestPlace {
  readonly isTls: boolean | undefined;
  readonly port: number | undefined;
  /** The client's and so the listener's. */
  readonly family: Family | undefined;
  /** The load balancer's address. */
  readonly vip: string;
  /** The owner's key. */
  readonly owner: string;
}

/** One value for all requests that are treated alike. */
export interface Treatment {
  /** `HTTPRoute default/api#0`, or the object of the load balancer if it has no rules; '' for none. */
  readonly rule: string;
  /** `default/web port 80`, with its share if there are several; '' for none. */
  readonly backends: string;
  /** What a client gets that is not sent to a backend, in words; '' if it is. */
  readonly answer: string;
  /** What happens besides: rewriting, headers, time limits, mirrors. For comparison only. */
  readonly handling: string;
  /** To whom it is open; undefined if nothing listens. */
  readonly way: Omit<Way, 'client'> | undefined;
  /** Everything that decides about it. For comparison only. */
  readonly guards: string;
}

export const NO_MEMBER = 'answers 503: no member takes requests';

const NO_LISTENER: Treatment = {
  rule: '',
  backends: '',
  answer: 'nothing listens',
  handling: '',
  way: undefined,
  guards: '',
};

interface HttpListener {
  readonly loadBalancer: LoadBalancer;
  readonly listener: Listener;
  readonly index: RuleIndex | undefined;
  /** By rule, for requests in which nothing is unclear and nothing refused. */
  readonly byRule: Map<RouteRule, Treatment>;
}

export class Treatments {
  readonly #desired: DesiredState;
  readonly #settings: PathSettings;
  readonly #listeners: readonly HttpListener[];
  readonly #owners: ReadonlySet<string>;
  readonly #candidates = new Map<string, readonly HttpListener[]>();
  /** Most requests of a log go to one place. */
  #last: { readonly place: RequestPlace; readonly candidates: readonly HttpListener[] } | undefined;
  readonly #known = new Map<unknown, Map<string, Treatment>>();

  constructor(desired: DesiredState, settings: PathSettings) {
    this.#desired = desired;
    this.#settings = settings;
    this.#listeners = [...desired.loadBalancers.values()].flatMap((loadBalancer) =>
      loadBalancer.listeners.filter(readsRequests).map((listener) => ({
        ...{ loadBalancer, listener },
        index: listener.routing?.kind === 'http' ? new RuleIndex(listener.routing) : undefined,
        byRule: new Map<RouteRule, Treatment>(),
      })),
    );
    this.#owners = new Set(this.#listeners.map(({ loadBalancer }) => loadBalancer.key));
  }

  /** As this state reads the path. */
  read(path: string): ReadPath {
    return readPath(path, this.#settings);
  }

  /** Several rules in one value if only HAProxy can tell which of them matches. */
  treat(request: AskedRequest, place: RequestPlace, read: ReadPath): Treatment {
    let first: Treatment | undefined;
    for (const each of this.#candidatesOf(place)) {
      const { treatment, isFound } = this.#treatAt(each, request, read);
      if (isFound) return treatment;
      first ??= treatment;
    }
    return first ?? NO_LISTENER;
  }

  #candidatesOf(place: RequestPlace): readonly HttpListener[] {
    const last = this.#last;
    if (last !== undefined && isSamePlace(last.place, place)) return last.candidates;
    const candidates = this.#candidatesAt(place);
    this.#last = { place, candidates };
    return candidates;
  }

  #candidatesAt({ isTls, port, family, vip, owner }: RequestPlace): readonly HttpListener[] {
    const key = `${isTls} ${port} ${family} ${vip} ${owner}`;
    const known = this.#candidates.get(key);
    if (known !== undefined) return known;
    const fitting = this.#listeners.filter(
      ({ listener }) =>
        (port === undefined || listener.port === port) &&
        (isTls === undefined || isTls === endsOrPassesTls(listener)) &&
        (family === undefined || listener.family === family),
    );
    const ofVip = fitting.filter(({ listener }) => vip !== '' && listener.addresses.includes(vip));
    const ofOwner = this.#owners.has(owner)
      ? fitting.filter(({ loadBalancer }) => loadBalancer.key === owner)
      : fitting.filter(({ listener }) => listener.routing !== undefined);
    const found = ofVip.length > 0 ? ofVip : ofOwner;
    // If the scheme is not known, the listener with TLS is the more likely one.
    const sorted = found.toSorted(
      (a, b) => Number(endsOrPassesTls(b.listener)) - Number(endsOrPassesTls(a.listener)),
    );
    this.#candidates.set(key, sorted);
    return sorted;
  }

  #treatAt(
    at: HttpListener,
    request: AskedRequest,
    read: ReadPath,
  ): { readonly treatment: Treatment; readonly isFound: boolean } {
    const { listener, index } = at;
    const passing =
      request.isTls || listener.routing?.kind === 'tls' ? passedTo(listener, request.host) : undefined;
    if (passing !== undefined)
      return { treatment: this.#passing(at, passing), isFound: passing.backends.length > 0 };
    if (index === undefined || listener.routing?.kind !== 'http')
      return { treatment: this.#forAll(at, read), isFound: listener.routing === undefined };
    const { section, entry, isAmbiguous, perhaps } = index.find(request, read);
    const isPlain = entry !== undefined && perhaps.length === 0 && read.refused === '';
    const known = isPlain ? at.byRule.get(entry.rule) : undefined;
    if (known !== undefined) return { treatment: known, isFound: true };
    const isFound = entry !== undefined || perhaps.length > 0 || isAmbiguous;
    const subject = entry?.rule ?? section ?? listener;
    const unclear = perhaps.map(({ rule, match }) => `${matchInWords(match)}: ${rule.name}`);
    const key = `${listener.name} ${read.refused} ${isAmbiguous} ${unclear.join('; ')}`;
    const treatment = this.#remember(subject, key, () => {
      const rule = entry?.rule;
      const words =
        entry === undefined
          ? `no rule for ${request.host}`
          : `${section === undefined ? '' : `${hostInWords(section.hostname)}, `}${matchInWords(entry.match)}`;
      const way: RequestWay = {
        refusedPath: read.refused,
        ambiguity: isAmbiguous ? 'some paths of the host are guarded, and it can be read as one of them' : '',
        hostname: section?.hostname,
        route: { words, isFound: rule !== undefined, answer: 'status 404' },
        rule,
        perhaps: [],
        pools: this.#poolsOf(rule),
      };
      const own = this.#treatmentOf(at, way, rule, section === undefined ? '' : section.name);
      const others = perhaps.map(({ rule: other, match }) => {
        const otherWay = {
          ...way,
          route: { ...way.route, isFound: true },
          rule: other,
          pools: this.#poolsOf(other),
        };
        return { words: matchInWords(match), treatment: this.#treatmentOf(at, otherWay, other, '') };
      });
      return others.length === 0 ? own : joined(own, others);
    });
    if (isPlain) at.byRule.set(entry.rule, treatment);
    return { treatment, isFound };
  }

  #poolsOf(rule: RouteRule | undefined): RequestWay['pools'] {
    if (rule?.action.kind !== 'forward') return [];
    return rule.action.backends.map((backend) => ({
      name: poolName(backend) ?? '',
      weight: backend.weight,
      ready: this.#ready(backend),
    }));
  }

  #ready({ pool = '' }: Pick<WeightedBackend, 'pool'>): number {
    const loadBalancer = this.#desired.loadBalancers.get(ownerOfListener(pool));
    const members = loadBalancer?.listeners.find(({ name }) => name === pool)?.pool.members ?? [];
    return members.filter(({ state }) => state === 'ready').length;
  }

  #treatmentOf(
    { loadBalancer, listener }: HttpListener,
    request: RequestWay,
    rule: RouteRule | undefined,
    section: string,
  ): Treatment {
    const way = { listener, serverName: '', request, proofs: NO_PROOFS, atEachHost: '' };
    const isRefused = request.refusedPath !== '' || request.ambiguity !== '';
    const answer = isRefused
      ? 'answers 400'
      : rule === undefined
        ? `answers 404: no rule${section === '' ? '' : ` of listener "${section}"`} matches`
        : answerOf(rule, request.pools);
    return {
      rule: rule?.name ?? objectOf(loadBalancer.key),
      backends: answer === '' || request.pools.length > 0 ? sharesOf(request.pools) : '',
      answer,
      handling: handlingOf(rule),
      way,
      guards: guardsOf(way),
    };
  }

  /** A Service whose requests are read: all get its own pool. */
  #forAll(at: HttpListener, read: ReadPath): Treatment {
    const { loadBalancer, listener } = at;
    return this.#remember(listener, read.refused, () => {
      const ready = listener.pool.members.filter(({ state }) => state === 'ready').length;
      const way: RequestWay = {
        refusedPath: read.refused,
        ambiguity: '',
        hostname: undefined,
        route: { words: 'forwards to its members', isFound: true, answer: CLOSED },
        rule: undefined,
        perhaps: [],
        pools: [{ name: objectOf(loadBalancer.key), weight: 1, ready }],
      };
      const own = { listener, serverName: '', request: way, proofs: NO_PROOFS, atEachHost: '' };
      const backends = `${objectOf(loadBalancer.key)} port ${listener.port}`;
      const answer = ready > 0 ? '' : NO_MEMBER;
      return {
        rule: objectOf(loadBalancer.key),
        backends,
        answer,
        handling: '',
        way: own,
        guards: guardsOf(own),
      };
    });
  }

  #passing(at: HttpListener, { backends, words }: Passing): Treatment {
    const { loadBalancer, listener } = at;
    return this.#remember(listener, words, () => {
      const pools = backends.map((each) => ({
        name: poolName(each) ?? '',
        weight: each.weight,
        ready: this.#ready(each),
      }));
      const request: RequestWay = {
        refusedPath: '',
        ambiguity: '',
        hostname: undefined,
        route: { words, isFound: backends.length > 0, answer: CLOSED },
        rule: undefined,
        perhaps: [],
        pools,
      };
      const { tls: _, dispatch: __, ...passing } = listener;
      const way = {
        ...{ listener: { ...passing, tls: undefined }, serverName: '', request },
        ...{ proofs: NO_PROOFS, atEachHost: '' },
      };
      return {
        rule: `TLSRoute of ${objectOf(loadBalancer.key)}`,
        backends: sharesOf(pools),
        answer: backends.length > 0 ? '' : 'the connection is closed: no TLSRoute has the host',
        handling: 'TLS is passed on',
        way,
        guards: guardsOf(way),
      };
    });
  }

  #remember(subject: unknown, key: string, make: () => Treatment): Treatment {
    let known = this.#known.get(subject);
    if (known === undefined) {
      known = new Map();
      this.#known.set(subject, known);
    }
    const before = known.get(key);
    if (before !== undefined) return before;
    const made = make();
    known.set(key, made);
    return made;
  }
}

function isSamePlace(a: RequestPlace, b: RequestPlace): boolean {
  return (
    a.port === b.port &&
    a.isTls === b.isTls &&
    a.family === b.family &&
    a.vip === b.vip &&
    a.owner === b.owner
  );
}

/** What happens besides, by its name in words: its values as JSON, in their order. */
function handlingOf(rule: RouteRule | undefined): string {
  if (rule === undefined) return '';
  const { action, cors, responseHeaders } = rule;
  const forwarded = action.kind === 'forward' ? action : undefined;
  return JSON.stringify({
    CORS: cors,
    'response headers': responseHeaders,
    'request headers': forwarded?.requestHeaders,
    'headers of its backends': headersOf(forwarded?.backends ?? []),
    rewriting: forwarded?.rewrite,
    'the certificate of clients for members': forwarded?.passesCertificate,
    mirrors: forwarded?.mirrors,
    'the choice of a member': forwarded?.hashBy,
    'the default backend': forwarded?.fallback,
    'pages of errors': forwarded?.customErrors?.codes,
    'which methods are sent again': forwarded?.retriesIdempotentOnly,
    'the cookie of session affinity': forwarded?.cookie,
    'the time limit': forwarded?.timeout,
  });
}

function readsRequests({ protocol, reachedBy, routing, mode, addresses }: Listener): boolean {
  if (protocol !== 'TCP' || reachedBy === 'routes' || addresses.length === 0) return false;
  return routing === undefined ? mode === 'http' : routing.kind !== 'tcp';
}

function endsOrPassesTls({ tls, routing }: Listener): boolean {
  return tls !== undefined || routing?.kind === 'tls';
}

interface Passing {
  readonly backends: readonly WeightedBackend[];
  readonly words: string;
}

/** Where a connection with this name is passed on; undefined if its requests are read here. */
function passedTo({ routing, dispatch }: Listener, host: string): Passing | undefined {
  const passing = routing?.kind === 'tls' ? routing : dispatch;
  if (passing === undefined) return undefined;
  const [found] = mostSpecific(passing.hosts, host, (each) => each.host);
  if (found?.isEnded) return undefined;
  if (found === undefined) return { backends: [], words: 'no TLSRoute has the host' };
  return { backends: found.backends, words: hostInWords(found.host) };
}

function answerOf(rule: RouteRule, pools: RequestWay['pools']): string {
  const { action } = rule;
  if (action.kind !== 'forward') return actionInWords(rule);
  // Its own members are not looked at.
  if (action.fallback !== undefined) return '';
  const known = pools.filter(({ name, weight }) => name !== '' && weight > 0);
  if (known.length === 0) return `answers ${action.failure}: it has no backend with a weight`;
  return known.every(({ ready }) => ready === 0) ? NO_MEMBER : '';
}

/** `default/web port 80`, `9/10 default/web port 80, 1/10 default/canary port 80`. */
function sharesOf(pools: RequestWay['pools']): string {
  const used = pools.filter(({ weight }) => weight > 0);
  const [only] = used;
  if (only !== undefined && used.length === 1) return nameOf(only);
  const common = used.map(({ weight }) => weight).reduce(greatestDivisor, 0) || 1;
  const total = used.reduce((sum, { weight }) => sum + weight, 0) / common;
  return used
    .map((pool) => `${pool.weight / common}/${total} ${nameOf(pool)}`)
    .sort()
    .join(', ');
}

function nameOf({ name }: RequestWay['pools'][number]): string {
  return name === '' ? 'a backend that does not exist' : name.replace(/^pool:/, '');
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** What is done with the headers of each backend's share. */
function headersOf(backends: readonly WeightedBackend[]): readonly unknown[] {
  return backends
    .filter(
      ({ requestHeaders, responseHeaders }) => requestHeaders !== undefined || responseHeaders !== undefined,
    )
    .map(({ pool, requestHeaders, responseHeaders }) => [pool, requestHeaders, responseHeaders]);
}

/** What does not say who may come in. */
const NO_GUARDS: ReadonlySet<string> = new Set([
  'route',
  'members',
  'answer',
  'redirect',
  'share of namespace',
]);

function guardsOf(way: Omit<Way, 'client'>): string {
  const { checks } = accessOf({ ...way, client: ANY_CLIENT });
  const { allowedCidrs, tls, trustedProxies = [] } = way.listener;
  const { allowedCidrs: ofRoute, deniedCidrs } = way.request?.rule?.limits ?? {};
  return JSON.stringify([
    checks.filter(({ name }) => !NO_GUARDS.has(name)),
    // Words name the first ranges only.
    [allowedCidrs, trustedProxies, ofRoute, deniedCidrs],
    [tls?.clients, tls?.sections?.map(({ hostname, clients }) => [hostname, clients])],
  ]);
}

/** One treatment out of those of several rules, of which only HAProxy can tell which takes the request. */
function joined(
  own: Treatment,
  others: readonly { readonly words: string; readonly treatment: Treatment }[],
): Treatment {
  const all = (part: (treatment: Treatment) => string): string =>
    [...others.map(({ words, treatment }) => `${part(treatment)} (${words})`), part(own)].join(', or ');
  return {
    rule: all(({ rule }) => rule),
    backends: all(({ backends }) => backends),
    answer: all(({ answer }) => answer),
    handling: all(({ handling }) => handling),
    way: own.way,
    guards: all(({ guards }) => guards),
  };
}
