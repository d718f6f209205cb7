// A cluster with Gateways that is translated change by change, and readers of what came out, for tests.

import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import type {
  ListenerStatus,
  ObjectStatus,
  RouteKind,
  RouteStatus,
  StatusCondition,
} from '../../../agent/model/object-status.ts';
import { statusName } from '../../../agent/model/object-statuses.ts';
import type { HttpRouting, RouteEntry } from '../../../agent/model/routes.ts';
import { hostText } from '../../../agent/translate/routes/host-pattern.ts';
import type { TranslateSettings } from '../../../agent/translate/translate-settings.ts';
import { service, slice } from './build.ts';
import { gatewayClassJson, parsed } from './gateways.ts';
import { FollowedState } from './translated.ts';

type Json = Readonly<Record<string, unknown>>;

type StatusOf<K extends ObjectStatus['kind']> = K extends RouteKind
  ? RouteStatus
  : Extract<ObjectStatus, { kind: K }>;

/** The address that every Gateway has. */
export const ADDRESS = '192.0.2.10';

export class GatewayWorld {
  readonly state: FollowedState;

  /** Has GatewayClass `edge`, and Service `web` with port 80 and one endpoint. */
  constructor(objects: readonly (Json | KubernetesObject)[] = [], settings: Partial<TranslateSettings> = {}) {
    this.state = new FollowedState(new Cluster(), settings, () => ({
      addresses: [{ address: ADDRESS, ports: [] }],
      problems: [],
    }));
    this.apply([gatewayClassJson(), service({ type: 'ClusterIP' }), slice(), ...objects]);
  }

  /** Returns the keys whose load balancer or statuses changed. */
  apply(objects: readonly (Json | KubernetesObject)[]): ReadonlySet<string> {
    const upserted = objects.map((each) =>
      'apiVersion' in each ? parsed(each) : (each as KubernetesObject),
    );
    return this.state.apply({ upserted, removed: [] });
  }

  remove(kind: KubernetesObject['kind'], key = 'default/web'): ReadonlySet<string> {
    return this.state.apply({ upserted: [], removed: [{ kind, key }] });
  }

  loadBalancer(key = 'gateway:default/edge'): LoadBalancer {
    const found = this.state.desired.loadBalancers.get(key);
    if (found === undefined) throw new Error(`There is no load balancer ${key}`);
    return found;
  }

  listener(port = 80, protocol = 'tcp', key = 'gateway:default/edge'): Listener {
    const { listeners } = this.loadBalancer(key);
    const found = listeners.find((each) => each.port === port && each.protocol.toLowerCase() === protocol);
    if (found === undefined) throw new Error(`${key} has no listener on ${protocol} port ${port}`);
    return found;
  }

  /** Each entry as `host path conditions → what`, in the order of precedence within a host. */
  routes(port = 80, section?: string, key?: string): readonly string[] {
    const { sections } = this.listener(port, 'tcp', key).routing as HttpRouting;
    return sections
      .filter(({ name }) => section === undefined || name === section)
      .flatMap(({ hosts }) => hosts)
      .flatMap(({ host, entries }) => entries.map((entry) => `${hostText(host)}${entryText(entry)}`))
      .map((text) => text.replaceAll('pool:default:', ''));
  }

  /** The status of an object, such as `HTTPRoute default/api` or `Gateway default/edge`. */
  status<K extends ObjectStatus['kind']>(kind: K, name: string): StatusOf<K> {
    const [namespace = '', rest] = name.includes('/') ? name.split('/') : ['', name];
    const [found] = this.state.desired.statuses.partsOf(statusName({ kind, namespace, name: rest ?? '' }));
    if (found === undefined) throw new Error(`${kind} ${name} has no status`);
    return found as StatusOf<K>;
  }

  /** The conditions of each parent of a route as `Accepted True Accepted`. */
  parents(name = 'default/api', kind: RouteKind = 'HTTPRoute'): readonly (readonly string[])[] {
    return this.status(kind, name).parents.map(({ conditions }) => conditionTexts(conditions));
  }

  listenerStatus(name: string, object = 'Gateway default/edge'): ListenerStatus {
    const [kind, key = ''] = object.split(' ');
    const { listeners } = this.status(kind as 'Gateway' | 'ListenerSet', key);
    const found = listeners.find((each) => each.name === name);
    if (found === undefined) throw new Error(`${object} has no status of listener ${name}`);
    return found;
  }
}

/** `Accepted True Accepted`, in the order of the status. */
export function conditionTexts(conditions: readonly StatusCondition[]): readonly string[] {
  return conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
}

function entryText({ match, rule: { action, name } }: RouteEntry): string {
  const { path, method, headers, query } = match;
  const conditions = [
    method,
    ...headers.map((each) => `${each.name}=${each.value}`),
    ...query.map((each) => `?${each.name}=${each.value}`),
  ].filter((each) => each !== '');
  const what =
    action.kind === 'forward'
      ? action.backends.map(({ pool, weight }) => `${pool ?? action.failure}*${weight}`).join(' ') ||
        String(action.failure)
      : action.kind === 'redirect'
        ? `redirect ${action.status}`
        : String(action.status);
  const kind = path.kind === 'exact' ? '=' : path.kind === 'regex' ? '~' : '';
  return `${kind}${path.value || '/'} ${conditions.map((each) => `[${each}] `).join('')}→ ${what} (${name})`;
}
