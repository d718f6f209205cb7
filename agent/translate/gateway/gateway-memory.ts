// What one Gateway remembers from one translation to the next: where its routes attach, and the values made from them. Caches
// results until their inputs change.
// Why: docs/design/decisions/0050-what-gateways-remember.md

import { portionsOf } from '../../base/portions.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Route } from '../../kubernetes/gateway/route-objects.ts';
import type { Dependency, RouteParent } from '../../model/desired-state.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectStatus, RouteStatus } from '../../model/object-status.ts';
import type { HostRoutes } from '../../model/routes.ts';
import { type HostedRoute, SectionHosts } from '../routes/section-hosts.ts';
import { attachRoute, type RouteAttachment } from './attachment.ts';
import type { GatewayView } from './gateway-view.ts';
import type { ClientSide } from './http-rules.ts';
import { endsTls, type GatewayListener } from './listeners.ts';
import type { ResolvedRoutes } from './resolved-route.ts';
import { type AttachedRoute, type RouteOnGateway, type RoutePortion, readsOf } from './route-portions.ts';
import { routeStatus } from './route-status.ts';

export interface RoutesOptions {
  /** The listeners that listeners() gave. */
  readonly listeners: readonly GatewayListener[];
  /** The Gateway and its ListenerSets. */
  readonly parents: readonly RouteParent[];
  readonly view: GatewayView;
  readonly resolved: ResolvedRoutes;
  /** The Secret with the certificate that members get. */
  readonly certificate: string | undefined;
  /** Adds what is read. */
  readonly reads: Set<Dependency>;
}

type Labels = Readonly<Record<string, string>> | undefined;

const ANYWHERE: ClientSide = { scheme: 'http', port: 80 };

export class GatewayMemory {
  #listeners: readonly GatewayListener[] = [];
  /** Made with these listeners, labels of namespaces, and certificate of members. */
  #routes = new WeakMap<Route, RouteOnGateway>();
  /** The routes of the last translation in portions, and what was made of each. */
  #lists: readonly (readonly Route[])[] = [];
  #portions = new WeakMap<readonly Route[], RoutePortion>();
  #certificate: string | undefined;
  #labels = new Map<string, Labels>();
  /** By section. */
  #hosts = new Map<string, SectionHosts>();
  readonly #statuses = new WeakMap<Route, RouteStatus>();
  #kept = new Map<string, ObjectStatus>();

  /** The last ones if they are equal. */
  listeners(listeners: readonly GatewayListener[]): readonly GatewayListener[] {
    if (sameValue(this.#listeners, listeners)) return this.#listeners;
    this.#listeners = listeners;
    const sections = new Set(listeners.map(({ section }) => section));
    for (const section of this.#hosts.keys()) if (!sections.has(section)) this.#hosts.delete(section);
    this.#forgetRoutes();
    return listeners;
  }

  routes({ listeners, parents, view, resolved, certificate, reads }: RoutesOptions): readonly RoutePortion[] {
    if (certificate !== this.#certificate) this.#forgetRoutes();
    this.#certificate = certificate;
    for (const [name, labels] of this.#labels)
      if (view.namespaceLabels(name) !== labels) this.#forgetRoutes();
    const listenersOf = new Map<RouteParent, GatewayListener[]>(parents.map((parent) => [parent, []]));
    for (const listener of listeners) listenersOf.get(listener.parent)?.push(listener);
    const labelsOf = (name: string) => {
      this.#labels.set(name, view.namespaceLabels(name));
      return this.#labels.get(name);
    };
    for (const parent of parents) reads.add(`routes ${parent}`);
    this.#lists = portionsOf(routesOf(parents, view), this.#lists);
    const found = this.#lists.map((list): RoutePortion => {
      const known = this.#portions.get(list);
      if (known !== undefined && readsOf(known).areCurrent()) return known;
      const portion = list.map((route): RouteOnGateway => {
        const last = this.#routes.get(route);
        if (last?.resolved.reads.areCurrent()) return last;
        const on = this.#make(route, attachRoute(route, listenersOf, labelsOf), resolved);
        this.#routes.set(route, on);
        return on;
      });
      this.#portions.set(list, portion);
      return portion;
    });
    for (const name of this.#labels.keys()) reads.add(`namespace ${name}`);
    return found;
  }

  #make(route: Route, attached: RouteAttachment, resolvedRoutes: ResolvedRoutes): RouteOnGateway {
    const places = attached.attachments.map(({ listener, hosts }): AttachedRoute => {
      const resolved = resolvedRoutes.of(route, clientSideOf(listener), this.#certificate);
      return { listener, hosts, route, resolved, entries: resolved.entries };
    });
    const resolved = places[0]?.resolved ?? resolvedRoutes.of(route, ANYWHERE, this.#certificate);
    const status = routeStatus(route, attached, resolved);
    const last = this.#statuses.get(route);
    const kept = last !== undefined && sameValue(last, status) ? last : status;
    this.#statuses.set(route, kept);
    return { route, attached, resolved, status: kept, places };
  }

  /** The routes of a section by host. */
  hostsOf(section: string, routes: readonly HostedRoute[]): readonly HostRoutes[] {
    const hosts = this.#hosts.get(section) ?? new SectionHosts();
    this.#hosts.set(section, hosts);
    return hosts.update(routes);
  }

  /** Problems of the routes that hostsOf() was given last for the section. */
  shadowedIn(section: string): readonly Problem[] {
    return this.#hosts.get(section)?.shadowed ?? [];
  }

  #forgetRoutes(): void {
    this.#routes = new WeakMap();
    this.#portions = new WeakMap();
    this.#labels = new Map();
  }

  /** Each status, or the last one of its object if that is equal. */
  kept(statuses: readonly ObjectStatus[]): readonly ObjectStatus[] {
    const last = this.#kept;
    this.#kept = new Map();
    return statuses.map((status) => {
      const name = `${status.kind} ${status.namespace}/${status.name}`;
      const before = last.get(name);
      const kept = before !== undefined && sameValue(before, status) ? before : status;
      this.#kept.set(name, kept);
      return kept;
    });
  }
}

/** Each once, although it may name several of the parents. */
function routesOf(parents: readonly RouteParent[], view: GatewayView): readonly Route[] {
  const [first, ...others] = parents;
  if (first === undefined) return [];
  const lists = [first, ...others].map((parent) => [...view.routesOf(parent)]);
  return lists.length === 1 ? lists.flat() : [...new Set(lists.flat())];
}

function clientSideOf({ spec }: GatewayListener): ClientSide {
  return { scheme: endsTls(spec) ? 'https' : 'http', port: spec.port };
}
