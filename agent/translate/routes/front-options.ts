// What the annotations of a Gateway or IngressClass ask for on its listeners: the proxies in front of it, ids of requests,
// compression, error pages, and the connection log. Pure.
// Why: docs/design/decisions/0055-forwarded-headers.md

import type { Dependency } from '../../model/desired-state.ts';
import type { Listener, Problem } from '../../model/load-balancer.ts';
import { judgeNames, notServed, SERVE_WITHOUT } from '../../protection/judge-names.ts';
import { readAnnotations } from '../annotations/annotations.ts';
import { ANNOTATIONS, PREFIX } from '../annotations/table.ts';
import { readErrorPages } from '../service/error-pages.ts';
import { type HttpOption, httpOptions } from '../service/listener.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { TranslateSettings } from '../translate-settings.ts';

const FIELDS = ['trustedProxies', 'requestIds', 'compression', 'errorPages', 'log'] as const;
const NAMES = [...FIELDS, 'addressPool' as const].map((field) => PREFIX + ANNOTATIONS[field].name);

/** Read with the Ingresses of a class. */
const CLASS_AUTH = [
  'auth-namespaces',
  'global-auth-url',
  'global-auth-method',
  'global-auth-signin',
  'global-auth-signin-redirect-param',
  'global-auth-response-headers',
  'global-auth-request-redirect',
  'global-auth-always-set-cookie',
] as const;

/** Also read elsewhere: by the keeper of addresses, and for the certificates of a class. */
const ELSEWHERE = {
  Gateway: ['address-pool', 'address-sharing-key'],
  IngressClass: [
    'address-pool',
    'address-sharing-key',
    'load-balancer-ips',
    'tls-certificate',
    SERVE_WITHOUT,
    ...CLASS_AUTH,
  ],
} as const;

const TAKES = {
  Gateway: new Set<string>([...FIELDS.map((field) => ANNOTATIONS[field].name), ...ELSEWHERE.Gateway]),
  IngressClass: new Set<string>([
    ...FIELDS.map((field) => ANNOTATIONS[field].name),
    ...ELSEWHERE.IngressClass,
  ]),
};

export interface FrontOptions {
  /** What protects cannot be given: all requests get status 403, and other connections are refused. */
  readonly isClosed: boolean;
  /** Options of listeners in mode http. */
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
  const { values, problems, closedBy } = readAnnotations(given, object, annotationDefaults);
  const kind = namespace === '' ? 'IngressClass' : 'Gateway';
  const names = judgeNames(kind, annotations, TAKES[kind]);
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
