// The schemas of Gateways and what stands around them, with the API's own rules and defaults, and the flat values that they
// give. A value that only a later version of the API has is kept where the agent has to report it in a status. Pure.

import { compactList, intern } from '../../base/compact.ts';
import { parseAddress } from '../../base/ip.ts';
import { labelValue, qualifiedName, subdomain } from '../../base/name-forms.ts';
import {
  listOf,
  object,
  oneOf,
  someOf,
  string,
  textRule,
  textsByName,
  type Valid,
  wholeNumber,
} from '../../base/validate.ts';
import { type Selector, selectorSchema } from '../label-selector.ts';
import { named, uid } from '../object-names.ts';
import { annotations } from '../object-schemas.ts';
import { withoutKubectlCopy } from '../prune-object.ts';
import type {
  BackendTlsPolicy,
  ClientValidation,
  Gateway,
  GatewayClass,
  ListenerSet,
  ListenerSpec,
  Namespace,
  NamespaceRule,
  ReferenceGrant,
} from './gateway-objects.ts';
import {
  atMost,
  GATEWAY_GROUP,
  group,
  groupKind,
  hostname,
  identityOf,
  kind,
  metadata,
  metadataFields,
  namespace,
  objectName,
  port,
  preciseHostname,
  reference,
  sectionName,
} from './names.ts';

