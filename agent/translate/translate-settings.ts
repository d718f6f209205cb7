// The settings that translation reads, with the defaults for annotations.

import type { ConnectionLog } from '../model/load-balancer.ts';
import { type AgentPort, agentPorts, type ListeningSettings } from './agent-ports.ts';
import { type AnnotationValues, readAnnotationDefaults } from './annotations/annotations.ts';

export interface OwnershipSettings {
  readonly loadBalancerClass: string;
  readonly handleUnclassed: boolean;
  readonly externalIPs: boolean;
  readonly clusterIPs: boolean;
  /** An operator has released the objects of this namespace from this host; none if it is undefined. */
  readonly isReleased?: ((namespace: string) => boolean) | undefined;
}

export interface MemberRules {
  /** CIDRs that no member may have. */
  readonly refusedMembers: readonly string[];
  /** CIDRs that every member must have; empty: all. */
  readonly memberRanges: readonly string[];
  /** Endpoints without a `targetRef` are members. */
  readonly membersWithoutTarget: boolean;
  /** Where the agents and their daemons listen: no member may be there. */
  readonly agentPorts: readonly AgentPort[];
}

export interface TranslateSettings extends OwnershipSettings, MemberRules {
  readonly members: 'pods' | 'nodes';
  readonly zone: string;
  /** Several hosts serve the same VIPs at once, so that members' answers may reach another one than the request. */
  readonly isAmongHosts: boolean;
  /** A host of Ingresses belongs to the namespace that had it first. */
  readonly hostsOfOneNamespace: boolean;
  /** `ingress`: NetworkPolicies of the members decide which clients may connect. */
  readonly enforceNetworkPolicy: 'off' | 'ingress';
  /** The connection log of Services without the annotation. */
  readonly connectionLog: ConnectionLog;
  /** The values of annotations that a Service does not have. */
  readonly annotationDefaults: AnnotationValues;
}

export function translateSettings(
  settings: OwnershipSettings &
    Omit<MemberRules, 'agentPorts'> &
    ListeningSettings &
    Pick<
      TranslateSettings,
      'members' | 'zone' | 'hostsOfOneNamespace' | 'enforceNetworkPolicy' | 'connectionLog'
    > & {
      readonly defaults: Readonly<Record<string, string>>;
      readonly hosts: readonly unknown[];
    },
): TranslateSettings {
  const { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone } = settings;
  const { refusedMembers, memberRanges, membersWithoutTarget } = settings;
  const { hostsOfOneNamespace, enforceNetworkPolicy, connectionLog } = settings;
  return {
    loadBalancerClass,
    handleUnclassed,
    externalIPs,
    clusterIPs,
    members,
    zone,
    isAmongHosts: settings.hosts.length > 1,
    hostsOfOneNamespace,
    enforceNetworkPolicy,
    connectionLog,
    refusedMembers,
    memberRanges,
    membersWithoutTarget,
    agentPorts: agentPorts(settings),
    annotationDefaults: readAnnotationDefaults(settings.defaults).values,
  };
}
