// The schemas of Ingresses and their classes, with the API's own rules (pkg/apis/networking/validation), and the flat values
// that they give. Pure.

import { compactList, intern } from '../../base/compact.ts';
import { label, labelValue, qualifiedName, subdomain } from '../../base/name-forms.ts';
import {
  listOf,
  object,
  oneOf,
  string,
  textRule,
  textsByName,
  type Valid,
  wholeNumber,
} from '../../base/validate.ts';
import { hostname, identityOf, metadataFields } from '../gateway/names.ts';
import { named, namedOrEmpty, time, uid } from '../object-names.ts';
import { annotations, statusAddress } from '../object-schemas.ts';
import { withoutKubectlCopy } from '../prune-object.ts';
import type { Ingress, IngressBackend, IngressClass } from './ingress-objects.ts';

/** The API server's bound for `spec.controller`. */
const MAX_CONTROLLER_CHARACTERS = 250;
const MAX_PATH_CHARACTERS = 1024;
const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

const controller = textRule(
  (text) =>
    text.length <= MAX_CONTROLLER_CHARACTERS && /^[a-z0-9.-]+\/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(text),
  `is not the name of a controller as in "example.org/controller", of at most ${MAX_CONTROLLER_CHARACTERS} characters`,
);

export const ingressClassSchema = object({
  metadata: object({
    name: named(subdomain),
    uid: uid().nullish(),
    creationTimestamp: time().nullish(),
    generation: wholeNumber(0, Number.MAX_SAFE_INTEGER).nullish(),
    labels: textsByName(qualifiedName, labelValue).nullish(),
    annotations: annotations.nullish(),
  }),
  spec: object({ controller: controller.or(''), parameters: object({}).nullish() }).or({
    controller: '',
    parameters: undefined,
  }),
});

export function ingressClassOf({ metadata, spec }: Valid<typeof ingressClassSchema>): IngressClass {
  const { name, uid: id, creationTimestamp, generation, labels } = metadata;
  return {
    kind: 'IngressClass',
    key: name,
    name,
    uid: id ?? '',
    created: creationTimestamp ?? Number.POSITIVE_INFINITY,
    generation: generation ?? 0,
    labels: labels ?? {},
    annotations: withoutKubectlCopy(metadata.annotations),
    controller: spec.controller,
    hasParameters: spec.parameters !== undefined,
  };
}

const host = hostname();

/** '' only for ImplementationSpecific. */
const path = textRule(
  (text) => text.length <= MAX_PATH_CHARACTERS && /^(?:\/[^\p{Cc}]*)?$/u.test(text),
  `is not a path that begins with "/", of at most ${MAX_PATH_CHARACTERS} characters without control characters`,
).or('');

const FORBIDDEN_IN_PATH = /\/\/|\/\.\.?(?:\/|$)|%2f/i;

const backend = object({
  service: object({
    name: named(label),
    port: object({ number: wholeNumber(0, 65535).or(0), name: namedOrEmpty(label).or('') }),
  })
    .refine(({ port }, refuse) => {
      if ((port.number === 0) === (port.name === '')) refuse(['port'], 'is not either a name or a number');
    })
    .nullish(),
  resource: object({ kind: string(), name: string() }).nullish(),
}).transform(({ service, resource }, refuse): IngressBackend => {
  if ((service === undefined) === (resource === undefined))
    refuse([], 'is not either a service or a resource');
  if (service === undefined) return { kind: 'resource', resource: `${resource?.kind} ${resource?.name}` };
  return { kind: 'service', name: service.name, port: service.port.number, portName: service.port.name };
});

const ingressPath = object({
  path,
  pathType: oneOf('Exact', 'Prefix', 'ImplementationSpecific'),
  backend,
}).refine(({ path: text, pathType }, refuse) => {
  if (pathType === 'ImplementationSpecific') return;
  if (text === '') refuse(['path'], `missing, ${pathType} needs one`);
  else if (FORBIDDEN_IN_PATH.test(text))
    refuse(['path'], 'has "//", "/./", "/../" or "%2f", which are not allowed');
});

export const ingressSchema = object({
  metadata: object({ ...metadataFields, annotations: annotations.nullish() }),
  spec: object({
    ingressClassName: namedOrEmpty(subdomain).or(''),
    defaultBackend: backend.nullish(),
    rules: listOf(object({ host, http: object({ paths: listOf(ingressPath) }).nullish() })).or([]),
    tls: listOf(object({ hosts: listOf(host).or([]), secretName: namedOrEmpty(subdomain).or('') })).or([]),
  }),
  status: object({
    loadBalancer: object({ ingress: listOf(object({ ip: statusAddress().nullish() })).nullish() }).nullish(),
  }).nullish(),
});

export function ingressOf({ metadata, spec, status }: Valid<typeof ingressSchema>): Ingress {
  const { [CLASS_ANNOTATION]: annotated = '', ...others } = withoutKubectlCopy(metadata.annotations);
  const className = spec.ingressClassName || annotated;
  return {
    kind: 'Ingress',
    ...identityOf(metadata),
    annotations: others,
    className: intern(className),
    otherClassName: annotated === '' || annotated === className ? '' : annotated,
    defaultBackend: spec.defaultBackend,
    rules: spec.rules.map((rule) => ({
      host: rule.host,
      paths: (rule.http?.paths ?? []).map(({ pathType, ...each }) => ({ ...each, type: pathType })),
    })),
    tls: compactList(spec.tls),
    statusIPs: compactList(status?.loadBalancer?.ingress?.flatMap(({ ip }) => ip?.address ?? [])),
    deleting: metadata.deletionTimestamp !== undefined,
  };
}
