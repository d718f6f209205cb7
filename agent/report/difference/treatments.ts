// What one state does with requests: the listener that takes one, its rule, and what happens then, as values that can be
// compared with those of another state. Decides by the matcher of `why URL`. Pure.

import { asksForCertificates } from '../../model/client-guards.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { Family, Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { objectOf, ownerOfListener } from '../../model/names.ts';
import type { HostPattern, RouteRule, RouteSection, WeightedBackend } from '../../model/routes.ts';
import type { AskedRequest } from '../answers/access/asked-request.ts';
import { answerToWrong, askedOf } from '../answers/access/certificate-checks.ts';
import { CLOSED, type RequestWay, type Way } from '../answers/access/check.ts';
import { mostSpecific } from '../answers/access/hosts.ts';
import { type PathSettings, type ReadPath, readPath } from '../answers/access/path-rules.ts';
import { NO_PROOFS } from '../answers/access/proofs.ts';
import { RuleIndex } from '../answers/access/rule-index.ts';
import { hostInWords, matchInWords, poolName } from '../answers/route-words.ts';
import {
  answerOf,
  guardsInText,
  handlingOf,
  joined,
  NO_MEMBER,
  sharesOf,
  type Treatment,
} from './treatment.ts';

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
  /** By section and rule, for requests in which nothing is unclear and nothing refused. */
  readonly bySection: Map<RouteSection | undefined, Map<RouteRule, Treatment>>;
  /** By host and section: a name in handshakes that asks for the same certificates as the host. */
  readonly serverNames: Map<string, string>;
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
        bySection: new Map<RouteSection | undefined, Map<RouteRule, Treatment>>(),
        serverNames: new Map<string, string>(),
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
    const serverName = serverNameOf(at, section, request);
    const isUsual = serverName === nameIn(section?.hostname);
    const isPlain = entry !== undefined && perhaps.length === 0 && read.refused === '' && isUsual;
    const known = isPlain ? at.bySection.get(section)?.get(entry.rule) : undefined;
    if (known !== undefined) return { treatment: known, isFound: true };
    const isFound = entry !== undefined || perhaps.length > 0 || isAmbiguous;
    const subject = entry?.rule ?? section ?? listener;
    const unclear = perhaps.map(({ rule, match }) => `${matchInWords(match)}: ${rule.name}`);
    const key = `${listener.name} ${serverName} ${section?.name} ${read.refused} ${isAmbiguous} ${unclear.join('; ')}`;
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
      const own = this.#treatmentOf(at, way, rule, { section: section?.name ?? '', serverName });
      const others = perhaps.map(({ rule: other, match }) => {
        const otherWay = {
          ...way,
          route: { ...way.route, isFound: true },
          rule: other,
          pools: this.#poolsOf(other),
        };
        return {
          words: matchInWords(match),
          treatment: this.#treatmentOf(at, otherWay, other, { section: '', serverName }),
        };
      });
      return others.length === 0 ? own : joined(own, others);
    });
    if (isPlain) remember(at.bySection, section, entry.rule, treatment);
    return { treatment, isFound };
  }

  #poolsOf(rule: RouteRule | undefined): RequestWay['pools'] {
    if (rule?.action.kind !== 'forward') return [];
    return rule.action.backends.map((backend) => ({
      name: poolName(backend) ?? '',
      weight: backend.weight,
      ready: this.#ready(backend),
      ...guardsOfPool(this.#listener(backend)),
    }));
  }

  #ready(backend: Pick<WeightedBackend, 'pool'>): number {
    const members = this.#listener(backend)?.pool.members ?? [];
    return members.filter(({ state }) => state === 'ready').length;
  }

  /** A pool's. */
  #listener({ pool = '' }: Pick<WeightedBackend, 'pool'>): Listener | undefined {
    const loadBalancer = this.#desired.loadBalancers.get(ownerOfListener(pool));
    return loadBalancer?.listeners.find(({ name }) => name === pool);
  }

  /** How members of the rule's pools are reached, by pool; only what is not usual. */
  #connectionsOf(rule: RouteRule | undefined): Readonly<Record<string, unknown>> {
    const backends = rule?.action.kind === 'forward' ? rule.action.backends : [];
    return Object.fromEntries(
      backends.flatMap((backend) => {
        const { tls, httpVersion, retry } = this.#listener(backend)?.pool ?? {};
        const isUsual = tls === undefined && retry === undefined && httpVersion !== '2';
        return isUsual ? [] : [[poolName(backend) ?? '', { tls, httpVersion, retry }] as const];
      }),
    );
  }

  #treatmentOf(
    { loadBalancer, listener }: HttpListener,
    request: RequestWay,
    rule: RouteRule | undefined,
    { section, serverName }: { readonly section: string; readonly serverName: string },
  ): Treatment {
    const way = { listener, serverName, request, proofs: NO_PROOFS, atEachHost: '' };
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
      handling: handlingOf(rule, this.#connectionsOf(rule), answerToWrong(way)),
      way: withMembers(way),
      guards: guardsInText(withMembers(way)),
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
        way: withMembers(own),
        guards: guardsInText(withMembers(own)),
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
        ...{ proofs: NO_PROOFS, atEachHost: '', isPassedOn: true as const },
      } as const;
      return {
        rule: `TLSRoute of ${objectOf(loadBalancer.key)}`,
        backends: sharesOf(pools),
        answer: backends.length > 0 ? '' : 'the connection is closed: no TLSRoute has the host',
        handling: 'TLS is passed on',
        way: withMembers(way),
        guards: guardsInText(withMembers(way)),
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

/** The members of a state say nothing of who may come in, and folders of manifests often have none. */
function withMembers(way: Omit<Way, 'client'>): Omit<Way, 'client'> {
  const { request } = way;
  if (request === undefined) return way;
  return { ...way, request: { ...request, pools: request.pools.map((pool) => ({ ...pool, ready: 1 })) } };
}

function guardsOfPool(listener: Listener | undefined): Pick<RequestWay['pools'][number], 'clients' | 'tls'> {
  const { clients, tls } = listener?.pool ?? {};
  return { ...(clients && { clients }), ...(tls && { tls }) };
}

const MOST_NAMES = 100_000;

/** The host itself if its handshakes ask for other certificates than those of its section, as a name without routes of its own may. */
function serverNameOf(
  { listener, serverNames }: HttpListener,
  section: RouteSection | undefined,
  { host, address }: AskedRequest,
): string {
  const own = nameIn(section?.hostname);
  if (address !== '' || listener.tls === undefined || !asksForCertificates(listener.tls)) return own;
  const key = `${host} ${own}`;
  const known = serverNames.get(key);
  if (known !== undefined) return known;
  const [ofHost, ofOwn] = [host, own].map((serverName) => askedOf({ listener, serverName }));
  const found = ofHost === ofOwn ? own : host;
  if (serverNames.size >= MOST_NAMES) serverNames.clear();
  serverNames.set(key, found);
  return found;
}

/** A name in handshakes that belongs to the hostname; '' if any does. */
function nameIn(hostname: HostPattern | undefined): string {
  if (hostname === undefined || hostname.kind === 'any') return '';
  return hostname.kind === 'exact' ? hostname.suffix : `any.${hostname.suffix}`;
}

function remember(
  bySection: HttpListener['bySection'],
  section: RouteSection | undefined,
  rule: RouteRule,
  treatment: Treatment,
): void {
  let byRule = bySection.get(section);
  if (byRule === undefined) {
    byRule = new Map();
    bySection.set(section, byRule);
  }
  byRule.set(rule, treatment);
}
