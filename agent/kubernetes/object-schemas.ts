// The schema of each object as `kubectl get -o yaml` prints it and the API sends it: the fields that Headgate reads, each
// with Kubernetes' own rule (pkg/apis/core/validation), except that loopback addresses are allowed.
// Addresses become canonical; prune-object.ts fills in the defaults. Pure.

import { parseAddress } from '../base/ip.ts';
import {
  annotationName,
  label,
  labelValue,
  type NameForm,
  qualifiedName,
  subdomain,
} from '../base/name-forms.ts';
import {
  boolean,
  listOf,
  object,
  oneOf,
  Rule,
  someOf,
  string,
  textReader,
  textRule,
  textsByName,
  wholeNumber,
} from '../base/validate.ts';
import type { Family } from '../model/load-balancer.ts';
import { containersOfPod } from './network-policy.ts';
import { named, namedOrEmpty, time, uid } from './object-names.ts';

/** The bound of texts that the translator checks later, whose messages show them. */
const MAX_RAW_CHARACTERS = 64;
/** The API server's limit for all annotations together. */
const MAX_ANNOTATION_CHARACTERS = 256 * 1024;

const maybeNamed = (form: NameForm) => named(form).nullish();

/** A text for which the API server has a default: '' is as no text (pkg/apis/core/v1/defaults.go). */
function defaulted<T>(rule: Rule<T>): Rule<T | undefined> {
  const { read, openApi } = rule.nullish();
  return new Rule((value, faults) => (value === '' ? undefined : read(value, faults)), openApi, true);
}

const namespace = () => defaulted(named(label));
const raw = () =>
  textRule(
    (text) => text.length <= MAX_RAW_CHARACTERS,
    `is not a text of at most ${MAX_RAW_CHARACTERS} characters`,
  );

const port = () => wholeNumber(1, 65535);
const protocol = () => oneOf('TCP', 'UDP', 'SCTP');
const portName = () => namedOrEmpty(label).nullish();

/** Canonical addresses that no member can have (ValidateNonSpecialIP): unspecified, link-local, link-local multicast. */
const SPECIAL = /^(?:0\.0\.0\.0$|169\.254\.|224\.0\.0\.|::$|fe[89ab][0-9a-f]:|ff[0-9a-f]2:)/;

const memberAddress = (family?: Family) => {
  const sort = family === undefined ? 'IP' : family === 'v4' ? 'IPv4' : 'IPv6';
  return textReader((text) => {
    const parsed = parseAddress(text);
    if (parsed === undefined || SPECIAL.test(parsed.address)) return undefined;
    return family === undefined || parsed.family === family ? parsed : undefined;
  }, `is not an ${sort} address that a member can have`);
};

/** '' and 'None' (no cluster IP) become an object without an address: undefined would mean a wrong text. */
const clusterIP = () =>
  textReader((text) => {
    if (text === '' || text === 'None') return { address: undefined, headless: text === 'None' };
    const parsed = parseAddress(text);
    return parsed && { address: parsed.address, headless: false };
  }, 'is not an IP address, "None" or empty');

const servicePort = object({
  name: portName(),
  protocol: defaulted(protocol()),
  port: port(),
  nodePort: wholeNumber(0, 65535).nullish(),
  appProtocol: namedOrEmpty(qualifiedName).nullish(),
});

/** Names and numbers identify listeners, so both are unique. */
const servicePorts = listOf(servicePort).refine((ports, refuse) => {
  const seen = new Set<string>();
  const once = (index: number, field: string, text: string) => {
    if (seen.has(text)) refuse([index, field], `${text} occurs twice`);
    seen.add(text);
  };
  for (const [index, { name, protocol: spoken, port: number }] of ports.entries()) {
    once(index, 'port', `${number}/${spoken ?? 'TCP'}`);
    if (name) once(index, 'name', `"${name}"`);
    else if (ports.length > 1) refuse([index, 'name'], 'missing, required if there are several ports');
  }
});

/** In a status; '' gives no address. */
export const statusAddress = () =>
  textReader((text) => (text === '' ? { address: undefined } : parseAddress(text)), 'is not an IP address');

export const annotations = textsByName(annotationName, {
  check: (value) => value.length <= MAX_ANNOTATION_CHARACTERS,
  not: `is not a text of at most ${MAX_ANNOTATION_CHARACTERS} characters`,
});

