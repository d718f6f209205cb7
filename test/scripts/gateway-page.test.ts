import test from 'ava';
import { gatewayPage } from '../../scripts/gateway-page.ts';
import type { GatewayResult } from '../../scripts/gateway-results.ts';
import { DIFFERENCES, FEATURES, NOT_CLAIMED } from '../conformance/gateway-tests.ts';

const result: GatewayResult = {
  name: 'HTTPRouteWeight',
  outcome: 'passed',
  seconds: 1.23,
  reasons: [],
  output: '',
};
const page = (...results: GatewayResult[]) =>
  gatewayPage(results, ['Headgate 1', 'HAProxy 2'], new Date('2026-11-26T12:00:00Z'));

test('gatewayPage() counts the results, with versions and date', (t) => {
  const text = page(result, { ...result, outcome: 'failed', reasons: ['x'] });
  t.true(text.includes('\n1 of 2 tests pass, 1 fail, and 0 skip themselves.\n'));
  t.true(text.includes('\nRun on 2026-11-26, with Headgate 1, HAProxy 2.\n'));
});

test('gatewayPage() has a test in the chapter of its kind, and the parts that failed beneath', (t) => {
  const name = 'GatewayModifyListeners';
  const reasons = ['adds_a_<listener>', 'removes_one'];
  const text = page(result, { ...result, name, outcome: 'failed', reasons });
  const [, gateways = ''] = text.split('## Gateway and GatewayClass\n');
  const [own = '', routes = ''] = gateways.split('## HTTPRoute\n');
  t.true(own.includes(`| ${name} | failed | 1.2 s |`));
  t.true(own.includes(`- ${name} failed: adds a \\<listener\\>; removes one\n`));
  t.true(routes.includes('| HTTPRouteWeight | passed | 1.2 s |'));
  t.false(text.includes('## UDPRoute'));
});

test('gatewayPage() names the features that are claimed and those that are not, with the reason', (t) => {
  const [, text = ''] = page().split('## Features\n');
  t.true(text.includes(FEATURES.join(', ')));
  for (const { why, features } of NOT_CLAIMED) {
    t.true(text.includes(why));
    for (const name of features) t.true(text.includes(`\n- ${name}\n`));
  }
});

test('A feature is claimed or left out, and has one place', (t) => {
  const names = [...FEATURES, ...NOT_CLAIMED.flatMap(({ features }) => features)];
  t.deepEqual(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  );
  for (const why of Object.values(DIFFERENCES)) t.regex(why, /^\S.*\.$/);
});
