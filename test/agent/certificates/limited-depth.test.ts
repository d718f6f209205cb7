import { X509Certificate } from 'node:crypto';
import test from 'ava';
import { depthFault, withDepth } from '../../../agent/certificates/limited-depth.ts';
import { AUTHORITY, PLAIN } from '../../support/values/certificates.ts';

/** `CA:TRUE` with a length of paths below it, as DER. */
const limitOf = (pem: string): string | undefined =>
  /551d13(?:0101ff)?04\w\w30\w\w0101ff0201(\w\w)/.exec(new X509Certificate(pem).raw.toString('hex'))?.[1];

test('An authority accepts as many intermediate certificates as its host allows, and keeps all else', (t) => {
  t.is(limitOf(AUTHORITY), undefined);
  const before = new X509Certificate(AUTHORITY);
  for (const [depth, limit] of [
    [0, '00'],
    [1, '01'],
    [99, '63'],
  ] as const) {
    const after = withDepth(AUTHORITY, depth) ?? '';
    t.is(limitOf(after), limit);
    const certificate = new X509Certificate(after);
    t.is(certificate.subject, before.subject);
    t.true(certificate.ca);
    t.true(certificate.publicKey.equals(before.publicKey));
    t.true(certificate.checkIssued(certificate));
    // A limit of its own stays if it is lower.
    t.is(limitOf(withDepth(after, 50) ?? ''), depth === 99 ? '32' : limit);
  }
});

test('The depth below a certificate that is its own issuer, and that says nothing of authorities, cannot be limited', (t) => {
  t.is(depthFault(AUTHORITY), '');
  t.regex(depthFault(PLAIN), /^a certificate that is its own issuer has no basicConstraints/);
  t.is(withDepth(AUTHORITY + PLAIN, 1), undefined);
});
