// Translates objects as the agent's loop does, for tests.

import { Certificates } from '../../../agent/certificates/certificates.ts';
import type { Cluster, ObjectSource, ObjectsChange } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import {
  type DesiredState,
  emptyDesiredState,
  type NamespaceBounds,
} from '../../../agent/model/desired-state.ts';
import type { Listener, LoadBalancer, ProblemReason } from '../../../agent/model/load-balancer.ts';
import { ANNOTATION_DEFAULTS } from '../../../agent/translate/annotations/annotations.ts';
import { GatewayClassTranslator } from '../../../agent/translate/gateway/gateway-class-translator.ts';
import { GatewayTranslator } from '../../../agent/translate/gateway/gateway-translator.ts';
import { IngressTranslator } from '../../../agent/translate/ingress/ingress-translator.ts';
import { PoolTranslator } from '../../../agent/translate/pool/pool-translator.ts';
import { ServiceTranslator } from '../../../agent/translate/service/service-translator.ts';
import type { AddressesView } from '../../../agent/translate/service/service-vips.ts';
import { type Translators, translateChanged } from '../../../agent/translate/translate.ts';
import type { TranslateSettings } from '../../../agent/translate/translate-settings.ts';
import { clusterOf } from './build.ts';

export const SETTINGS: TranslateSettings = {
  loadBalancerClass: 'headgate.io/agent',
  handleUnclassed: false,
  externalIPs: false,
  clusterIPs: false,
  members: 'pods',
  zone: '',
  isAmongHosts: false,
  hostsOfOneNamespace: false,
  enforceNetworkPolicy: 'off',
  connectionLog: 'none',
  refusedMembers: [],
  memberRanges: [],
  membersWithoutTarget: true,
  agentPorts: [],
  annotationDefaults: ANNOTATION_DEFAULTS,
};

/** A desired state that follows a cluster change by change. */
export class FollowedState {
  readonly desired: DesiredState;
  readonly cluster: Cluster;
  readonly #translators: Translators;

  constructor(
    cluster: Cluster,
    settings: Partial<TranslateSettings> = {},
    ofPools: AddressesView = () => undefined,
    bounds?: NamespaceBounds,
    isUndecided: (key: string) => boolean = () => false,
  ) {
    this.desired = emptyDesiredState(bounds && (() => bounds));
    const all = { ...SETTINGS, ...settings };
    this.cluster = cluster;
    const options = {
      cluster,
      settings: () => all,
      ofPools,
      certificates: certificatesOf(cluster),
      desired: this.desired,
    };
    this.#translators = {
      Service: new ServiceTranslator({ ...options, isUndecided }),
      Gateway: new GatewayTranslator(options),
      GatewayClass: new GatewayClassTranslator(cluster, () => undefined),
      Ingress: new IngressTranslator(options),
      Pool: new PoolTranslator(options),
    };
  }

  /** Returns the keys whose load balancer changed. */
  translate(keys: Iterable<string>): ReadonlySet<string> {
    return translateChanged(this.desired, this.#translators, keys);
  }

  apply(
    change: Pick<ObjectsChange, 'upserted' | 'removed'>,
    source: ObjectSource = 'api',
  ): ReadonlySet<string> {
    const { owners, dependencies } = this.cluster.apply(change, source);
    return this.translate(new Set([...owners, ...this.desired.dependents.of(dependencies)]));
  }
}

/** The certificates that the objects of the cluster have. */
function certificatesOf(cluster: Cluster): Certificates {
  return new Certificates({
    secret: (key) => cluster.secret(key),
    configMap: (key) => cluster.configMap(key),
    maxRsaBits: 4096,
    accessToPair: () => ({ kind: 'read' }),
    accessToAuthority: () => ({ kind: 'read' }),
    isRead: () => true,
    onChanged: () => undefined,
  });
}

/** Translates all objects from scratch. */
export function translated(
  objects: readonly KubernetesObject[],
  settings: Partial<TranslateSettings> = {},
): DesiredState {
  return translateCluster(clusterOf(objects), settings);
}

export function translateCluster(
  cluster: Cluster,
  settings: Partial<TranslateSettings> = {},
  ofPools?: AddressesView,
  bounds?: NamespaceBounds,
): DesiredState {
  const state = new FollowedState(cluster, settings, ofPools, bounds);
  state.translate(cluster.ownerKeys());
  return state.desired;
}

/** The load balancer of `key`. Errors: the agent ignores the Service. */
export function loadBalancerOf(desired: DesiredState, key = 'default/web'): LoadBalancer {
  const loadBalancer = desired.loadBalancers.get(key);
  if (loadBalancer === undefined) throw new Error(`No load balancer: ${desired.ignored.get(key)?.reason}`);
  return loadBalancer;
}

/** The listener of default/web on `tcp:80:v4`, or with the given `name`. */
export function listenerOf(desired: DesiredState, name = 'default:web:tcp:80:v4'): Listener {
  for (const { listeners } of desired.loadBalancers.values()) {
    const listener = listeners.find((each) => each.name === name);
    if (listener !== undefined) return listener;
  }
  throw new Error(`No listener ${name}`);
}

/** Each member of a listener as `name state`. */
export function membersOf(desired: DesiredState, name?: string): readonly string[] {
  return listenerOf(desired, name).pool.members.map((member) => `${member.name} ${member.state}`);
}

export function reasonsOf(desired: DesiredState, key?: string): readonly ProblemReason[] {
  return loadBalancerOf(desired, key).problems.map(({ reason }) => reason);
}
