import test from 'ava';
import type { Service } from '../../../../agent/kubernetes/objects.ts';
import { sourceRanges } from '../../../../agent/translate/service/source-ranges.ts';
import { service } from '../../../support/values/build.ts';

const ANNOTATION = 'service.beta.kubernetes.io/load-balancer-source-ranges';

function rangesOf(given: Partial<Service>) {
  const { allowed, problems } = sourceRanges(service(given));
  return { ...allowed, problems: problems.map(({ message }) => message) };
}

// Conformance: spec.loadBalancerSourceRanges
test('All clients may connect without the field and the annotation', (t) => {
  t.deepEqual(rangesOf({}), { v4: ['0.0.0.0/0'], v6: ['::/0'], problems: [] });
});

// Conformance: spec.loadBalancerSourceRanges
test('The annotation applies if the field is empty', (t) => {
  const annotations = { [ANNOTATION]: '192.0.2.0/24, 2001:db8::/32' };
  t.deepEqual(rangesOf({ annotations }), { v4: ['192.0.2.0/24'], v6: ['2001:db8::/32'], problems: [] });
});

// Conformance: spec.loadBalancerSourceRanges
test('The field has precedence over the annotation', (t) => {
  const annotations = { [ANNOTATION]: '198.51.100.0/24' };
  t.deepEqual(rangesOf({ annotations, loadBalancerSourceRanges: ['192.0.2.0/24'] }).v4, ['192.0.2.0/24']);
});

// Conformance: spec.loadBalancerSourceRanges
test('A list of IPv4 ranges allows no IPv6 clients', (t) => {
  t.deepEqual(rangesOf({ loadBalancerSourceRanges: ['192.0.2.0/24'] }).v6, []);
});

// Conformance: spec.loadBalancerSourceRanges
test('A list of IPv6 ranges allows no IPv4 clients', (t) => {
  t.deepEqual(rangesOf({ loadBalancerSourceRanges: ['2001:db8::/32'] }).v4, []);
});

// Conformance: spec.loadBalancerSourceRanges
test('Blanks around ranges are ignored', (t) => {
  const annotations = { [ANNOTATION]: ' 192.0.2.0/24 ,\t198.51.100.0/24\n' };
  t.deepEqual(rangesOf({ loadBalancerSourceRanges: [' 192.0.2.0/24 '] }).v4, ['192.0.2.0/24']);
  t.deepEqual(rangesOf({ annotations }).v4, ['192.0.2.0/24', '198.51.100.0/24']);
});

test('An annotation of blanks is ignored', (t) => {
  t.deepEqual(rangesOf({ annotations: { [ANNOTATION]: ' \t' } }).v4, ['0.0.0.0/0']);
});

// Conformance: spec.loadBalancerSourceRanges
test('An invalid range allows no clients and is a problem', (t) => {
  t.deepEqual(rangesOf({ loadBalancerSourceRanges: ['10.0.0.0/33'] }), {
    v4: [],
    v6: [],
    problems: [
      'Cannot use spec.loadBalancerSourceRanges: "10.0.0.0/33" is not a CIDR such as 192.0.2.0/24 or 2001:db8::/32; it allows no clients',
    ],
  });
});

test('An invalid range does not affect the others', (t) => {
  const { v4, problems } = rangesOf({ loadBalancerSourceRanges: ['nonsense', '192.0.2.0/24'] });
  t.deepEqual(v4, ['192.0.2.0/24']);
  t.is(problems.length, 1);
});

test('An invalid annotation allows no clients, as an invalid field', (t) => {
  const { v4, v6, problems } = rangesOf({ annotations: { [ANNOTATION]: 'everybody' } });
  t.deepEqual([v4, v6], [[], []]);
  t.regex(problems.join(), /^Cannot use annotation "service\.beta.*": "everybody" is not a CIDR/);
});

// Conformance: spec.loadBalancerSourceRanges
test('An empty entry of the field allows no clients', (t) => {
  for (const empty of ['', '  ']) {
    const { v4, v6, problems } = rangesOf({ loadBalancerSourceRanges: [empty] });
    t.deepEqual([v4, v6], [[], []]);
    t.is(problems.length, 1);
  }
});

test('An address without a prefix is not a range', (t) => {
  t.deepEqual(rangesOf({ loadBalancerSourceRanges: ['192.0.2.1'] }).v4, []);
});

test('Ranges are canonical, sorted and without duplicates', (t) => {
  const loadBalancerSourceRanges = ['2001:DB8::1/32', '192.0.2.77/24', '10.0.0.0/8', '192.0.2.0/24'];
  t.deepEqual(rangesOf({ loadBalancerSourceRanges }), {
    v4: ['10.0.0.0/8', '192.0.2.0/24'],
    v6: ['2001:db8::/32'],
    problems: [],
  });
});

test('Many invalid ranges are a few problems, the last of which counts the others', (t) => {
  const loadBalancerSourceRanges = Array.from({ length: 60_000 }, (_, at) => `x${at}`);
  const { problems } = rangesOf({ loadBalancerSourceRanges });
  t.is(problems.length, 9);
  t.is(
    problems[8],
    'Cannot use spec.loadBalancerSourceRanges: 59992 more ranges are not CIDRs; they allow no clients',
  );
});
