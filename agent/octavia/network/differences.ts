// What `ip -batch` must do so that an interface has what it needs: exactly the differences. What the kernel, keepalived or an
// operator has set stays. Pure.

import { familyOf } from '../../base/ip.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { FoundNetwork } from './found-network.ts';
import type { Route, Rule, WantedInterface } from './wanted-interface.ts';

/** The order of the steps: routes need addresses, and duplicate address detection may be under way between the two. */
export type Phase = 'link' | 'address' | 'route' | 'removal';

export interface Step {
  readonly phase: Phase;
  readonly family: Family;
  /** One line of `ip -batch`. */
  readonly line: string;
}

/** The protocol `static`, by which our own routes and rules are known. */
const STATIC = 4;

/** Without steps if all is as it should be. The interface must be there. */
export function differences(wanted: WantedInterface, found: FoundNetwork): readonly Step[] {
  return [
    ...linkSteps(wanted, found),
    ...addressSteps(wanted, found),
    ...routeSteps(wanted, found),
    ...ruleSteps(wanted, found),
  ];
}

function linkSteps({ name, mtu }: WantedInterface, { links }: FoundNetwork): readonly Step[] {
  const link = links.find((each) => each.name === name);
  const words = [
    ...(mtu !== undefined && link?.mtu !== mtu ? [`mtu ${mtu}`] : []),
    ...(link?.isUp === true ? [] : ['up']),
  ];
  if (words.length === 0) return [];
  return [{ phase: 'link', family: 'v4', line: `link set dev ${name} ${words.join(' ')}` }];
}

function addressSteps({ name, addresses, foreign }: WantedInterface, found: FoundNetwork): readonly Step[] {
  const there = found.addresses.filter(({ device, isPermanent }) => device === name && isPermanent);
  const textOf = ({ address, prefix }: { address: string; prefix: number }): string => `${address}/${prefix}`;
  const [is, should] = [new Set(there.map(textOf)), new Set(addresses.map(textOf))];
  const step = (phase: Phase, verb: string, text: string): Step => ({
    phase,
    family: familyOf(text),
    line: `address ${verb} ${text} dev ${name}`,
  });
  return [
    ...[...should].filter((text) => !is.has(text)).map((text) => step('address', 'add', text)),
    ...there
      .filter((each) => !should.has(textOf(each)) && !foreign.has(each.address))
      .map((each) => step('removal', 'del', textOf(each))),
  ];
}

function routeSteps({ name, routes }: WantedInterface, found: FoundNetwork): readonly Step[] {
  const there = new Map(
    found.routes
      .filter(({ protocol }) => protocol === STATIC)
      .filter(({ device }) => device === name)
      .map((route) => [placeOf(route), route]),
  );
  /** By place: routes of the kernel and of keepalived, which serve as well. */
  const foreign = new Set(
    found.routes.filter((each) => each.device === name && each.protocol !== STATIC).map(placeOf),
  );
  const wanted = new Map(routes.map((route) => [placeOf(route), route]));
  const steps: Step[] = [];
  for (const [place, route] of wanted) {
    const is = there.get(place);
    if (is === undefined ? foreign.has(place) : isSame(is, route)) continue;
    const verb = is === undefined ? 'add' : 'replace';
    steps.push(routeStep('route', verb, name, route));
  }
  for (const [place, route] of there)
    if (!wanted.has(place)) steps.push(routeStep('removal', 'del', name, route));
  return steps;
}

function routeStep(phase: Phase, verb: string, name: string, route: Route): Step {
  const { table, destination, gateway, source } = route;
  const family = familyOf(destination);
  // IPv6 has no scopes of routes.
  const via = gateway === undefined ? (family === 'v4' ? ' scope link' : '') : ` via ${gateway} onlink`;
  const from = source === undefined ? '' : ` src ${source}`;
  const line = `route ${verb} ${destination} dev ${name}${via}${from} table ${table} proto static`;
  return { phase, family, line };
}

function ruleSteps({ rules }: WantedInterface, found: FoundNetwork): readonly Step[] {
  if (rules === undefined) return [];
  const textOf = ({ from, table }: Rule): string => `from ${from} table ${table} protocol static`;
  const there = new Set(found.rules.filter(({ protocol }) => protocol === STATIC).map(textOf));
  const wanted = new Set(rules.map(textOf));
  const step = (phase: Phase, verb: string, text: string): Step => ({
    phase,
    family: text.includes(':') ? 'v6' : 'v4',
    line: `rule ${verb} ${text}`,
  });
  return [
    ...[...wanted].filter((text) => !there.has(text)).map((text) => step('route', 'add', text)),
    ...[...there].filter((text) => !wanted.has(text)).map((text) => step('removal', 'del', text)),
  ];
}

function placeOf({ table, destination }: Route): string {
  return `${table} ${destination}`;
}

function isSame(a: Route, b: Route): boolean {
  return a.gateway === b.gateway && a.source === b.source;
}
