import { X509Certificate } from 'node:crypto';
import test from 'ava';
import { depthFault, withDepth } from '../../../agent/certificates/limited-depth.ts';
import { AUTHORITY } from '../../support/values/certificates.ts';

/** Without basicConstraints. */
const PLAIN = `-----BEGIN CERTIFICATE-----
MIIBRDCB66ADAgECAhR7Z1pb+OGRtqiZFnAO1hfBdPqv4TAKBggqhkjOPQQDAjAQ
MQ4wDAYDVQQDDAVwbGFpbjAgFw0yNjExMjkxMzMzMzFaGA8yMTI2MTEwNTEzMzMz
MVowEDEOMAwGA1UEAwwFcGxhaW4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARl
q4VgQgrMyet7JyATtS+BCmGryqQZx0MkzONRfUzYdeiJjIpH6+hF8AWVo/VXoIbx
VXnD1InejLW7ITeW1HlzoyEwHzAdBgNVHQ4EFgQUzNdCN+NMC8xWfrCaXwBR9mao
6J0wCgYIKoZIzj0EAwIDSAAwRQIhAMy+IV5h7XewUDNzodJNjaWVx86MimHVvPHi
qkz/I2gWAiAVg5egO7R8BgCEjIfMJSo0Xn2NeJ8FpD3S9Gz3Ck99aw==
-----END CERTIFICATE-----
`;

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
