// Gives canaries their part of the requests of other Ingresses, as ingress-nginx does: by weight, or by a header. Pure.

import { CLOSED } from '../../model/answering-rule.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { isGuarded } from '../../model/route-guards.ts';
import type { ForwardAction, RouteEntry, RouteMatch } from '../../model/routes.ts';
import type { RouteEntries } from '../routes/host-routes.ts';
import { asksForMore, bothGuards } from './canary-guards.ts';
import type { Canary } from './ingress-rules.ts';
import type { OwnedIngress } from './owned-hosts.ts';
import { isSpelling, withRewrite } from './path-entries.ts';

/** The same value if no canary of its namespace has one of its paths. `canaries`: of its host; `by`: the Ingress of the routes. */
export function withCanaries(
  routes: RouteEntries,
  canaries: readonly Canary[],
  by?: OwnedIngress['read'],
): RouteEntries {
  const ofHost = canaries.filter((canary) => isOfNamespace(routes, canary) && !isLessVerified(canary, by));
  if (ofHost.length === 0) return routes;
  let isChanged = false;
  let last: Canary | undefined;
  const entries = routes.entries.flatMap((entry): readonly RouteEntry[] => {
    const isOfLast = isSpelling(entry.match);
    const canary = isOfLast ? last : ofHost.find(({ match }) => isSamePath(match, entry.match));
    last = canary;
    const { action } = entry.rule;
    if (canary === undefined || action.kind !== 'forward') return [entry];
    isChanged = true;
    const { choices, weight, total } = canary;
    const rule = isOfLast ? ofSpelling(canary) : canary.rule;
    const own = asksForMore(entry.rule, rule) ? 0 : Math.min(weight, total);
    const shared = {
      ...action,
      backends: [
        ...action.backends.map((backend) => ({ ...backend, weight: total - own })),
        ...rule.action.backends.map((backend) => ({ ...backend, weight: own })),
      ],
    };
    const byWeight = own === 0 ? entry : { ...entry, rule: { ...entry.rule, action: shared } };
    if (choices.length === 0) return [byWeight];
    const guards = bothGuards(entry.rule, rule);
    const taken = { ...rule, action: { ...defaultBackendOf(action), ...rule.action } };
    const guarded = guards === undefined ? { ...rule, action: CLOSED } : { ...taken, ...guards };
    // A match with more headers comes first, and of these the first.
    const chosen = choices.map(({ headers, takes }) => ({
      match: { ...entry.match, headers },
      rule: takes ? guarded : entry.rule,
    }));
    return [...chosen, byWeight];
  });
  return isChanged ? { ...routes, entries } : routes;
}

/** What answers instead of members is that of the other Ingress. */
function defaultBackendOf({
  fallback,
  customErrors,
}: ForwardAction): Pick<ForwardAction, 'fallback' | 'customErrors'> {
  return { ...(fallback && { fallback }), ...(customErrors && { customErrors }) };
}

function ofSpelling({ rule, rewrite }: Canary): Canary['rule'] {
  const { action, ...others } = withRewrite(rule, rewrite);
  return action.kind === 'forward' ? { ...others, action } : rule;
}

/** Canaries that have a host in common with Ingresses of other namespaces only. */
export function strangeCanaries(all: readonly OwnedIngress[]): readonly Problem[] {
  const namespaces = new Map<string, Set<string>>();
  for (const { ingress, read } of all)
    for (const { host } of read.hosts) {
      const known = namespaces.get(host) ?? new Set();
      namespaces.set(host, known.add(ingress.namespace));
    }
  return all.flatMap(({ ingress, read }): readonly Problem[] => {
    const strange = read.canaries.find(({ host, namespace }) => {
      const known = namespaces.get(host);
      return known !== undefined && !known.has(namespace);
    });
    if (strange === undefined) return [];
    const message = `The canary gets no request of host "${strange.host || '*'}": its Ingresses are of other namespaces`;
    return [{ object: `Ingress ${ingress.key}`, reason: 'RouteShadowed', message }];
  });
}

/** Requests whose members are verified must not go to others. */
function isLessVerified({ verifiesMembers }: Canary, by: OwnedIngress['read'] | undefined): boolean {
  return by?.memberTls?.isVerified === true && !verifiesMembers;
}

/** Canaries whose members are not verified beside Ingresses that verify theirs. */
export function unverifiedCanaries(all: readonly OwnedIngress[]): readonly Problem[] {
  const verifying = all.filter(({ read }) => read.memberTls?.isVerified === true);
  if (verifying.length === 0) return [];
  return all.flatMap(({ ingress, read }): readonly Problem[] => {
    const other = read.canaries.find(
      (canary) =>
        !canary.verifiesMembers &&
        verifying.some(
          (main) =>
            main.ingress.namespace === canary.namespace &&
            main.read.hosts.some(({ host }) => host === canary.host),
        ),
    );
    if (other === undefined) return [];
    const message = `The canary gets no request of Ingresses of host "${other.host || '*'}" that verify members: give it "proxy-ssl-verify" as well`;
    return [{ object: `Ingress ${ingress.key}`, reason: 'InvalidAnnotation', message }];
  });
}

/** Canaries that ask their clients for more than the Ingresses do whose requests they are to get a part of. */
export function narrowerCanaries(all: readonly OwnedIngress[]): readonly Problem[] {
  const asking = all.filter(({ read }) => read.canaries.some(({ rule }) => isGuarded(rule)));
  if (asking.length === 0) return [];
  const byHost = new Map<string, RouteEntry[]>();
  for (const { host, entries } of all.flatMap(({ read }) => read.hosts))
    byHost.set(host, [...(byHost.get(host) ?? []), ...entries.entries]);
  return asking.flatMap(({ ingress, read }): readonly Problem[] => {
    const narrower = read.canaries.find(({ host, match, rule }) =>
      byHost.get(host)?.some((entry) => isSamePath(match, entry.match) && asksForMore(entry.rule, rule)),
    );
    if (narrower === undefined) return [];
    const message = `The canary asks its clients for more than the Ingress whose requests it takes on host "${narrower.host || '*'}": both hold for requests with its header, and it gets none by weight; give both Ingresses the same annotations`;
    return [{ object: `Ingress ${ingress.key}`, reason: 'InvalidAnnotation', message }];
  });
}

function isSamePath({ path: a }: RouteMatch, { path: b }: RouteMatch): boolean {
  return a.kind === b.kind && a.value === b.value;
}

function isOfNamespace({ key }: RouteEntries, { namespace }: Canary): boolean {
  return key.replace(/^~/, '').startsWith(`${namespace}/`);
}
