import test from 'ava';
import { resultsOf, testNames } from '../../scripts/kubernetes-results.ts';

const GROUP = '[sig-network] LoadBalancers [Feature:LoadBalancer]';

const spec = (leaf: string, more: object = {}) => ({
  LeafNodeType: 'It',
  ContainerHierarchyTexts: [GROUP],
  LeafNodeText: leaf,
  State: 'passed',
  RunTime: 1_600_000_000,
  ...more,
});
const report = JSON.stringify([
  {
    SpecReports: [
      { ...spec(''), LeafNodeType: 'BeforeSuite' },
      spec('should balance [Slow]'),
      spec('should refuse', { State: 'timedout', Failure: { Message: 'timed out\nafter 2 s' } }),
      spec('should wait', { State: 'skipped', Failure: { Message: 'needs a cloud' } }),
      spec('should sleep', { State: 'skipped', RunTime: 0 }),
    ],
  },
  { SpecReports: null },
]);

test('testNames() gives the tests by their names without tags', (t) => {
  const names = testNames(report);
  t.is(names.size, 4);
  t.is(names.get('LoadBalancers should balance'), `${GROUP} should balance [Slow]`);
});

test('resultsOf() says what became of each test that was to run', (t) => {
  const names = ['balance', 'refuse', 'wait', 'sleep', 'exist'].map((verb) => `LoadBalancers should ${verb}`);
  t.deepEqual(
    resultsOf(report, 'cluster IPs', names).map(({ outcome, seconds, message }) => [
      outcome,
      seconds,
      message,
    ]),
    [
      ['passed', 2, ''],
      ['failed', 2, 'timed out\nafter 2 s'],
      ['skipped', 2, 'needs a cloud'],
      ['failed', 0, 'It did not run.'],
      ['failed', 0, 'It did not run.'],
    ],
  );
});
