import { readFileSync } from 'node:fs';
import test from 'ava';
import { kubernetesPage } from '../../scripts/kubernetes-page.ts';
import type { TestResult } from '../../scripts/kubernetes-results.ts';
import { CHAPTERS, DIFFERENCES, LEFT_OUT, ROLES, testsOf } from '../conformance/kubernetes-tests.ts';

const NAME = 'Services should be rejected when no endpoints exist';
const result: TestResult = { role: 'cluster IPs', name: NAME, outcome: 'passed', seconds: 3, message: '' };
const page = (...results: TestResult[]) =>
  kubernetesPage(results, ['Headgate 1', 'HAProxy 2'], new Date('2026-11-26T12:00:00Z'));

test('kubernetesPage() counts the results, with versions and date', (t) => {
  const text = page(result, { ...result, outcome: 'failed', message: 'x' });
  t.true(text.includes('\n1 of 2 tests pass, 1 fail, and 0 skip themselves.\n'));
  t.true(text.includes('\nRun on 2026-11-26, with Headgate 1, HAProxy 2.\n'));
});

test('kubernetesPage() has a test in its chapter, and the reason of a failure beneath', (t) => {
  const message = 'got:\n\t<nil>  from /tmp/some/where/kubectl | `all`';
  const [, chapter = ''] = page({ ...result, outcome: 'failed', message }).split('## No ready endpoints\n');
  t.true(chapter.includes(`| ${NAME} | cluster IPs | failed | 3 s |`));
  t.true(chapter.includes(`- ${NAME} (cluster IPs) failed: got: \\<nil\\> from kubectl \\| \\\`all\\\`\n`));
});

test('kubernetesPage() shortens a long message', (t) => {
  const text = page({ ...result, outcome: 'failed', message: 'word '.repeat(1_000) });
  t.true(Math.max(...text.split('\n').map((line) => line.length)) < 500);
});

test('kubernetesPage() names the tests that do not run, with the reason', (t) => {
  const [, text = ''] = page().split('## Not run\n');
  for (const { why, tests } of LEFT_OUT) t.true(tests.length > 0 && text.includes(why));
  t.true(text.includes('\n- Services should work after restarting kube-proxy\n'));
});

test('kubernetesPage() says in what Headgate differs where a test fails for that', (t) => {
  const name = 'LoadBalancers ExternalTrafficPolicy: Local should work from pods';
  const role = 'load balancer to pods';
  const skipped = { ...result, role, name, outcome: 'skipped', message: 'It is Proxy' } as const;
  t.true(page(skipped).includes(` (${role}) skipped: It is Proxy\n  ${DIFFERENCES[name]}\n`));
  t.false(page({ ...result, role, name }).includes(`${DIFFERENCES[name]}`));
  t.false(page({ ...skipped, role: 'gateway mode' }).includes(`${DIFFERENCES[name]}`));
});

test('Each difference is that of a test that runs', (t) => {
  const running = new Set(CHAPTERS.flatMap(({ tests }) => Object.values(tests).flat()));
  t.deepEqual(
    Object.keys(DIFFERENCES).filter((name) => !running.has(name)),
    [],
  );
});

test('A test of Kubernetes is in one chapter, or left out, and in no other', (t) => {
  const names = [
    ...CHAPTERS.flatMap(({ tests }) => [...new Set(Object.values(tests).flat())]),
    ...LEFT_OUT.flatMap(({ tests }) => tests),
  ];
  t.true(names.length > 80);
  t.deepEqual(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  );
});

test('docs/conformance/kubernetes.md has the result of each test that runs', (t) => {
  const text = readFileSync(new URL('../../docs/conformance/kubernetes.md', import.meta.url), 'utf8');
  const missing = ROLES.flatMap((role) => testsOf(role).map((name) => `| ${name} | ${role.name} | `)).filter(
    (row) => !text.includes(row),
  );
  t.deepEqual(missing, []);
});
