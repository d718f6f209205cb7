// Translates objects as the loop does, for tests.

import type { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import type { Listener, LoadBalancer, ProblemReason } from '../../../agent/model/load-balancer.ts';
import { ANNOTATION_DEFAULTS } from '../../../agent/translate/annotations/annotations.ts';
import {
  emptyModel,
  type Model,
  type TranslateSettings,
  translateChanged,
} from '../../../agent/translate/translate.ts';
import { clusterOf } from './build.ts';

export const SETTINGS: TranslateSettings = {
  loadBalancerClass: 'headgate.io/agent',
  handleUnclassed: false,
  externalIPs: false,
  clusterIPs: false,
  members: 'pods',
  zone: '',
  annotationDefaults: ANNOTATION_DEFAULTS,
};

/** Everything from scratch. */
export function translated(
  objects: readonly KubernetesObject[],
  settings: Partial<TranslateSettings> = {},
): Model {
  return translateCluster(clusterOf(objects), settings);
}

export function translateCluster(cluster: Cluster, settings: Partial<TranslateSettings> = {}): Model {
  const model = emptyModel();
  const keys = [...cluster.services()].map(({ key }) => key);
  translateChanged(cluster, model, keys, { ...SETTINGS, ...settings });
  return model;
}

/** The load balancer of `key`; throws where the Service is not ours. */
export function loadBalancerOf(model: Model, key = 'default/web'): LoadBalancer {
  const loadBalancer = model.loadBalancers.get(key);
  if (loadBalancer === undefined) throw new Error(`No load balancer: ${model.ignored.get(key)?.reason}`);
  return loadBalancer;
}

/** The listener of default/web on `tcp:80:v4`, or as `name` says. */
export function listenerOf(model: Model, name = 'default:web:tcp:80:v4'): Listener {
  for (const { listeners } of model.loadBalancers.values()) {
    const listener = listeners.find((each) => each.name === name);
    if (listener !== undefined) return listener;
  }
  throw new Error(`No listener ${name}`);
}

/** The members of a listener as `name state`. */
export function membersOf(model: Model, name?: string): readonly string[] {
  return listenerOf(model, name).pool.members.map((member) => `${member.name} ${member.state}`);
}

export function reasonsOf(model: Model, key?: string): readonly ProblemReason[] {
  return loadBalancerOf(model, key).problems.map(({ reason }) => reason);
}
