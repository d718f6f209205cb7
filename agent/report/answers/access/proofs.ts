// What the agent has of users and certificate authorities, to judge what a client shows. It gives answers, and never what it has.

import type { X509Certificate } from 'node:crypto';
import type { Tls, UserList } from '../../../model/load-balancer.ts';

export interface Proofs {
  /** True if HAProxy has a password of the user. */
  readonly knowsUser: (list: UserList, user: string) => boolean;
  readonly isPassword: (list: UserList, user: string, password: string) => boolean;
  /** Why HAProxy refuses a certificate, as the end of a sentence about it; '' if it does not. */
  readonly certificateFault: (clients: NonNullable<Tls['clients']>, shown: ShownCertificate) => string;
}

export interface ShownCertificate {
  /** The client's own first. */
  readonly certificates: readonly X509Certificate[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** For states that are not served: their secrets are not read. */
export const NO_PROOFS: Proofs = {
  knowsUser: () => false,
  isPassword: () => false,
  certificateFault: () => 'cannot be judged',
};
