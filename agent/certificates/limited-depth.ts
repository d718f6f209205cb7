// Authorities for HAProxy that accept so many intermediate certificates below them and no more, because HAProxy has no depth of its
// own: pathLenConstraint (RFC 5280, section 4.2.1.9) in each certificate that is its own issuer. OpenSSL looks at it, and not
// at the signature of what it trusts. Pure.
// Why: docs/design/decisions/0109-depth-as-path-length.md

import { X509Certificate } from 'node:crypto';
import { type DerValue, INTEGER, SEQUENCE, valuesIn } from '../base/der.ts';
import { pemBlocks } from '../base/pem.ts';

const BOOLEAN = 0x01;
const OCTET_STRING = 0x04;
const OBJECT_IDENTIFIER = 0x06;
const EXTENSIONS = 0xa3;
const BASIC_CONSTRAINTS = Buffer.from('551d13', 'hex');

/** PEM. undefined: the depth of one cannot be limited. `pem`: that checkAuthority() gives. */
export function withDepth(pem: string, depth: number): string | undefined {
  const limited = pemBlocks(pem).map(({ text }) => {
    const certificate = new X509Certificate(text);
    const der = certificate.checkIssued(certificate) ? limitedDer(certificate.raw, depth) : certificate.raw;
    return der && new X509Certificate(der).toString();
  });
  return limited.includes(undefined) ? undefined : limited.join('');
}

export function depthFault(pem: string): string {
  return withDepth(pem, 0) === undefined
    ? 'a certificate that is its own issuer has no basicConstraints, so that the depth below it cannot be limited'
    : '';
}

/** undefined without the extension of an authority. */
function limitedDer(der: Buffer, depth: number): Buffer | undefined {
  const [certificate] = valuesIn(der);
  const [signed, ...others] = valuesIn(certificate?.content ?? NOTHING);
  const fields = valuesIn(signed?.content ?? NOTHING);
  const extensions = valuesIn(fields.find(({ tag }) => tag === EXTENSIONS)?.content ?? NOTHING)[0];
  let isLimited = false;
  const changed = valuesIn(extensions?.content ?? NOTHING).map((extension): DerValue => {
    const parts = valuesIn(extension.content);
    const isConstraint = parts[0]?.tag === OBJECT_IDENTIFIER && parts[0].content.equals(BASIC_CONSTRAINTS);
    const [own] = valuesIn(parts.find(({ tag }) => tag === OCTET_STRING)?.content ?? NOTHING);
    const [isAuthority, length] = valuesIn(own?.content ?? NOTHING);
    if (!isConstraint || isAuthority?.tag !== BOOLEAN || isAuthority.content[0] === 0) return extension;
    isLimited = true;
    const before = length === undefined ? depth : Number(`0x${length.content.toString('hex')}`);
    const most = { tag: INTEGER, content: Buffer.from([Math.min(before, depth)]) };
    const value = {
      tag: OCTET_STRING,
      content: derOf([{ tag: SEQUENCE, content: derOf([isAuthority, most]) }]),
    };
    return { ...extension, content: derOf(parts.map((part) => (part.tag === OCTET_STRING ? value : part))) };
  });
  if (!isLimited) return undefined;
  const list = { tag: EXTENSIONS, content: derOf([{ tag: SEQUENCE, content: derOf(changed) }]) };
  const own = {
    tag: SEQUENCE,
    content: derOf(fields.map((each) => (each.tag === EXTENSIONS ? list : each))),
  };
  return derOf([{ tag: SEQUENCE, content: derOf([own, ...others]) }]);
}

const NOTHING = Buffer.alloc(0);

/** The values after each other. */
function derOf(values: readonly DerValue[]): Buffer {
  return Buffer.concat(
    values.flatMap(({ tag = 0, content }) => {
      const { length } = content;
      const long = [0x83, length >> 16, (length >> 8) & 0xff, length & 0xff];
      return [Buffer.from(length < 0x80 ? [tag, length] : [tag, ...long]), content];
    }),
  );
}
