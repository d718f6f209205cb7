// TLS on a port of a Service: what the load balancer ends, and what it uses to members. A port that asks for TLS and lacks what
// it needs is not served: a mistake must not turn into traffic without TLS, or with anybody. Pure.

import type { Authority as AuthorityContent } from '../../certificates/authority.ts';
import type { Crl as CrlContent } from '../../certificates/crl.ts';
import type { ErrorPages } from '../../certificates/error-pages.ts';
import type { KeyPair } from '../../certificates/key-pair.ts';
import type { Answer } from '../../certificates/last-good.ts';
import type { TokenKeys } from '../../certificates/token-keys/token-keys.ts';
import type { Users } from '../../certificates/users.ts';
import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Authority, Certificate, Crl, MemberTls, Problem, Tls } from '../../model/load-balancer.ts';
import { protection } from '../../protection/judge-names.ts';
import type { Closes } from '../../protection/protections.ts';
import {
  ANNOTATION_DEFAULTS,
  type AnnotationValues,
  isAnnotated,
  type ReadAnnotations,
} from '../annotations/annotations.ts';
import { ANNOTATIONS, FIELDS, type Field } from '../annotations/table.ts';

/** What is known of certificates. */
export interface CertificatesView {
  /** `name`: a Secret, `default/shop-tls`. */
  pair(name: string): Answer<KeyPair>;
  /** `name`: a ConfigMap or Secret, `configmap default/clients`. */
  authority(name: string): Answer<AuthorityContent>;
  /** Likewise. */
  crl(name: string): Answer<CrlContent>;
  /** `name`: a Secret, `secret default/users`. */
  users(name: string): Answer<Users>;
  /** `name`: a ConfigMap, a Secret or a URL: `jwks https://…`. */
  tokenKeys(name: string): Answer<TokenKeys>;
  /** `name`: a ConfigMap, `configmap default/pages`. */
  errorPages(name: string): Answer<ErrorPages>;
}

export interface PortTls {
  /** undefined if the load balancer ends no TLS on the port. */
  readonly tls: Tls | undefined;
  /** undefined if it uses none to members. */
  readonly memberTls: MemberTls | undefined;
  /** False if the port lacks something. */
  readonly isServed: boolean;
  /** The objects that were read. */
  readonly reads: readonly Dependency[];
  readonly problems: readonly Problem[];
}

export function tlsOf(
  service: Service,
  port: ServicePort,
  annotations: ReadAnnotations,
  certificates: CertificatesView,
): PortTls {
  const reading = new Reading(service, port, annotations, certificates);
  const { values } = annotations;
  const isTcp = port.protocol === 'TCP';
  const asksForTls =
    values.mode === 'https' || values.tlsCertificate.length > 0 || asks(STRICT, service, annotations);
  const tls = isTcp && asksForTls && isTlsPort(port, values) ? reading.tls() : undefined;
  const memberTls = isTcp && asksForMemberTls(service, annotations) ? reading.memberTls() : undefined;
  const { isServed, reads, problems } = reading;
  return { tls, memberTls, isServed, reads, problems };
}

/** The TLS of a Service that routes send to: whether members are verified does not depend on who sends. */
export function memberTlsOf(
  service: Service,
  port: ServicePort,
  annotations: ReadAnnotations,
  certificates: CertificatesView,
): Omit<PortTls, 'tls'> {
  const reading = new Reading(service, port, annotations, certificates);
  const memberTls = asksForMemberTls(service, annotations) ? reading.memberTls() : undefined;
  const { isServed, reads, problems } = reading;
  return { memberTls, isServed, reads, problems };
}

/** Annotations without which TLS, or what is sent to members, would be less than what is meant. */
const STRICT = fieldsThatClose('tls');
const STRICT_TO_MEMBERS = fieldsThatClose('members');

function fieldsThatClose(what: Closes): readonly Field[] {
  return FIELDS.filter((field) => protection(ANNOTATIONS[field].name)?.closes === what);
}

