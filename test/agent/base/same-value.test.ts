import test from 'ava';
import { sameValue } from '../../../agent/base/same-value.ts';

test('sameValue() is true for values that are equal in depth', (t) => {
  const value = () => ({
    name: 'web',
    ports: [{ port: 80, nodePort: 0 }],
    vip: undefined,
    ratio: Number.NaN,
  });
  t.true(sameValue(value(), value()));
  t.true(sameValue([], []));
  t.true(sameValue({ a: 1, b: 2 }, { b: 2, a: 1 }), 'the order of fields does not count');
});

test('sameValue() is false for one difference at any depth', (t) => {
  const ports = (port: number | string) => ({ name: 'web', ports: [{ port: 80 }, { port }] });
  t.false(sameValue(ports(443), ports(444)));
  t.false(sameValue(ports(443), ports('443')));
  t.false(sameValue({ ports: [80, 443] }, { ports: [443, 80] }), 'the order of a list counts');
  t.false(sameValue({ ports: [80] }, { ports: [80, 443] }));
  t.false(sameValue({ a: undefined }, {}));
  t.false(sameValue({}, { a: undefined }));
  t.false(sameValue([80], { 0: 80 }));
  t.false(sameValue({ a: undefined }, { b: undefined }));
  t.false(sameValue({}, []));
  t.false(sameValue({}, null));
  t.false(sameValue(null, undefined));
});
