// Certificates and authorities of the model with their texts, for a real HAProxy.

import { checkAuthority } from '../../../agent/certificates/authority.ts';
import { checkCrl } from '../../../agent/certificates/crl.ts';
import { checkKeyPair } from '../../../agent/certificates/key-pair.ts';
import type { PemTexts } from '../../../agent/haproxy/config/certificate-files.ts';
import type { Certificate, Crl, Tls } from '../../../agent/model/load-balancer.ts';
import type { PemPair } from './certificates.ts';

export class CertificateTexts implements PemTexts {
  readonly #texts = new Map<string, string>();
  readonly certificate = (name: string, fingerprint: string) => this.#texts.get(`${name} ${fingerprint}`);
  readonly authority = this.certificate;
  readonly crl = this.certificate;

  pair(name: string, { cert, key }: PemPair): Certificate {
    const pair = checkKeyPair(cert, key);
    if (typeof pair === 'string') throw new Error(pair);
    const { fingerprint, sha1, chainLength, expires, pem } = pair;
    this.#texts.set(`${name} ${fingerprint}`, pem.reveal());
    return { name, fingerprint, sha1, chainLength, bytes: pair.bytes, expires };
  }

  clients(name: string, cert: string): NonNullable<Tls['clients']> {
    const authority = checkAuthority(cert);
    if (typeof authority === 'string') throw new Error(authority);
    const { fingerprint, pem } = authority;
    this.#texts.set(`${name} ${fingerprint}`, pem.reveal());
    return { verify: 'required', authority: { name, fingerprint } };
  }

  revocations(name: string, text: string): Crl {
    const crl = checkCrl(text);
    if (typeof crl === 'string') throw new Error(crl);
    const { fingerprint, pem } = crl;
    this.#texts.set(`${name} ${fingerprint}`, pem.reveal());
    return { name, fingerprint };
  }
}
