// TLS to members as an Ingress asks for it, with what its Secret has now. What cannot be given leaves the pool without members: a
// request must not go out unverified, or without the certificate by which members know this load balancer. Pure.

import type { Dependency } from '../../model/desired-state.ts';
import type { Authority, MemberTls } from '../../model/load-balancer.ts';
import type { AskedTls } from '../../model/pool-uses.ts';
import { type CertificatesView, certificateOf } from '../service/tls.ts';

export interface JudgedTls {
  /** undefined if it cannot be given. */
  readonly tls: MemberTls | undefined;
  /** A sentence without its end; '' if the Secret has all that is asked for. */
  readonly fault: string;
}

/** `reads`: adds what is read. */
export function judgeAskedTls(
  { secret, isVerified, serverName, depth, versions, ciphers }: AskedTls,
  certificates: CertificatesView,
  reads: Set<Dependency>,
): JudgedTls {
  const common = { serverName, ...(versions && { versions }), ...(ciphers && { ciphers }) };
  if (secret === '') return { tls: { authority: undefined, ...common }, fault: '' };
  const object = `secret ${secret}` as const;
  reads.add(object);
  // Asked for by its name first: a Secret of another type than `kubernetes.io/tls` has a certificate, too.
  const authorities = certificates.authority(object);
  const pair = certificates.pair(secret);
  const hasNoPair = authorities.content !== undefined && NO_PAIR.includes(pair.fault);
  const depthFault = (depth !== undefined && authorities.content?.depthFault) || '';
  const fault =
    depthFault || (isVerified && authorities.fault !== '' ? authorities.fault : hasNoPair ? '' : pair.fault);
  const isUsable =
    depthFault === '' && (!isVerified || authorities.content !== undefined) && (hasNoPair || pair.content);
  if (!isUsable) return { tls: undefined, fault: cannot(secret, fault || 'it is not read yet') };
  const authority: Authority | undefined =
    isVerified && authorities.content
      ? { name: object, fingerprint: authorities.content.fingerprint, ...(depth !== undefined && { depth }) }
      : undefined;
  const certificate = pair.content && certificateOf(secret, pair.content);
  return {
    tls: { authority, ...common, ...(certificate && { certificate }) },
    fault: fault === '' ? '' : cannot(secret, `${fault}; what it had stays in use`),
  };
}

/** A Secret with authorities only is enough for members that ask for no certificate. */
const NO_PAIR = ['it has no tls.crt', 'it has no tls.key'];

function cannot(secret: string, why: string): string {
  return `Cannot use Secret "${secret}" for TLS to members: ${why}`;
}

/** What a Service or its policy says of verified members has precedence over what an Ingress asks for. */
export function joinedTls(asked: MemberTls | undefined, given: MemberTls | undefined): MemberTls | undefined {
  if (asked === undefined || given === undefined) return asked ?? given;
  return given.authority === undefined ? asked : { ...asked, ...given };
}
