// TLS of an Ingress class: the certificates that its Ingresses name for their hosts, the one for all other names, and what
// clients of each host must prove. Pure.

import type { IngressClass } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Certificate, Problem, Tls, TlsSection } from '../../model/load-balancer.ts';
import { hostPattern, wildcardOf } from '../routes/host-pattern.ts';
import { type CertificatesView, certificateOf } from '../service/tls.ts';
import type { IngressGuards } from './ingress-guards.ts';
import type { OwnedHosts } from './owned-hosts.ts';

/** On an IngressClass: `namespace/name` of the Secret for names that no Ingress has a certificate for. */
const DEFAULT_CERTIFICATE = 'headgate.io/tls-certificate';

export interface IngressClassTls {
  /** undefined: no certificate can be used, so that port 443 is closed. */
  readonly tls: Tls | undefined;
  /** True if a client that asks for the host gets a certificate that was meant for it. */
  readonly isServed: (host: string) => boolean;
}

/** `hosts.ingresses`: the oldest one first, whose certificate a host has. */
export function ingressTls(
  { name, annotations }: IngressClass,
  { ingresses, ownerOf }: OwnedHosts,
  guards: IngressGuards['hosts'],
  certificates: CertificatesView,
  reads: Set<Dependency>,
  problems: Problem[],
): IngressClassTls {
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
  const own = new Map<string, Certificate>();
  for (const { ingress, tls } of ingresses)
    for (const { hosts, secretName } of tls) {
      // An entry without a Secret has the certificate for all other names.
      const certificate =
        secretName === '' ? undefined : use(`Ingress ${ingress.key}`, `${ingress.namespace}/${secretName}`);
      if (certificate === undefined) continue;
      if (hosts.length === 0) others ??= certificate;
      for (const host of hosts) if (!own.has(host)) own.set(host, certificate);
    }
  /** The certificate of the host itself, or of a wildcard of the same namespace. */
  const meantFor = (host: string): Certificate | undefined => {
    const wide = wildcardOf(host);
    return own.get(host) ?? (ownerOf(wide) === ownerOf(host) ? own.get(wide) : undefined) ?? others;
  };
  const [first] = own.values();
  const fallback = others ?? first;
  if (fallback === undefined) return { tls: undefined, isServed: () => false };
  const clientsOf = (host: string): Tls['clients'] => {
    const guard = guards.get(host);
    return guard === 'closed' ? undefined : guard;
  };
  const needsLine = (host: string): boolean => {
    if (host === '') return false;
    if (own.has(host) || clientsOf(host) !== undefined) return true;
    // Otherwise it would have the line of a wildcard, or of all names.
    const wide = wildcardOf(host);
    if (clientsOf(wide) !== undefined || clientsOf('') !== undefined) return true;
    return own.has(wide) && ownerOf(wide) !== ownerOf(host);
  };
  const named = ingresses.flatMap(({ read }) => [...read.hosts, ...read.canaries].map(({ host }) => host));
  const lines = [...new Set([...own.keys(), ...guards.keys(), ...named])].filter(needsLine);
  const tls: Tls = {
    certificates: [fallback],
    minVersion: '1.2',
    ciphers: [],
    clients: clientsOf(''),
    alpn: ['h2', 'http/1.1'],
    sections: lines.map(
      (host): TlsSection => ({
        hostname: hostPattern(host, 'one-label'),
        certificates: [meantFor(host) ?? fallback],
        clients: clientsOf(host),
      }),
    ),
  };
  return { tls, isServed: (host) => meantFor(host) !== undefined };
}
