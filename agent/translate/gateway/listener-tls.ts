// TLS of a Gateway: the certificates of its listeners, those that clients must have, and the one that members get. A
// certificate that cannot be used is the reason of the condition `ResolvedRefs`, and the others are served. Pure.

import { quote } from '../../base/quote.ts';
import type { ClientValidation, Gateway, ListenerSpec } from '../../kubernetes/gateway/gateway-objects.ts';
import type { ObjectReference } from '../../kubernetes/gateway/object-reference.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Authority, Certificate, Crl, Tls } from '../../model/load-balancer.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import { clientCrl } from '../routes/client-crl.ts';
import { type CertificatesView, certificateOf } from '../service/tls.ts';
import type { GatewayView } from './gateway-view.ts';
import { isKind, isPermitted, notPermitted, type Referrer } from './references.ts';

export interface ListenerCertificates {
  readonly certificates: readonly Certificate[];
  readonly clients: Tls['clients'];
  readonly unresolved: RefusalReason | undefined;
  readonly notAccepted: RefusalReason | undefined;
}

interface Context {
  readonly view: Pick<GatewayView, 'grantsIn'>;
  readonly certificates: CertificatesView;
  readonly reads: Set<Dependency>;
}

export function listenerCertificates(
  gateway: Gateway,
  owner: Referrer,
  { port, tls }: ListenerSpec,
  context: Context,
): ListenerCertificates {
  const certificates: Certificate[] = [];
  const faults: RefusalReason[] = [];
  for (const reference of tls?.certificates ?? []) {
    const { certificate, fault } = certificateFor(owner, reference, context);
    if (fault !== undefined) faults.push(fault);
    if (certificate !== undefined) certificates.push(certificate);
  }
  if (tls === undefined || tls.certificates.length === 0)
    faults.push({ reason: 'InvalidCertificateRef', message: 'tls.certificateRefs names no Secret' });
  const { perPort, default: otherwise } = gateway.clientValidation;
  const ofPort = perPort.find((each) => each.port === port);
  const validation = ofPort === undefined ? otherwise : ofPort.validation;
  const clients = validation && clientsOf(gateway, validation, context);
  return {
    certificates,
    clients: clients?.clients,
    unresolved: faults[0] ?? clients?.unresolved,
    notAccepted: clients?.notAccepted,
  };
}

export interface FoundCertificate {
  /** With a fault it is the one that the Secret had last, which stays in use. */
  readonly certificate: Certificate | undefined;
  readonly fault: RefusalReason | undefined;
}

/** What members get if they ask for a certificate; neither if the Gateway names none. */
export function memberCertificate(
  { backendCertificate: reference, namespace }: Gateway,
  context: Context,
): FoundCertificate {
  if (reference === undefined) return { certificate: undefined, fault: undefined };
  const { certificate, fault } = certificateFor({ kind: 'Gateway', namespace }, reference, context);
  if (fault === undefined || fault.reason === 'RefNotPermitted') return { certificate, fault };
  return { certificate, fault: { ...fault, reason: 'InvalidClientCertificateRef' } };
}

function certificateFor(
  owner: Referrer,
  reference: ObjectReference,
  { view, certificates, reads }: Context,
): FoundCertificate {
  const invalid = (message: string, certificate?: Certificate): FoundCertificate => ({
    certificate,
    fault: { reason: 'InvalidCertificateRef', message },
  });
  if (!isKind(reference, '', 'Secret'))
    return invalid(
      `The certificate ${quote(reference.name)} is of kind ${quote(reference.kind)}, not Secret`,
    );
  if (!isPermittedNow(owner, reference, view, reads))
    return { certificate: undefined, fault: notPermitted(owner, reference) };
  const { key, dependency } = secretOf(owner, reference);
  reads.add(dependency);
  const { content, fault } = certificates.pair(key);
  if (content === undefined) return invalid(`Cannot use Secret "${key}": ${fault || 'it is not read yet'}`);
  const certificate = certificateOf(key, content);
  if (fault === '') return { certificate, fault: undefined };
  return invalid(
    `Cannot use Secret "${key}": ${fault}; the certificate that it had stays in use`,
    certificate,
  );
}

