// Checks a list of trusted certificate authorities before HAProxy sees it. Pure.

import { createHash } from 'node:crypto';
import { SecretText } from '../base/secret-text.ts';
import { readCertificates, type Unusable } from './key-pair.ts';
import { depthFault } from './limited-depth.ts';

export interface Authority {
  /** PEM as Node writes it. */
  readonly pem: SecretText;
  /** A hash of `pem`. */
  readonly fingerprint: string;
  /** When the last certificate expires: until then some clients or members may be trusted. Milliseconds since the epoch. */
  readonly expires: number;
  /** Why the depth below it cannot be limited, the end of a sentence about the list; '' if it can. */
  readonly depthFault: string;
}

/** Mozilla's list has some 220 KB. */
export const MAX_AUTHORITY_BYTES = 512 * 1024;
const MAX_CERTIFICATES = 500;

/** `text`: of `ca.crt`. */
export function checkAuthority(text: string): Authority | Unusable {
  if (text.length > MAX_AUTHORITY_BYTES) return `ca.crt has more than ${MAX_AUTHORITY_BYTES} bytes`;
  const certificates = readCertificates(text, 'ca.crt', MAX_CERTIFICATES);
  if (typeof certificates === 'string') return certificates;
  const pem = certificates.map(String).join('');
  return {
    pem: new SecretText(pem),
    fingerprint: createHash('sha256').update(pem).digest('hex').slice(0, 32),
    depthFault: depthFault(pem),
    expires: Math.max(...certificates.map(({ validToDate }) => validToDate.getTime())),
  };
}
