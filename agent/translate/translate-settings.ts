// The settings that translation reads, and the defaults of annotations among them.

import { type AnnotationValues, readAnnotationDefaults } from './annotations/annotations.ts';

export interface OwnershipSettings {
  readonly loadBalancerClass: string;
  readonly handleUnclassed: boolean;
  readonly externalIPs: boolean;
  readonly clusterIPs: boolean;
}

export interface TranslateSettings extends OwnershipSettings {
  readonly members: 'pods' | 'nodes';
  readonly zone: string;
  /** What an annotation that is not there means. */
  readonly annotationDefaults: AnnotationValues;
}

/** From the settings of the same names. */
export function translateSettings(
  settings: OwnershipSettings &
    Pick<TranslateSettings, 'members' | 'zone'> & { readonly defaults: Readonly<Record<string, string>> },
): TranslateSettings {
  const { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone, defaults } = settings;
  const annotationDefaults = readAnnotationDefaults(defaults).values;
  return { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone, annotationDefaults };
}
