// What a canary asks of its clients, and what the Ingress asks whose requests it gets: both hold, so that a canary is no way
// around. Pure.

import { BlockList } from 'node:net';
import { type RouteGuards, routeGuards } from '../../model/route-guards.ts';
import type { RouteAuth, RouteLimits } from '../../model/routes.ts';

/** Both together; undefined if they let no client in. */
export function bothGuards(main: RouteGuards, canary: RouteGuards): RouteGuards | undefined {
  const limits = bothLimits(main.limits, canary.limits);
  // Nothing says what both expressions match.
  const certificateName = theSame(main.certificateName, canary.certificateName);
  const auth = bothUsers(main.auth, canary.auth);
  // A request has one token, and is asked about once.
  const jwt = theSame(main.jwt, canary.jwt);
  const externalAuth = theSame(main.externalAuth, canary.externalAuth);
  if ([limits, certificateName, auth, jwt, externalAuth].includes(NOBODY)) return undefined;
  return { limits, certificateName, auth, jwt, externalAuth } as RouteGuards;
}

/** The canary asks for nothing besides, so that it can have a part of the requests by weight. */
export function asksForMore(main: RouteGuards, canary: RouteGuards): boolean {
  const both = bothGuards(main, canary);
  return both === undefined || JSON.stringify(both) !== JSON.stringify(routeGuards(main));
}

const NOBODY = 'nobody';
type Both<T> = T | undefined | typeof NOBODY;

/** What only one of them asks for, or both alike. */
function theSame<T>(main: T | undefined, canary: T | undefined): Both<T> {
  if (main === undefined || canary === undefined) return main ?? canary;
  return JSON.stringify(main) === JSON.stringify(canary) ? main : NOBODY;
}

function bothLimits(a: RouteLimits | undefined, b: RouteLimits | undefined): Both<RouteLimits> {
  if (a === undefined || b === undefined) return a ?? b;
  const allowedCidrs = bothRanges(a.allowedCidrs, b.allowedCidrs);
  if (allowedCidrs === NOBODY) return NOBODY;
  const minuteRate = lower(a.minuteRate, b.minuteRate);
  const requestsAtOnce = lower(a.requestsAtOnce, b.requestsAtOnce);
  return {
    allowedCidrs,
    deniedCidrs: [...new Set([...a.deniedCidrs, ...b.deniedCidrs])],
    requestRate: lower(a.requestRate, b.requestRate),
    ...(minuteRate > 0 && { minuteRate }),
    ...(requestsAtOnce > 0 && { requestsAtOnce }),
    bodyBytes: lower(a.bodyBytes, b.bodyBytes),
  };
}

/** 0 is no limit. */
function lower(a = 0, b = 0): number {
  return a === 0 || b === 0 ? a + b : Math.min(a, b);
}

/** If two CIDRs meet, one is within the other. An empty list has all addresses. */
function bothRanges(a: readonly string[], b: readonly string[]): readonly string[] | typeof NOBODY {
  if (a.length === 0 || b.length === 0) return [...a, ...b];
  const both = [...a.filter((cidr) => isWithin(b, cidr)), ...b.filter((cidr) => isWithin(a, cidr))];
  return both.length === 0 ? NOBODY : [...new Set(both)];
}

function isWithin(cidrs: readonly string[], cidr: string): boolean {
  const [network = '', bits] = cidr.split('/');
  const family = network.includes(':') ? 'ipv6' : 'ipv4';
  return cidrs.some((each) => {
    const [other = '', otherBits] = each.split('/');
    if (other.includes(':') !== network.includes(':') || Number(otherBits) > Number(bits)) return false;
    const list = new BlockList();
    list.addSubnet(other, Number(otherBits), family);
    return list.check(network, family);
  });
}

/** A client cannot give two passwords. */
function bothUsers(main: RouteAuth | undefined, canary: RouteAuth | undefined): Both<RouteAuth> {
  if (main === undefined || canary === undefined) return main ?? canary;
  if (main.secret !== canary.secret) return NOBODY;
  return { ...main, removesHeader: main.removesHeader || canary.removesHeader };
}
