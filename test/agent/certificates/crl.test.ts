import test from 'ava';
import { checkCrl } from '../../../agent/certificates/crl.ts';
import { AUTHORITY, CRL, EXPIRED_CRL } from '../../support/values/certificates.ts';

test('checkCrl() takes all lists, and the first expiry of them', (t) => {
  const checked = checkCrl(`Of 2026\n${CRL}\n${EXPIRED_CRL}`);
  if (typeof checked === 'string') return t.fail(checked);
  t.is(checked.pem.reveal(), `${CRL}${EXPIRED_CRL}`);
  t.is(checked.expires, Date.UTC(2020, 1, 1));
});

test('checkCrl() reads times with two and with four digits of the year', (t) => {
  const expiry = (text: string) => {
    const checked = checkCrl(text);
    return typeof checked === 'string' ? checked : new Date(checked.expires).getUTCFullYear();
  };
  t.is(expiry(EXPIRED_CRL), 2020);
  t.is(expiry(CRL), 2126);
});

test('A list without nextUpdate never expires', (t) => {
  const times = Buffer.from('170d3230303130313030303030305a', 'hex');
  const checked = checkCrl(pemOf(listOf(times)));
  t.is(typeof checked === 'string' ? checked : checked.expires, Number.POSITIVE_INFINITY);
});

const der = Buffer.from(CRL.split('\n').slice(1, -2).join(''), 'base64');
const faults: readonly (readonly [what: string, text: string, fault: string])[] = [
  ['no PEM', 'rubbish', 'ca.crl has no revocation list in PEM'],
  ['a certificate', AUTHORITY, 'ca.crl has no revocation list in PEM'],
  ['a list of more than 512 KiB', CRL.padEnd(524_289), 'ca.crl has more than 524288 bytes'],
  ['an empty list', pemOf(Buffer.alloc(0)), 'revocation list 1 of ca.crl cannot be read'],
  ['a list that is cut off', pemOf(der.subarray(0, -1)), 'revocation list 1 of ca.crl cannot be read'],
  ['bytes behind a list', pemOf(Buffer.concat([der, der])), 'revocation list 1 of ca.crl cannot be read'],
  [
    'no base64 in the second list',
    `${CRL}${CRL.replace('=', '?')}`,
    'revocation list 2 of ca.crl cannot be read',
  ],
  ['no thisUpdate', pemOf(listOf(Buffer.alloc(0))), 'revocation list 1 of ca.crl cannot be read'],
  [
    'a time that is none',
    pemOf(listOf(Buffer.from('1702305a', 'hex'))),
    'revocation list 1 of ca.crl cannot be read',
  ],
  [
    'a length of nine bytes',
    pemOf(Buffer.from(`3089${'f'.repeat(18)}`, 'hex')),
    'revocation list 1 of ca.crl cannot be read',
  ],
];
for (const [what, text, fault] of faults)
  test(`checkCrl() refuses ${what}`, (t) => {
    t.is(checkCrl(text) as unknown, fault);
  });

/** The frame of a list with these times and no other field. */
function listOf(times: Buffer): Buffer {
  const sequence = (...parts: readonly Buffer[]): Buffer => {
    const content = Buffer.concat(parts);
    return Buffer.concat([Buffer.from([0x30, content.length]), content]);
  };
  return sequence(sequence(times), sequence(), Buffer.from([0x03, 0x01, 0x00]));
}

function pemOf(content: Buffer): string {
  return `-----BEGIN X509 CRL-----\n${content.toString('base64')}\n-----END X509 CRL-----\n`;
}
