// The settings that translation reads, with the defaults for annotations.

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
  /** The values of annotations that a Service does not have. */
  readonly annotationDefaults: AnnotationValues;
}

export function translateSettings(
  settings: OwnershipSettings &
    Pick<TranslateSettings, 'members' | 'zone'> & { readonly defaults: Readonly<Record<string, string>> },
): TranslateSettings {
  const { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone, defaults } = settings;
  const annotationDefaults = readAnnotationDefaults(defaults).values;
  return { loadBalancerClass, handleUnclassed, externalIPs, clusterIPs, members, zone, annotationDefaults };
}