const CONTROLLER = /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const PROTOCOL = /^[a-zA-Z0-9](?:[-a-zA-Z0-9./]*[a-zA-Z0-9])?$/;
const ADDRESS_TYPE = /^[A-Za-z0-9](?:[A-Za-z0-9/\-._~%!$&'()*+,;=:]*)$/;
const PRINTABLE = /^[^\p{C}]*$/u;

const MAX_LISTENERS = 64;
const MAX_VALUE_CHARACTERS = 4096;
const NO_SELECTOR: Selector = { matchLabels: {}, matchExpressions: [] };

const short = (pattern: RegExp, what: string) =>
  textRule((text) => text.length <= 253 && pattern.test(text), `is not ${what} of at most 253 characters`);

const ofCluster = object({
  name: named(subdomain),
  uid: uid().nullish(),
  generation: wholeNumber(0, Number.MAX_SAFE_INTEGER).nullish(),
});

/** Present or not: the agent reads nothing of it. */
const anything = object({}).nullish();

export const gatewayClassSchema = object({
  metadata: ofCluster,
  spec: object({
    controllerName: short(CONTROLLER, 'the name of a controller as in "example.org/controller",'),
    parametersRef: anything,
  }),
});

export function gatewayClassOf({ metadata: meta, spec }: Valid<typeof gatewayClassSchema>): GatewayClass {
  return {
    kind: 'GatewayClass',
    key: meta.name,
    name: meta.name,
    uid: meta.uid ?? '',
    generation: meta.generation ?? 0,
    controllerName: spec.controllerName,
    hasParameters: spec.parametersRef !== undefined,
  };
}

/** `otherwise`: what counts if the field is absent. */
function namespaceRule(otherwise: 'Same' | 'None') {
  const rule = object({
    from: oneOf('All', 'Same', 'None', 'Selector').or(otherwise),
    selector: selectorSchema.nullish(),
  }).refine(({ from, selector }, refuse) => {
    if (from === 'Selector' && selector === undefined)
      refuse(['selector'], 'missing, "from": "Selector" needs one');
  });
  return rule.transform(({ from, selector }): NamespaceRule => ({ from, selector: selector ?? NO_SELECTOR }));
}

const SAME: NamespaceRule = { from: 'Same', selector: NO_SELECTOR };
const NONE: NamespaceRule = { from: 'None', selector: NO_SELECTOR };

const certificate = reference({ group: '', kind: 'Secret' });

const listenerTls = object({
  mode: oneOf('Terminate', 'Passthrough').or('Terminate'),
  certificateRefs: atMost(listOf(certificate), 64).or([]),
  options: textsByName(qualifiedName, {
    check: (text) => text.length <= MAX_VALUE_CHARACTERS && PRINTABLE.test(text),
    not: `is not a text of at most ${MAX_VALUE_CHARACTERS} characters that print`,
  }).or({}),
});

const listener = object({
  name: named(subdomain),
  hostname: hostname(),
  port: port(),
  protocol: short(PROTOCOL, 'the name of a protocol'),
  tls: listenerTls.nullish(),
  allowedRoutes: object({
    namespaces: namespaceRule('Same').or(SAME),
    kinds: atMost(listOf(groupKind), 8).or([]),
  }).or({ namespaces: SAME, kinds: [] }),
});

const listeners = atMost(someOf(listener, 'listener'), MAX_LISTENERS).refine((list, refuse) => {
  const seen = new Set<string>();
  for (const [index, { name }] of list.entries()) {
    if (seen.has(name)) refuse([index, 'name'], `"${name}" occurs twice`);
    seen.add(name);
  }
});

function listenerOf({ allowedRoutes, tls, ...spec }: Valid<typeof listener>): ListenerSpec {
  return {
    ...spec,
    protocol: intern(spec.protocol),
    tls: tls && {
      mode: tls.mode,
      certificates: compactList(tls.certificateRefs),
      options: tls.options,
    },
    namespaces: allowedRoutes.namespaces,
    kinds: compactList(allowedRoutes.kinds),
  };
}

const clientValidation = object({
  caCertificateRefs: atMost(
    someOf(object({ group: group(), kind: kind(), namespace: namespace(), name: objectName() }), 'reference'),
    16,
  ),
  mode: oneOf('AllowValidOnly', 'AllowInsecureFallback').or('AllowValidOnly'),
}).transform(
  ({ caCertificateRefs, mode }): ClientValidation => ({ authorities: compactList(caCertificateRefs), mode }),
);
const frontendTls = object({ validation: clientValidation.nullish() });

export const gatewaySchema = object({
  metadata: object({
    ...metadataFields,
    labels: textsByName(qualifiedName, labelValue).nullish(),
    annotations: annotations.nullish(),
  }),
  spec: object({
    gatewayClassName: objectName(),
    listeners,
    addresses: atMost(
      listOf(
        object({
          type: short(ADDRESS_TYPE, 'a type of address').or('IPAddress'),
          value: short(PRINTABLE, 'a text that prints').or(''),
        }),
      ),
      16,
    ).or([]),
    allowedListeners: object({ namespaces: namespaceRule('None').or(NONE) }).or({ namespaces: NONE }),
    infrastructure: object({ parametersRef: anything }).nullish(),
    tls: object({
      backend: object({ clientCertificateRef: certificate.nullish() }).nullish(),
      frontend: object({
        default: frontendTls.nullish(),
        perPort: atMost(listOf(object({ port: port(), tls: frontendTls })), 64).or([]),
      }).nullish(),
    }).nullish(),
  }),
  // Another controller may have written any text.
  status: object({ addresses: listOf(object({ value: string().or('') })).or([]) }).or({ addresses: [] }),
});

export function gatewayOf({ metadata: meta, spec, status }: Valid<typeof gatewaySchema>): Gateway {
  const { backend, frontend } = spec.tls ?? {};
  return {
    kind: 'Gateway',
    ...identityOf(meta),
    gatewayClassName: spec.gatewayClassName,
    listeners: spec.listeners.map(listenerOf),
    addresses: compactList(spec.addresses),
    allowedListeners: spec.allowedListeners.namespaces,
    backendCertificate: backend?.clientCertificateRef,
    clientValidation: {
      default: frontend?.default?.validation,
      perPort: (frontend?.perPort ?? []).map((each) => ({
        port: each.port,
        validation: each.tls.validation,
      })),
    },
    hasParameters: spec.infrastructure?.parametersRef !== undefined,
    labels: meta.labels ?? {},
    annotations: withoutKubectlCopy(meta.annotations),
    statusIPs: compactList(status.addresses.flatMap(({ value }) => parseAddress(value)?.address ?? [])),
    deleting: meta.deletionTimestamp !== undefined,
  };
}

export const listenerSetSchema = object({
  metadata,
  spec: object({ parentRef: reference({ group: GATEWAY_GROUP, kind: 'Gateway' }), listeners }),
});

export function listenerSetOf({ metadata: meta, spec }: Valid<typeof listenerSetSchema>): ListenerSet {
  const identity = identityOf(meta);
  const { parentRef } = spec;
  return {
    kind: 'ListenerSet',
    ...identity,
    parent: { ...parentRef, namespace: parentRef.namespace || identity.namespace },
    listeners: spec.listeners.map(listenerOf),
  };
}

export const referenceGrantSchema = object({
  metadata,
  spec: object({
    from: atMost(someOf(object({ group: group(), kind: kind(), namespace: objectName() }), 'source'), 16),
    to: atMost(someOf(object({ group: group(), kind: kind(), name: objectName().or('') }), 'target'), 16),
  }),
});

export function referenceGrantOf({
  metadata: meta,
  spec,
}: Valid<typeof referenceGrantSchema>): ReferenceGrant {
  const { key, namespace: space, name, uid: id } = identityOf(meta);
  const { from, to } = spec;
  return { kind: 'ReferenceGrant', key, namespace: space, name, uid: id, from, to };
}

export const backendTlsPolicySchema = object({
  metadata,
  spec: object({
    targetRefs: atMost(
      someOf(
        object({ group: group(), kind: kind(), name: objectName(), sectionName: sectionName() }),
        'target',
      ),
      16,
    ),
    validation: object({
      caCertificateRefs: atMost(listOf(object({ group: group(), kind: kind(), name: objectName() })), 8).or(
        [],
      ),
      wellKnownCACertificates: short(/^[-A-Za-z0-9_./]*$/, 'the name of a list of authorities').or(''),
      hostname: preciseHostname(),
      subjectAltNames: listOf(anything).or([]),
    }),
  }),
});

export function backendTlsPolicyOf({
  metadata: meta,
  spec,
}: Valid<typeof backendTlsPolicySchema>): BackendTlsPolicy {
  const { targetRefs, validation } = spec;
  return {
    kind: 'BackendTLSPolicy',
    ...identityOf(meta),
    targets: targetRefs,
    authorities: compactList(validation.caCertificateRefs),
    wellKnownAuthorities: validation.wellKnownCACertificates,
    hostname: validation.hostname,
    hasSubjectAltNames: validation.subjectAltNames.length > 0,
  };
}

export const namespaceSchema = object({
  metadata: object({
    name: named(subdomain),
    uid: uid().nullish(),
    labels: textsByName(qualifiedName, labelValue).nullish(),
  }),
});

export function namespaceOf({ metadata: meta }: Valid<typeof namespaceSchema>): Namespace {
  const { name, uid: id, labels } = meta;
  // The API server gives every Namespace this label, whatever its author has written.
  const all = { ...labels, 'kubernetes.io/metadata.name': name };
  return { kind: 'Namespace', key: name, name, uid: id ?? '', labels: all };
}
