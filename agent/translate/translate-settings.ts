// The settings that translation reads, with the defaults for annotations.

import { type AnnotationValues, readAnnotationDefaults } from './annotations/annotations.ts';

export interface OwnershipSettings {
  readonly loadBalancerClass: string;
  readonly handleUnclassed: boolean;
  readonly externalIPs: boolean;
  readonly clusterIPs: boolean;
}

export interface MemberRules {
  /** CIDRs that no member may have. */
  readonly refusedMembers: readonly string[];
  /** CIDRs that every member must have; empty: all. */
  readonly memberRanges: readonly string[];
  /** Endpoints without a `targetRef` are members. */
  readonly membersWithoutTarget: boolean;
}

export interface TranslateSettings extends OwnershipSettings, MemberRules {
  readonly members: 'pods' | 'nodes';
  readonly zone: string;
  /** The values of annotations that a Service does not have. */
  readonly annotationDefaults: AnnotationValues;
}

export function translateSettings(
  settings: OwnershipSettings &
    MemberRules &
    Pick<TranslateSettings, 'members' | 'zone'> & { readonly defaults: Readonly<Record<string, string>> },
): TranslateSettings {
  const { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone } = settings;
  const { refusedMembers, memberRanges, membersWithoutTarget } = settings;
  return {
    loadBalancerClass,
    handleUnclassed,
    externalIPs,
    clusterIPs,
    members,
    zone,
    refusedMembers,
    memberRanges,
    membersWithoutTarget,
    annotationDefaults: readAnnotationDefaults(settings.defaults).values,
  };
}