/** One of these is asked for, perhaps with a value that is not allowed. */
function asks(
  fields: readonly Field[],
  { annotations }: Pick<Service, 'annotations'>,
  { values, refused }: ReadAnnotations,
): boolean {
  return fields.some(
    (field) =>
      refused.has(field) ||
      (isAnnotated(annotations, field) && String(values[field]) !== String(ANNOTATION_DEFAULTS[field])),
  );
}

function asksForMemberTls(service: Pick<Service, 'annotations'>, annotations: ReadAnnotations): boolean {
  return annotations.values.memberTls !== 'none' || asks(STRICT_TO_MEMBERS, service, annotations);
}

function isTlsPort({ port, name }: ServicePort, { tlsPorts }: AnnotationValues): boolean {
  return tlsPorts.length === 0 || tlsPorts.includes(String(port)) || (name !== '' && tlsPorts.includes(name));
}

/** The reading of what one port needs. */
class Reading {
  isServed = true;
  readonly reads: Dependency[] = [];
  readonly problems: Problem[] = [];
  readonly #service: Service;
  readonly #port: ServicePort;
  readonly #values: AnnotationValues;
  readonly #refused: ReadAnnotations['refused'];
  readonly #certificates: CertificatesView;

  constructor(
    service: Service,
    port: ServicePort,
    { values, refused }: ReadAnnotations,
    certificates: CertificatesView,
  ) {
    this.#service = service;
    this.#port = port;
    this.#values = values;
    this.#refused = refused;
    this.#certificates = certificates;
  }

  tls(): Tls | undefined {
    if (this.#lacks(STRICT)) return undefined;
    const { tlsMinVersion: minVersion, tlsCiphers: ciphers, tlsClientCertificates: verify } = this.#values;
    const certificates = this.#ownCertificates();
    const clients = verify === 'none' ? undefined : this.#clients(verify);
    if (certificates.length === 0 || (verify !== 'none' && clients === undefined)) {
      this.isServed = false;
      return undefined;
    }
    return { certificates, minVersion, ciphers, clients, alpn: alpnOf(this.#values) };
  }

  memberTls(): MemberTls | undefined {
    if (this.#lacks(STRICT_TO_MEMBERS)) return undefined;
    const { memberTls, memberTlsName: serverName } = this.#values;
    if (memberTls === 'unverified') return { authority: undefined, serverName };
    if (memberTls === 'none') {
      this.isServed = false;
      const needed = 'annotation "headgate.io/member-tls" is not "verified"';
      this.#report('CertificateMissing', `${this.#cannot('verify members')}: ${needed}`);
      return undefined;
    }
    const authority = this.#authority('memberTlsCa');
    if (serverName === '')
      this.#report(
        'CertificateMissing',
        `${this.#cannot('verify members')}: annotation "headgate.io/member-tls-name" has no name`,
      );
    if (authority !== undefined && serverName !== '') return { authority, serverName };
    this.isServed = false;
    return undefined;
  }

  /** True if one of these has a value that is not allowed. */
  #lacks(fields: readonly Field[]): boolean {
    const field = fields.find((each) => this.#refused.has(each));
    if (field === undefined) return false;
    this.isServed = false;
    const message = `Cannot serve port ${this.#port.port}: annotation "headgate.io/${nameOf(field)}" has a value that is not allowed, and no default is as strict`;
    this.#report('InvalidAnnotation', message);
    return true;
  }

  #ownCertificates(): readonly Certificate[] {
    const { tlsCertificate } = this.#values;
    if (tlsCertificate.length === 0)
      this.#report(
        'CertificateMissing',
        `${this.#cannot('end TLS')}: annotation "headgate.io/tls-certificate" names no Secret; it is not served without TLS`,
      );
    return tlsCertificate.flatMap((each) => {
      const name = `${this.#service.namespace}/${each}`;
      const pair = this.#use(`secret ${name}`, this.#certificates.pair(name), 'certificate');
      return pair === undefined ? [] : [certificateOf(name, pair)];
    });
  }

  /** undefined if one of them is missing: without revocation lists, clients with revoked certificates would be served. */
  #clients(verify: 'optional' | 'required'): Tls['clients'] {
    const { tlsClientCrl } = this.#values;
    const authority = this.#authority('tlsClientCa');
    const crl = tlsClientCrl === '' ? undefined : this.#crl(tlsClientCrl);
    if (authority === undefined || (tlsClientCrl !== '' && crl === undefined)) return undefined;
    return { verify, authority, ...(crl && { crl }) };
  }

