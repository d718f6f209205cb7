// What the annotations of a Gateway or IngressClass ask for on its listeners: the proxies in front of it, ids of requests,
// compression, and the connection log. Pure.

import type { Listener, Problem } from '../../model/load-balancer.ts';
import { readAnnotations } from '../annotations/annotations.ts';
import { ANNOTATIONS, PREFIX } from '../annotations/table.ts';
import { type HttpOption, httpOptions } from '../service/listener.ts';
import type { TranslateSettings } from '../translate-settings.ts';

const NAMES = (['trustedProxies', 'requestIds', 'compression', 'log'] as const).map(
  (field) => PREFIX + ANNOTATIONS[field].name,
);

export interface FrontOptions {
  /** Of listeners in mode http. */
  readonly http: Pick<Listener, HttpOption>;
  readonly log: Listener['log'];
  readonly problems: readonly Problem[];
}

/** `object`: `Gateway default/edge`. */
export function frontOptions(
  annotations: Readonly<Record<string, string>>,
  object: string,
  { annotationDefaults, connectionLog }: TranslateSettings,
): FrontOptions {
  const given = Object.fromEntries(
    NAMES.flatMap((name) => (Object.hasOwn(annotations, name) ? [[name, annotations[name] ?? '']] : [])),
  );
  const { values, problems } = readAnnotations(given, object, annotationDefaults);
  return { http: httpOptions(values), log: values.log ?? connectionLog, problems };
}
