// A route's rules with all that they refer to, and what its status says of them. Kept while the route, and every object that it
// refers to, is as it was: a change of one route costs nothing for the others.

import type { Route, RouteKind } from '../../kubernetes/gateway/route-objects.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { PoolUse } from '../../model/pool-uses.ts';
import type { WeightedBackend } from '../../model/routes.ts';
import { TCP_PROFILE } from '../pool/pool-profile.ts';
import type { RouteEntries } from '../routes/host-routes.ts';
import { type RouteAnnotations, routeAnnotations } from '../routes/route-annotations.ts';
import { tokensOf } from '../routes/route-tokens.ts';
import { authOf } from '../routes/route-users.ts';
import { BackendReader } from './backends.ts';
import { type GatewayView, Reads } from './gateway-view.ts';
import { grpcEntries } from './grpc-rules.ts';
import { type ClientSide, hasRedirect, httpEntries } from './http-rules.ts';
import { type ResolvedBackend, resolveBackend } from './references.ts';

export interface ResolvedRoute {
  readonly reads: Reads;
  /** Entries of HTTPRoutes and GRPCRoutes. */
  readonly entries: RouteEntries;
  /** Backends of TLSRoutes and TCPRoutes. */
  readonly backends: readonly WeightedBackend[];
  /** Members of UDPRoutes. */
  readonly members: readonly WeightedService[];
  /** Each once. */
  readonly uses: readonly PoolUse[];
  /** Why no rule can be carried out. */
  readonly notAccepted: RefusalReason | undefined;
  /** Why some cannot. */
  readonly partiallyInvalid: RefusalReason | undefined;
  readonly unresolved: RefusalReason | undefined;
  /** A sentence for each annotation with a value that is not allowed. */
  readonly annotationFaults: readonly string[];
  /** The Secret of its users; '' for none. */
  readonly usersSecret: string;
  /** The name of the keys of its tokens; '' for none. */
  readonly tokenKeys: string;
}

export interface WeightedService {
  /** undefined if the reference cannot be followed. */
  readonly backend: ResolvedBackend | undefined;
  readonly weight: number;
}

export class ResolvedRoutes {
  readonly #view: GatewayView;
  /** By route and what else makes a difference: the client's side, and the certificate that members get. */
  readonly #resolved = new WeakMap<Route, Map<string, ResolvedRoute>>();

  constructor(view: GatewayView) {
    this.#view = view;
  }

  /** `certificate`: the Secret with the certificate that members get. */
  of(route: Route, client: ClientSide, certificate: string | undefined): ResolvedRoute {
    const isOfClient = route.kind === 'HTTPRoute' && hasRedirect(route);
    const variant = `${isOfClient ? `${client.scheme} ${client.port}` : ''} ${certificate ?? ''}`;
    const variants = this.#resolved.get(route) ?? new Map<string, ResolvedRoute>();
    const last = variants.get(variant);
    if (last?.reads.areCurrent()) return last;
    const resolved = resolve(route, client, certificate, new Reads(this.#view));
    this.#resolved.set(route, variants.set(variant, resolved));
    return resolved;
  }
}

function resolve(
  route: Route,
  client: ClientSide,
  certificate: string | undefined,
  reads: Reads,
): ResolvedRoute {
  const reader = new BackendReader({ kind: route.kind, namespace: route.namespace }, certificate, reads);
  const annotations = routeAnnotations(route.kind, route.annotations);
  const { entries, faults } = entriesOf(route, annotations, client, reader);
  const { created, key } = route;
  const isWhole = faults.size === 0 || faults.size === route.rules.length;
  const backends =
    (route.kind === 'TLSRoute' || route.kind === 'TCPRoute') && !annotations.isClosed
      ? reader.weighted(route.rules[0]?.backends ?? [], TCP_PROFILE)
      : NONE;
  const { members, fault } =
    route.kind === 'UDPRoute' && !annotations.isClosed ? udpMembers(route, reads) : NO_MEMBERS;
  return {
    reads,
    entries: { created, key, entries },
    backends,
    members,
    uses: reader.uses,
    notAccepted: isWhole ? ruleFault(faults, '') : undefined,
    partiallyInvalid: isWhole ? undefined : ruleFault(faults, 'Dropped Rule: '),
    unresolved: reader.fault ?? fault,
    ...annotated(route, annotations),
  };
}

function annotated(
  { namespace }: Route,
  { options, faults }: RouteAnnotations,
): Pick<ResolvedRoute, 'annotationFaults' | 'usersSecret' | 'tokenKeys'> {
  const { auth, fault } = authOf(options, namespace);
  const { jwt, fault: ofTokens } = tokensOf(options, namespace);
  return {
    annotationFaults: [...faults, fault, ofTokens].filter(Boolean),
    usersSecret: auth?.secret ?? '',
    tokenKeys: jwt?.keys ?? '',
  };
}

const NONE: readonly never[] = [];
const NO_MEMBERS = { members: NONE, fault: undefined };

function entriesOf(route: Route, annotations: RouteAnnotations, client: ClientSide, reader: BackendReader) {
  if (route.kind === 'HTTPRoute') return httpEntries(route, annotations, client, reader);
  if (route.kind === 'GRPCRoute') return grpcEntries(route, annotations, reader);
  return { entries: NONE, faults: new Map<number, RefusalReason>() };
}

function ruleFault(faults: ReadonlyMap<number, RefusalReason>, beginning: string): RefusalReason | undefined {
  const [first] = faults;
  if (first === undefined) return undefined;
  const [index, { reason, message }] = first;
  const more = faults.size === 1 ? '' : ` (and ${faults.size - 1} more)`;
  return { reason, message: `${beginning}Cannot carry out rule ${index}: ${message}${more}` };
}

function udpMembers(
  route: Extract<Route, { kind: 'UDPRoute' }>,
  reads: Reads,
): { readonly members: readonly WeightedService[]; readonly fault: RefusalReason | undefined } {
  const from = { kind: route.kind satisfies RouteKind, namespace: route.namespace };
  let fault: RefusalReason | undefined;
  const members = (route.rules[0]?.backends ?? []).map((reference) => {
    const found = resolveBackend(from, reference, 'UDP', reads);
    if ('reason' in found) fault ??= found;
    return { backend: 'reason' in found ? undefined : found, weight: reference.weight };
  });
  const isServed = members.some(({ backend, weight }) => backend !== undefined && weight > 0);
  if (fault !== undefined && isServed)
    fault = { ...fault, message: `${fault.message}; the other backends get its share` };
  return { members, fault };
}