interface ReferredSecret {
  readonly owner: string;
  readonly key: string;
  readonly dependency: Dependency;
}

/** The same strings each time: those of thousands of references would be made and hashed again for each change. */
const secrets = new WeakMap<ObjectReference, ReferredSecret>();

function secretOf({ namespace: owner }: Referrer, reference: ObjectReference): ReferredSecret {
  const known = secrets.get(reference);
  if (known?.owner === owner) return known;
  const key = `${reference.namespace || owner}/${reference.name}`;
  const secret = { owner, key, dependency: `secret ${key}` } as const;
  secrets.set(reference, secret);
  return secret;
}

function isPermittedNow(
  owner: Referrer,
  reference: ObjectReference,
  view: Context['view'],
  reads: Set<Dependency>,
): boolean {
  return isPermitted(owner, reference, (namespace) => {
    reads.add(`grants ${namespace}`);
    return view.grantsIn(namespace);
  });
}

function clientsOf(
  gateway: Gateway,
  { authorities, mode }: ClientValidation,
  context: Context,
): Pick<ListenerCertificates, 'clients' | 'unresolved' | 'notAccepted'> {
  const owner = { kind: 'Gateway', namespace: gateway.namespace };
  const found = authorities.map((reference) => authorityFor(owner, reference, context));
  const fault = found.find((each) => each.fault !== undefined)?.fault;
  const used = found.find((each) => each.authority !== undefined);
  if (used?.authority !== undefined)
    return {
      clients: {
        verify: mode === 'AllowValidOnly' ? 'required' : 'ignored',
        authority: used.authority,
        ...(used.crl && { crl: used.crl }),
      },
      unresolved: fault,
      notAccepted: undefined,
    };
  const message = 'None of the authorities for client certificates can be used';
  return { clients: undefined, unresolved: fault, notAccepted: { reason: 'NoValidCACertificate', message } };
}

function authorityFor(
  owner: Referrer,
  reference: ObjectReference,
  { view, certificates, reads }: Context,
): { readonly authority?: Authority; readonly crl?: Crl; readonly fault?: RefusalReason } {
  const { group, kind, name } = reference;
  if (group !== '' || (kind !== 'ConfigMap' && kind !== 'Secret')) {
    const message = `The authority ${quote(name)} is of kind ${quote(kind)}, not ConfigMap or Secret`;
    return { fault: { reason: 'InvalidCACertificateKind', message } };
  }
  if (!isPermittedNow(owner, reference, view, reads)) return { fault: notPermitted(owner, reference) };
  const key = `${reference.namespace || owner.namespace}/${name}`;
  const object = kind === 'Secret' ? (`secret ${key}` as const) : (`configmap ${key}` as const);
  reads.add(object);
  const { content, fault } = certificates.authority(object);
  const authority = content && { name: object, fingerprint: content.fingerprint };
  const revoked = clientCrl(object, certificates);
  if (authority !== undefined && fault === '') {
    if (revoked.fault === '') return { authority, ...(revoked.crl && { crl: revoked.crl }) };
    const message = `Cannot use ${kind} "${key}": ${revoked.fault}`;
    const crlFault = { reason: 'InvalidCACertificateRef', message };
    // Without its revocation list, clients with revoked certificates would be served.
    return revoked.crl === undefined ? { fault: crlFault } : { fault: crlFault, authority, crl: revoked.crl };
  }
  const remains = authority === undefined ? '' : '; the authorities that it had stay in use';
  const message = `Cannot use ${kind} "${key}": ${fault || 'it is not read yet'}${remains}`;
  return {
    fault: { reason: 'InvalidCACertificateRef', message },
    ...(authority && { authority, ...(revoked.crl && { crl: revoked.crl }) }),
  };
}
