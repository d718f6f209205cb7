// The problems of one Ingress: what its annotations and paths ask for and cannot have, and what has no effect. Pure.

import { quote } from '../../base/quote.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { type JudgedTls, judgeAskedTls } from '../pool/asked-tls.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { OwnedIngress } from './owned-hosts.ts';

type OnClass = Pick<OwnedIngress, 'ingress' | 'read'>;

/** More annotations are counted. */
const MOST_NAMED = 5;

export function ingressProblems({ ingress, read }: OnClass): readonly Problem[] {
  const object = `Ingress ${ingress.key}`;
  const problems = [
    ...read.faults.map(
      (message): Problem => ({
        object,
        reason: read.pathFaults.includes(message) ? 'InvalidRoute' : 'InvalidAnnotation',
        message,
      }),
    ),
    ...read.without.map((message): Problem => ({ object, reason: 'ProtectionMissing', message })),
  ];
  if (read.ignored.length === 0) return problems;
  const named = read.ignored.slice(0, MOST_NAMED).map(quote).join(', ');
  const more = read.ignored.length > MOST_NAMED ? ` (and ${read.ignored.length - MOST_NAMED} more)` : '';
  const message = `These annotations have no effect here: ${named}${more}`;
  return [...problems, { object, reason: 'AnnotationIgnored', message }];
}

/** The Secret for TLS to members cannot be used. */
export function memberTlsProblems(
  { ingress, read: { askedTls } }: OnClass,
  certificates: CertificatesView,
  reads: Set<Dependency>,
): readonly Problem[] {
  const { tls, fault } = askedTls ? judgeAskedTls(askedTls, certificates, reads) : NO_FAULT;
  if (fault === '') return [];
  const message = tls === undefined ? `${fault}; its requests get status 503` : fault;
  return [{ object: `Ingress ${ingress.key}`, reason: 'InvalidCertificate', message }];
}

const NO_FAULT: JudgedTls = { tls: undefined, fault: '' };
