// The revocation list beside the authorities of client certificates: the field `ca.crl` of the same object. Pure.

import { NO_CRL } from '../../certificates/crl.ts';
import type { Crl } from '../../model/load-balancer.ts';
import type { CertificatesView } from '../service/tls.ts';

export interface ClientCrl {
  /** undefined if the object has none. */
  readonly crl: Crl | undefined;
  /** Why revoked certificates cannot be told from others, or clients are refused; '' if there is no fault. */
  readonly fault: string;
}

/** `name`: of the object with the authorities. With a fault and without a list the authorities must not be used. */
export function clientCrl(name: string, certificates: CertificatesView): ClientCrl {
  const { content, fault, isExpired } = certificates.crl(name);
  // An object that has lost the field wants no list any more.
  if (fault === NO_CRL) return { crl: undefined, fault: '' };
  const crl = content && { name, fingerprint: content.fingerprint };
  if (fault === '' && isExpired)
    return { crl, fault: 'the revocation list in ca.crl has expired, so that handshakes fail' };
  if (fault === '' || crl === undefined) return { crl, fault };
  return { crl, fault: `${fault}; the revocation list that it had stays in use` };
}
