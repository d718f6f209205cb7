// What the annotations of a Gateway or IngressClass ask for on its listeners: the proxies in front of it, ids of requests,
// compression, error pages, and the connection log. Pure.
// Why: docs/design/decisions/0055-forwarded-headers.md

import type { Dependency } from '../../model/desired-state.ts';
import type { Listener, Problem } from '../../model/load-balancer.ts';
import { judgeNames, notServed } from '../../protection/judge-names.ts';
import { readAnnotations } from '../annotations/annotations.ts';
import { ANNOTATIONS, PREFIX } from '../annotations/table.ts';
import { readErrorPages } from '../service/error-pages.ts';
import { type HttpOption, httpOptions } from '../service/listener.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { TranslateSettings } from '../translate-settings.ts';

const FIELDS = ['trustedProxies', 'requestIds', 'compression', 'errorPages', 'log'] as const;
const NAMES = [...FIELDS, 'addressPool' as const].map((field) => PREFIX + ANNOTATIONS[field].name);
/** The keeper of addresses reads the last two. */
const READ_HERE = [...FIELDS.map((field) => ANNOTATIONS[field].name), 'address-pool', 'address-sharing-key'];

export interface FrontOptions {
  /** What protects cannot be given: all requests get status 403, and other connections are refused. */
  readonly isClosed: boolean;
  /** Options of listeners in mode http. */
  readonly http: Pick<Listener, HttpOption | 'errorPages'>;
  readonly log: Listener['log'];
  readonly reads: readonly Dependency[];
  readonly problems: readonly Problem[];
}

/** A Gateway, or an IngressClass, which has no namespace. */
export interface FrontObject {
  readonly kind: 'Gateway' | 'IngressClass';
  readonly key: string;
  readonly namespace?: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** `others`: names of annotations, without a prefix, that are read elsewhere. */
export function frontOptions(
  { kind, key, namespace = '', annotations }: FrontObject,
  others: readonly string[],
  certificates: CertificatesView,
  { annotationDefaults, connectionLog }: TranslateSettings,
): FrontOptions {
  const object = `${kind} ${key}`;
  const given = Object.fromEntries(
    NAMES.flatMap((name) => (Object.hasOwn(annotations, name) ? [[name, annotations[name] ?? '']] : [])),
  );
  const { values, problems, closedBy } = readAnnotations(given, object, annotationDefaults);
  const names = judgeNames(kind, annotations, new Set([...READ_HERE, ...others]));
  const {
    pages,
    reads,
    problems: ofPages,
  } = readErrorPages(values.errorPages, object, namespace, certificates);
  return {
    isClosed: closedBy.length + names.closedBy.length > 0,
    http: { ...httpOptions(values), ...(pages && { errorPages: pages }) },
    log: values.log ?? connectionLog,
    reads,
    problems: [
      ...problems,
      ...closedBy.map(
        (name): Problem => ({ object, reason: 'InvalidAnnotation', message: notServed(name, kind) }),
      ),
      ...names.faults.map((message): Problem => ({ object, reason: 'InvalidAnnotation', message })),
      ...ofPages,
    ],
  };
}