export const serviceSchema = object({
  metadata: object({
    name: named(label),
    namespace: namespace(),
    uid: uid().nullish(),
    creationTimestamp: time().nullish(),
    deletionTimestamp: time().nullish(),
    labels: textsByName(qualifiedName, labelValue).nullish(),
    annotations: annotations.nullish(),
  }),
  spec: object({
    type: defaulted(oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName')),
    loadBalancerClass: maybeNamed(qualifiedName),
    // The API server has no rule for it: the translator reports an unusable one.
    loadBalancerIP: string().nullish(),
    loadBalancerSourceRanges: listOf(raw()).nullish(),
    externalIPs: listOf(raw()).nullish(),
    clusterIP: clusterIP().nullish(),
    clusterIPs: listOf(clusterIP()).nullish(),
    externalTrafficPolicy: defaulted(oneOf('Cluster', 'Local')),
    healthCheckNodePort: wholeNumber(0, 65535).nullish(),
    sessionAffinity: defaulted(oneOf('None', 'ClientIP')),
    sessionAffinityConfig: object({
      clientIP: object({ timeoutSeconds: wholeNumber(1, 86400).nullish() }).nullish(),
    }).nullish(),
    allocateLoadBalancerNodePorts: boolean().nullish(),
    publishNotReadyAddresses: boolean().nullish(),
    ipFamilies: listOf(oneOf('IPv4', 'IPv6')).nullish(),
    ipFamilyPolicy: oneOf('SingleStack', 'PreferDualStack', 'RequireDualStack').nullish(),
    ports: servicePorts.nullish(),
  }).refine(({ type, clusterIP: ip, ports }, refuse) => {
    const needsPorts = type !== 'ExternalName' && ip?.headless !== true;
    if (needsPorts && !ports?.length) refuse(['ports'], 'is not a list of at least one port');
  }),
  status: object({
    loadBalancer: object({
      ingress: listOf(
        object({
          ip: statusAddress().nullish(),
        }),
      ).nullish(),
    }).nullish(),
    conditions: listOf(object({ type: string().nullish(), status: string().nullish() })).nullish(),
  }).nullish(),
});

const triggerTime = object({
  'endpoints.kubernetes.io/last-change-trigger-time': string().nullish(),
}).nullish();

const targetRef = object({
  kind: string().nullish(),
  name: string().nullish(),
}).nullish();

const sliceSchema = (family: Family) =>
  object({
    metadata: object({
      name: named(subdomain),
      namespace: namespace(),
      uid: uid().nullish(),
      labels: object({
        'kubernetes.io/service-name': maybeNamed(labelValue),
        'service.kubernetes.io/headless': maybeNamed(labelValue),
      }).nullish(),
      annotations: triggerTime,
    }),
    addressType: oneOf('IPv4', 'IPv6', 'FQDN'),
    ports: listOf(
      object({ name: portName(), protocol: protocol().nullish(), port: port().nullish() }),
    ).nullish(),
    endpoints: listOf(
      object({
        addresses: someOf(memberAddress(family), 'address'),
        conditions: object({
          ready: boolean().nullish(),
          serving: boolean().nullish(),
          terminating: boolean().nullish(),
        }).nullish(),
        nodeName: maybeNamed(subdomain),
        targetRef,
        hints: object({
          forZones: listOf(object({ name: named(labelValue) })).nullish(),
          forNodes: listOf(object({ name: named(subdomain) })).nullish(),
        }).nullish(),
      }),
    ).nullish(),
  });

/** By `addressType`. */
export const sliceSchemas = { IPv4: sliceSchema('v4'), IPv6: sliceSchema('v6') } as const;

const endpointsAddresses = listOf(
  object({ ip: memberAddress(), nodeName: maybeNamed(subdomain), targetRef }),
).nullish();

export const endpointsSchema = object({
  metadata: object({
    name: named(subdomain),
    namespace: namespace(),
    uid: uid().nullish(),
    annotations: triggerTime,
  }),
  subsets: listOf(
    object({
      addresses: endpointsAddresses,
      notReadyAddresses: endpointsAddresses,
      ports: listOf(object({ name: portName(), protocol: defaulted(protocol()), port: port() })).nullish(),
    }),
  ).nullish(),
});

export const nodeSchema = object({
  metadata: object({
    name: named(subdomain),
    uid: uid().nullish(),
    deletionTimestamp: time().nullish(),
    labels: textsByName(qualifiedName, labelValue).nullish(),
  }),
  spec: object({
    taints: listOf(
      object({
        key: string().nullish(),
        effect: oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute').nullish(),
      }),
    ).nullish(),
  }).nullish(),
  status: object({
    addresses: listOf(
      object({ type: string(), address: string() }).transform((entry, refuse) => {
        if (entry.type !== 'InternalIP') return undefined;
        const parsed = parseAddress(entry.address);
        if (parsed === undefined) refuse(['address'], 'is not an IP address');
        return parsed?.address;
      }),
    ).nullish(),
  }).nullish(),
});

export const podSchema = object({
  metadata: object({
    name: named(subdomain),
    namespace: namespace(),
    uid: uid().nullish(),
    labels: textsByName(qualifiedName, labelValue).nullish(),
  }),
  spec: object({ hostNetwork: boolean().nullish(), ...containersOfPod }).nullish(),
  status: object({
    phase: string().nullish(),
    podIPs: listOf(
      object({ ip: string() }).transform(({ ip }, refuse) => {
        const parsed = parseAddress(ip);
        if (parsed === undefined) refuse(['ip'], 'is not an IP address');
        return parsed?.address;
      }),
    ).nullish(),
  }).nullish(),
});
