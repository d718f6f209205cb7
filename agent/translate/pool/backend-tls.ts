// TLS from the load balancer to the members of a Service port, by BackendTLSPolicies: which policy counts, and what its status
// says. A policy that cannot be carried out leaves the port without members: a request must not go out unverified. Pure.

import { nearest } from '../../base/nearest.ts';
import { quote } from '../../base/quote.ts';
import { type BackendTlsPolicy, meansService } from '../../kubernetes/gateway/gateway-objects.ts';
import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { MemberTls } from '../../model/load-balancer.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import type { CertificatesView } from '../service/tls.ts';

/** Members are verified as before. */
const LAST_AUTHORITY: RefusalReason = {
  reason: 'NoValidCACertificate',
  message:
    'None of validation.caCertificateRefs can be used; the authorities that were read last stay in use',
};

export interface JudgedPolicy {
  readonly policy: BackendTlsPolicy;
  /** undefined if the policy cannot be carried out. */
  readonly tls: MemberTls | undefined;
  readonly notAccepted: RefusalReason | undefined;
  readonly unresolved: RefusalReason | undefined;
}

/** The policy that counts for a port; undefined if there is none. */
export function policyOf(
  service: Service,
  port: ServicePort,
  policies: readonly BackendTlsPolicy[],
): BackendTlsPolicy | undefined {
  return oldestOf(service, port.name, policies) ?? oldestOf(service, '', policies);
}

/** `section`: the name of a port; '' for the whole Service. */
function oldestOf(
  service: Service,
  section: string,
  policies: readonly BackendTlsPolicy[],
): BackendTlsPolicy | undefined {
  return policies.filter((policy) => hasTarget(policy, service, section)).sort(byPrecedence)[0];
}

function hasTarget({ targets, namespace }: BackendTlsPolicy, service: Service, section: string): boolean {
  return targets.some(
    (target) =>
      isExact(target) &&
      namespace === service.namespace &&
      target.name === service.name &&
      target.sectionName === section,
  );
}

/** A policy whose target is wrong can mean this port, which has no policy that counts: nothing is sent to its members. */
export function isMeantByMistake(
  service: Service,
  port: ServicePort,
  policies: readonly BackendTlsPolicy[],
): boolean {
  return policies.some((policy) =>
    wrongTargets(policy, service).some(({ sectionName }) => {
      const meant = nearest(sectionName, namesOf(service));
      return sectionName === '' || meant === undefined || meant === port.name;
    }),
  );
}

/** Why a policy counts for less of the Service than its author means; undefined if it does not. */
export function wrongTarget(policy: BackendTlsPolicy, service: Service): RefusalReason | undefined {
  const [target] = wrongTargets(policy, service);
  if (target === undefined) return undefined;
  const { group, kind, sectionName } = target;
  const what = isExact(target)
    ? `has no port with the name ${quote(sectionName)}`
    : `is of group "" and kind "Service", not of group ${quote(group)} and kind ${quote(kind)}`;
  const message = `Service "${service.key}" ${what}; its ports without another policy get no requests`;
  return { reason: 'TargetNotFound', message };
}

type Target = BackendTlsPolicy['targets'][number];

function wrongTargets({ targets, namespace }: BackendTlsPolicy, service: Service): readonly Target[] {
  if (namespace !== service.namespace) return [];
  return targets.filter(
    (target) =>
      target.name === service.name &&
      meansService(target) &&
      !(isExact(target) && (target.sectionName === '' || namesOf(service).includes(target.sectionName))),
  );
}

function isExact({ group, kind }: Target): boolean {
  return group === '' && kind === 'Service';
}

function namesOf({ ports }: Service): readonly string[] {
  return ports.map(({ name }) => name);
}

/** True if another policy has precedence wherever this one targets the Service. */
export function isConflicted(
  policy: BackendTlsPolicy,
  service: Service,
  policies: readonly BackendTlsPolicy[],
): boolean {
  const sections = policy.targets.filter((target) => target.name === service.name);
  return sections.every(({ sectionName }) => oldestOf(service, sectionName, policies) !== policy);
}

/** `reads`: adds what is read. */
export function judgePolicy(
  policy: BackendTlsPolicy,
  certificates: CertificatesView,
  reads: Set<Dependency>,
): JudgedPolicy {
  const { hostname, wellKnownAuthorities, hasSubjectAltNames, authorities } = policy;
  const refused = (message: string): JudgedPolicy => ({
    policy,
    tls: undefined,
    notAccepted: { reason: 'Invalid', message },
    unresolved: undefined,
  });
  if (wellKnownAuthorities !== '')
    return refused(
      `validation.wellKnownCACertificates ${quote(wellKnownAuthorities)} is not supported; use caCertificateRefs`,
    );
  if (hasSubjectAltNames)
    return refused(
      'validation.subjectAltNames is not supported: members are verified by validation.hostname',
    );
  if (hostname === '') return refused('validation.hostname is missing');
  const faults: RefusalReason[] = [];
  for (const { group, kind, name } of authorities) {
    if (group !== '' || kind !== 'ConfigMap') {
      const message = `The authority ${quote(name)} is of kind ${quote(kind)}, not ConfigMap`;
      faults.push({ reason: 'InvalidKind', message });
      continue;
    }
    const object = `configmap ${policy.namespace}/${name}` as const;
    reads.add(object);
    const { content, fault } = certificates.authority(object);
    if (fault !== '' || content === undefined) {
      const why = fault || 'it is not read yet';
      const message = `Cannot use ConfigMap "${policy.namespace}/${name}": ${why}`;
      faults.push({ reason: 'InvalidCACertificateRef', message });
    }
    if (content === undefined) continue;
    const authority = { name: object, fingerprint: content.fingerprint };
    const notAccepted = fault === '' ? undefined : LAST_AUTHORITY;
    return { policy, tls: { authority, serverName: hostname }, notAccepted, unresolved: faults[0] };
  }
  const message = 'None of validation.caCertificateRefs can be used; requests get an error';
  return {
    policy,
    tls: undefined,
    notAccepted: { reason: 'NoValidCACertificate', message },
    unresolved: faults[0],
  };
}
