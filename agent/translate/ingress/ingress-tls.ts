// TLS of an Ingress class: the certificates that its Ingresses name for their hosts, and the one for all other names. Pure.

import type { IngressClass } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Certificate, Problem, Tls } from '../../model/load-balancer.ts';
import { clientCrl } from '../routes/client-crl.ts';
import { hostPattern } from '../routes/host-pattern.ts';
import { type CertificatesView, certificateOf } from '../service/tls.ts';
import type { IngressOptions } from './nginx-annotations.ts';

/** Of an IngressClass: `namespace/name` of the Secret for names that no Ingress has a certificate for. */
const DEFAULT_CERTIFICATE = 'headgate.io/tls-certificate';

interface OnClass {
  readonly ingress: {
    readonly key: string;
    readonly namespace: string;
    readonly tls: readonly { readonly hosts: readonly string[]; readonly secretName: string }[];
  };
  readonly read: { readonly options: IngressOptions };
}

type Clients = Tls['clients'];

export interface IngressClassTls {
  /** undefined: no certificate can be used, so that port 443 is closed. */
  readonly tls: Tls | undefined;
  /** Hosts whose clients must, or may, have a certificate. */
  readonly guarded: ReadonlySet<string>;
  /** Keys of Ingresses that ask for client certificates of an authority that cannot be used: no client is let in. */
  readonly closed: ReadonlySet<string>;
}

/** `all`: the oldest one first, whose certificate a host has. */
export function ingressTls(
  { name, annotations }: IngressClass,
  all: readonly OnClass[],
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): IngressClassTls {
  const guarded = new Set<string>();
  const closed = new Set<string>();
  const use = (object: string, secret: string): Certificate | undefined => {
    reads.add(`secret ${secret}`);
    const { content, fault, isMissing, isExpired } = certificates.pair(secret);
    if (fault !== '' || isExpired) {
      const why = fault === '' ? 'it has expired, so that handshakes fail' : fault;
      const reason = isExpired
        ? 'CertificateExpired'
        : isMissing
          ? 'CertificateMissing'
          : 'InvalidCertificate';
      problems.push({ object, reason, message: `Cannot use Secret "${secret}" for TLS: ${why}` });
    }
    return content && certificateOf(secret, content);
  };
  const given = annotations[DEFAULT_CERTIFICATE];
  let others = given === undefined ? undefined : use(`IngressClass ${name}`, given);
  const sections = new Map<string, NonNullable<Tls['sections']>[number]>();
  for (const { ingress, read } of all) {
    const clients = clientsOf(ingress, read.options, certificates, reads, problems);
    if (clients === 'closed') closed.add(ingress.key);
    for (const { hosts, secretName } of ingress.tls) {
      // An entry without a Secret has the certificate for all other names.
      const certificate =
        secretName === '' ? undefined : use(`Ingress ${ingress.key}`, `${ingress.namespace}/${secretName}`);
      if (certificate === undefined) continue;
      if (hosts.length === 0) others ??= certificate;
      const ofClients = clients === 'closed' ? undefined : clients;
      for (const host of hosts) {
        if (sections.has(host)) continue;
        const hostname = hostPattern(host, 'one-label');
        sections.set(host, { hostname, certificates: [certificate], clients: ofClients });
        if (ofClients !== undefined) guarded.add(host);
      }
    }
  }
  const [first] = sections.values();
  const fallback = others ?? first?.certificates[0];
  if (fallback === undefined) return { tls: undefined, guarded, closed };
  const tls: Tls = {
    certificates: [fallback],
    minVersion: '1.2',
    ciphers: [],
    clients: undefined,
    alpn: ['h2', 'http/1.1'],
    sections: [...sections.values()],
  };
  return { tls, guarded, closed };
}

function clientsOf(
  { key, namespace }: OnClass['ingress'],
  options: IngressOptions,
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): Clients | 'closed' {
  const { 'auth-tls-secret': secret, 'auth-tls-verify-client': verify = 'on' } = options;
  if (secret === undefined || verify === 'off') return undefined;
  const [first = '', second] = secret.split('/');
  const [ofNamespace, ofName] = second === undefined ? [namespace, first] : [first, second];
  const object = `secret ${ofNamespace}/${ofName}` as const;
  // A Secret of another namespace could be anybody's.
  const isOwn = ofNamespace === namespace;
  if (isOwn) reads.add(object);
  const { content, fault } = isOwn
    ? certificates.authority(object)
    : { content: undefined, fault: 'it is of another namespace' };
  const revoked = isOwn ? clientCrl(object, certificates) : { crl: undefined, fault: '' };
  // Without its revocation list, clients with revoked certificates would be served.
  const isClosed = content === undefined || (revoked.fault !== '' && revoked.crl === undefined);
  if (isClosed) {
    const why = fault || revoked.fault || 'it is not read yet';
    const message = `Cannot use Secret "${ofNamespace}/${ofName}" for client certificates: ${why}; its requests get status 403`;
    problems.push({ object: `Ingress ${key}`, reason: 'InvalidCertificate', message });
    return 'closed';
  }
  if (revoked.fault !== '') {
    const message = `Cannot use Secret "${ofNamespace}/${ofName}" for client certificates: ${revoked.fault}`;
    problems.push({ object: `Ingress ${key}`, reason: 'InvalidCertificate', message });
  }
  const authority = { name: object, fingerprint: content.fingerprint };
  return {
    verify: verify === 'optional' ? 'optional' : 'required',
    authority,
    ...(revoked.crl && { crl: revoked.crl }),
  };
}