  #authority(field: 'tlsClientCa' | 'memberTlsCa'): Authority | undefined {
    const text = this.#values[field];
    if (text === '') {
      const what = field === 'tlsClientCa' ? 'verify clients' : 'verify members';
      this.#report(
        'CertificateMissing',
        `${this.#cannot(what)}: annotation "headgate.io/${nameOf(field)}" names no object`,
      );
      return undefined;
    }
    const name = this.#objectName(text);
    const content = this.#use(name, this.#certificates.authority(name), 'list of authorities');
    return content && { name, fingerprint: content.fingerprint };
  }

  #crl(text: string): Crl | undefined {
    const name = this.#objectName(text);
    const content = this.#use(name, this.#certificates.crl(name), 'revocation list');
    return content && { name, fingerprint: content.fingerprint };
  }

  /** `text`: `clients` for a ConfigMap, `secret/clients` for a Secret. */
  #objectName(text: string): `secret ${string}` | `configmap ${string}` {
    const isSecret = text.startsWith('secret/');
    const key = `${this.#service.namespace}/${text.replace(/^secret\//, '')}` as const;
    return isSecret ? `secret ${key}` : `configmap ${key}`;
  }

  /** `what`: the content in words. */
  #use<T>(
    read: Dependency,
    { content, fault, isMissing, isExpired }: Answer<T>,
    what: string,
  ): T | undefined {
    if (!this.reads.includes(read)) this.reads.push(read);
    const object = read.replace(/^secret (.*)/, 'Secret "$1"').replace(/^configmap (.*)/, 'ConfigMap "$1"');
    if (fault !== '') {
      const remains = content === undefined ? '' : `; the ${what} that it had stays in use`;
      const reason = isMissing ? 'CertificateMissing' : 'InvalidCertificate';
      this.#report(reason, `Cannot use ${object} for TLS on port ${this.#port.port}: ${fault}${remains}`);
    } else if (isExpired) {
      this.#report(
        'CertificateExpired',
        `The ${what} in ${object} for port ${this.#port.port} has expired, so that handshakes fail; renew it`,
      );
    }
    return content;
  }

  #cannot(what: string): string {
    return `Cannot ${what} on port ${this.#port.port}`;
  }

  #report(reason: Problem['reason'], message: string): void {
    const { protocol, port } = this.#port;
    this.problems.push({ object: `Service ${this.#service.key}`, reason, message, port: { protocol, port } });
  }
}

function alpnOf({ tlsAlpn, mode }: AnnotationValues): readonly string[] {
  if (tlsAlpn.length > 0) return tlsAlpn.filter((protocol) => protocol !== 'none');
  return mode === 'tcp' ? [] : ['h2', 'http/1.1'];
}

function nameOf(field: Field): string {
  return ANNOTATIONS[field].name;
}

const certificates = new WeakMap<KeyPair, Certificate>();

/** The same value for the same pair, so that nothing compares, or names, certificates that did not change. */
export function certificateOf(name: string, pair: KeyPair): Certificate {
  const known = certificates.get(pair);
  if (known?.name === name) return known;
  const { fingerprint, sha1, chainLength, bytes, expires } = pair;
  const certificate = { name, fingerprint, sha1, chainLength, bytes, expires };
  certificates.set(pair, certificate);
  return certificate;
}
