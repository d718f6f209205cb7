import test from 'ava';
import fc from 'fast-check';
import {
  addressesOf,
  allAddresses,
  common,
  hasAddress,
  hasAll,
  others,
} from '../../../agent/base/address-set.ts';

const cidrs = fc.uniqueArray(
  fc.constantFrom(
    '0.0.0.0/1',
    '128.0.0.0/1',
    '10.0.0.0/8',
    '10.1.0.0/16',
    '10.1.2.3/32',
    '11.0.0.0/8',
    'fd00::/8',
  ),
  { maxLength: 5 },
);
const ADDRESSES = [
  '0.0.0.0',
  '9.255.255.255',
  '10.0.0.0',
  '10.1.2.3',
  '11.0.0.1',
  '128.0.0.0',
  '255.255.255.255',
];

/** Whether a CIDR has the address, bit by bit. */
function has(all: readonly string[], address: string): boolean {
  const bits = (text: string) =>
    text
      .split('.')
      .map((part) => Number(part).toString(2).padStart(8, '0'))
      .join('');
  return all.some((cidr) => {
    const [network = '', length] = cidr.split('/');
    return !network.includes(':') && bits(address).startsWith(bits(network).slice(0, Number(length)));
  });
}

test('A set has the addresses of its CIDRs, and the others, and what two have in common', (t) => {
  const property = fc.property(cidrs, cidrs, (a, b) => {
    const [x, y] = [addressesOf(a, 'v4'), addressesOf(b, 'v4')];
    for (const address of ADDRESSES) {
      t.is(hasAddress(x, address), has(a, address));
      t.is(hasAddress(others(x, 'v4'), address), !has(a, address));
      t.is(hasAddress(common(x, y), address), has(a, address) && has(b, address));
    }
  });
  t.notThrows(() => fc.assert(property));
});

test('hasAll() is true for all addresses of a family only', (t) => {
  t.true(hasAll(addressesOf(['128.0.0.0/1', '0.0.0.0/1'], 'v4'), 'v4'));
  t.false(hasAll(addressesOf(['128.0.0.0/1', '0.0.0.0/2'], 'v4'), 'v4'));
  t.true(hasAll(allAddresses('v6'), 'v6'));
  t.false(hasAll([], 'v6'));
});
