import { isIP } from 'node:net';
import test from 'ava';
import fc from 'fast-check';
import { familyOf, parseAddress, parseCidr } from '../../../agent/base/ip.ts';

const addresses = test.macro((t, text: string, expected: string | undefined) => {
  t.is(parseAddress(text)?.address, expected);
  if (expected !== undefined) t.is(parseAddress(text)?.family, expected.includes(':') ? 'v6' : 'v4');
});

for (const [text, expected] of [
  ['192.0.2.1', '192.0.2.1'],
  ['0.0.0.0', '0.0.0.0'],
  ['255.255.255.255', '255.255.255.255'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['2001:0db8::0001', '2001:db8::1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['::', '::'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['::ffff', '::ffff'],
  ['::ffff:0:0:1', '::ffff:0:0:1'],
] as const) {
  test(`parseAddress() reads ${text} as ${expected}`, addresses, text, expected);
}

for (const [what, text] of [
  ['nothing', ''],
  ['a blank', ' '],
  ['a leading blank', ' 192.0.2.1'],
  ['a line end', '192.0.2.1\n'],
  ['a NUL', '192.0.2.1\0'],
  ['an octal part', '010.0.0.1'],
  ['a padded part', '192.0.2.01'],
  ['a hexadecimal part', '0x7f.0.0.1'],
  ['a whole number', '3221225985'],
  ['three parts', '192.0.2'],
  ['a part over 255', '192.0.2.256'],
  ['a zone', 'fe80::1%eth0'],
  ['an empty zone', 'fe80::1%'],
  ['brackets', '[2001:db8::1]'],
  ['a port', '192.0.2.1:80'],
  ['a prefix', '192.0.2.0/24'],
  ['two double colons', '2001::db8::1'],
  ['an IPv4-mapped address', '::ffff:192.0.2.1'],
  ['an IPv4-mapped address in hexadecimal', '0:0:0:0:0:ffff:c000:201'],
  ['an IPv4-compatible address', '::192.0.2.1'],
  ['an IPv4-compatible address in hexadecimal', '::c000:201'],
  ['a host name', 'localhost'],
  ['digits of another script', '١٩٢.0.2.1'],
  ['a megabyte', '1'.repeat(1_000_000)],
] as const) {
  test(`parseAddress() refuses ${what}`, addresses, text, undefined);
}

for (const [text, expected] of [
  ['192.0.2.0/24', '192.0.2.0/24'],
  ['192.0.2.77/24', '192.0.2.0/24'],
  ['192.0.2.77/32', '192.0.2.77/32'],
  ['192.0.2.77/0', '0.0.0.0/0'],
  ['10.255.0.0/9', '10.128.0.0/9'],
  ['2001:DB8:FFFF::1/33', '2001:db8:8000::/33'],
  ['2001:db8::1/128', '2001:db8::1/128'],
  ['::1/0', '::/0'],
] as const) {
  test(`parseCidr() reads ${text} as ${expected}`, (t) => {
    t.deepEqual(parseCidr(text), { cidr: expected, family: expected.includes(':') ? 'v6' : 'v4' });
  });
}

for (const text of [
  '',
  '/',
  '/24',
  '192.0.2.1',
  '192.0.2.0/',
  '192.0.2.0/33',
  '192.0.2.0/-1',
  '192.0.2.0/+8',
  '192.0.2.0/08',
  '192.0.2.0/0x8',
  '192.0.2.0/1e1',
  '192.0.2.0/8.0',
  '192.0.2.0/ 8',
  '192.0.2.0/24\n',
  '192.0.2.0/24/24',
  '192.0.2.0/255.255.255.0',
  '010.0.0.0/8',
  '2001:db8::/129',
  '2001:db8::/٣',
  'fe80::%eth0/64',
  'fe80::/64%eth0',
  '::ffff:192.0.2.0/120',
  '::ffff:0:0/96',
]) {
  test(`parseCidr() refuses ${JSON.stringify(text)}`, (t) => {
    t.is(parseCidr(text), undefined);
  });
}

test('familyOf() gives the family of canonical addresses and CIDRs', (t) => {
  t.deepEqual(['192.0.2.1', '192.0.2.0/24', '::1', '::/0'].map(familyOf), ['v4', 'v4', 'v6', 'v6']);
});

const words = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
/** As `words`, with many zeros, which have short forms. */
const sparse = fc.array(fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff })), {
  minLength: 8,
  maxLength: 8,
});

test('parseAddress() keeps all 128 bits of any spelling, and its result is a fixed point', (t) => {
  fc.assert(
    fc.property(fc.oneof(words, sparse), fc.boolean(), fc.boolean(), (parts, padded, upper) => {
      const hex = parts.map((part) => part.toString(16).padStart(padded ? 4 : 1, '0')).join(':');
      const parsed = parseAddress(upper ? hex.toUpperCase() : hex);
      if (parsed === undefined) {
        t.true(parts.slice(0, 5).every((part) => part === 0) && (parts[5] === 0xffff || parts[5] === 0));
        return;
      }
      t.deepEqual(expand(parsed.address), parts);
      t.deepEqual(parseAddress(parsed.address), parsed);
    }),
  );
});

test('parseAddress() returns every IPv4 address as it is', (t) => {
  fc.assert(
    fc.property(fc.ipV4(), (text) => {
      t.deepEqual(parseAddress(text), { address: text, family: 'v4' });
    }),
  );
});

test('parseCidr() is a fixed point, contains its address and has no host bits', (t) => {
  fc.assert(
    fc.property(words, fc.integer({ min: 0, max: 128 }), (parts, prefix) => {
      const address = parts.map((part) => part.toString(16)).join(':');
      const parsed = parseCidr(`${address}/${prefix}`);
      if (parsed === undefined) return;
      t.deepEqual(parseCidr(parsed.cidr), parsed);
      const network = bits(expand(parsed.cidr.split('/')[0] ?? ''));
      t.is(network, bits(parts).slice(0, prefix).padEnd(128, '0'));
    }),
  );
  fc.assert(
    fc.property(fc.ipV4(), fc.integer({ min: 0, max: 32 }), (address, prefix) => {
      const all = (text: string) => text.split('.').map((part) => Number(part).toString(2).padStart(8, '0'));
      const parsed = parseCidr(`${address}/${prefix}`);
      const network = parsed?.cidr.split('/')[0] ?? '';
      t.is(all(network).join(''), all(address).join('').slice(0, prefix).padEnd(32, '0'));
      t.deepEqual(parseCidr(parsed?.cidr ?? ''), parsed);
    }),
  );
});

test('parseAddress() and parseCidr() give only addresses that node:net accepts, for any text', (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('0', '1', 'f', ':', '.', '/', '%', ' ', '\n') }),
  );
  fc.assert(
    fc.property(text, (any) => {
      const parsed = parseAddress(any);
      if (parsed !== undefined) t.is(isIP(parsed.address), parsed.family === 'v4' ? 4 : 6);
      t.regex(parseCidr(any)?.cidr ?? '::/0', /^[0-9a-f:.]+\/\d{1,3}$/);
    }),
    { numRuns: 1000 },
  );
});

/** The eight words of an IPv6 text without embedded IPv4, without a library. */
function expand(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].map((part) => Number.parseInt(part, 16));
}

function bits(parts: readonly number[]): string {
  return parts.map((part) => part.toString(2).padStart(16, '0')).join('');
}
