// What the annotations of a Gateway or IngressClass ask for on its listeners: the proxies in front of it, ids of requests,
// compression, error pages, and the connection log. Pure.

import type { Dependency } from '../../model/desired-state.ts';
import type { Listener, Problem } from '../../model/load-balancer.ts';
import { readAnnotations } from '../annotations/annotations.ts';
import { ANNOTATIONS, PREFIX } from '../annotations/table.ts';
import { readErrorPages } from '../service/error-pages.ts';
import { type HttpOption, httpOptions } from '../service/listener.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { TranslateSettings } from '../translate-settings.ts';

const NAMES = (['trustedProxies', 'requestIds', 'compression', 'errorPages', 'log'] as const).map(
  (field) => PREFIX + ANNOTATIONS[field].name,
);

export interface FrontOptions {
  /** Of listeners in mode http. */
  readonly http: Pick<Listener, HttpOption | 'errorPages'>;
  readonly log: Listener['log'];
  readonly reads: readonly Dependency[];
  readonly problems: readonly Problem[];
}

/** `object`: `Gateway default/edge`, of this namespace; '' for an IngressClass. */
export function frontOptions(
  annotations: Readonly<Record<string, string>>,
  object: string,
  namespace: string,
  certificates: CertificatesView,
  { annotationDefaults, connectionLog }: TranslateSettings,
): FrontOptions {
  const given = Object.fromEntries(
    NAMES.flatMap((name) => (Object.hasOwn(annotations, name) ? [[name, annotations[name] ?? '']] : [])),
  );
  const { values, problems } = readAnnotations(given, object, annotationDefaults);
  const {
    pages,
    reads,
    problems: ofPages,
  } = readErrorPages(values.errorPages, object, namespace, certificates);
  return {
    http: { ...httpOptions(values), ...(pages && { errorPages: pages }) },
    log: values.log ?? connectionLog,
    reads,
    problems: [...problems, ...ofPages],
  };
}
