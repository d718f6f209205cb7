// The rules of a GRPCRoute as entries of the model: a call is a POST to `/service/method`. Pure.

import { Expressions } from '../../base/expression/expression.ts';
import type { GrpcMatch, GrpcRoute, GrpcRule } from '../../kubernetes/gateway/route-objects.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { RouteMatch, RouteRule } from '../../model/routes.ts';
import { GRPC_PROFILE } from '../pool/pool-profile.ts';
import type { RouteAnnotations } from '../routes/route-annotations.ts';
import type { BackendReader } from './backends.ts';
import {
  closedRule,
  expressionFault,
  filterFault,
  forwardTo,
  headerChanges,
  NO_CHANGES,
  type RuleEntries,
  readable,
  refusedRule,
  ruleNames,
  unsupported,
  valueMatch,
} from './http-rules.ts';

export function grpcEntries(
  route: GrpcRoute,
  { isClosed }: RouteAnnotations,
  backends: BackendReader,
): RuleEntries {
  const faults = new Map<number, RefusalReason>();
  const expressions = new Expressions();
  const entries = route.rules.flatMap((rule, index) => {
    const fault = ruleFault(rule, expressions);
    if (fault !== undefined) faults.set(index, fault);
    const built = isClosed
      ? closedRule(route, index)
      : fault === undefined
        ? grpcRule(route, index, rule, backends)
        : refusedRule(route, index);
    const matches = rule.matches.map(matchOf);
    return matches.map((match) => ({
      match: fault === undefined ? match : readable(match, expressions),
      rule: built,
    }));
  });
  return { entries, faults };
}

/** Clients make UNAVAILABLE of 503, which the API demands, but UNKNOWN of 500. */
function grpcRule(
  { kind, key }: GrpcRoute,
  index: number,
  rule: GrpcRule,
  backends: BackendReader,
): RouteRule {
  return {
    ...ruleNames(kind, key, index),
    ...NO_CHANGES,
    responseHeaders: headerChanges(rule.filters),
    action: { ...forwardTo(rule, backends, GRPC_PROFILE), failure: 503, rewrite: undefined, timeout: 0 },
  };
}

function matchOf({ headers, ...call }: GrpcMatch): RouteMatch {
  return {
    path: pathOf(call),
    method: '',
    headers: headers.map((match) => valueMatch(match, match.name.toLowerCase())),
    query: [],
  };
}

function pathOf({ type, service, method }: Omit<GrpcMatch, 'headers'>): RouteMatch['path'] {
  const isWhole = service !== '' && method !== '';
  if (type === 'Exact' && isWhole) return { kind: 'exact', value: `/${service}/${method}` };
  if (service === '' && method === '') return { kind: 'prefix', value: '' };
  if (type === 'Exact' && method === '') return { kind: 'prefix', value: `/${service}` };
  return { kind: 'regex', value: `/${partOf(type, service)}/${partOf(type, method)}$` };
}

/** Names of services and methods have no characters that mean something in an expression, but for dots. */
function partOf(type: GrpcMatch['type'], text: string): string {
  if (text === '') return '[^/]+';
  return type === 'Exact' ? text.replaceAll('.', '\\.') : `(?:${text})`;
}

function ruleFault(
  { filters, backends, matches }: GrpcRule,
  expressions: Expressions,
): RefusalReason | undefined {
  if (filters.some(({ kind }) => kind === 'externalAuth'))
    return unsupported('it has a filter of type ExternalAuth, which only HTTPRoutes have');
  return expressionFault(matches.map(matchOf), expressions) ?? filterFault(filters, backends);
}
