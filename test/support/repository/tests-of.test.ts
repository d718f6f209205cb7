import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { type Daemon, testFiles, testsOf } from './tests-of.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** These tests run the installed program. */
const OF_THE_INSTALLED = [
  'test/bench.test.ts',
  'test/demo-bgp.test.ts',
  'test/demo-octavia.test.ts',
  'test/demo.test.ts',
  'test/real/gateway-conformance.test.ts',
  'test/walks/cluster-admin.test.ts',
  'test/walks/developer.test.ts',
  'test/walks/network-engineer.test.ts',
  'test/walks/platform-engineer.test.ts',
  'test/walks/sre-faults.test.ts',
  'test/walks/sre.test.ts',
  'test/walks/visitor.test.ts',
];

const NEEDS: Readonly<Record<Daemon, RegExp>> = {
  haproxy: /requires\(ava, \{[^}]*haproxy: true/s,
  keepalived: /programs(: |\s=\s)\[[^\]]*'keepalived'/,
  // Tests of the kernel path need both; others only write rules of their own.
  nft: /programs(: |\s=\s)\[[^\]]*'conntrack'/,
};

for (const daemon of Object.keys(NEEDS) as Daemon[]) {
  test(`Each test that needs ${daemon} runs the one of the version matrix`, (t) => {
    const found = testsOf(daemon, root);
    const needing = testFiles(root).filter((path) =>
      NEEDS[daemon].test(readFileSync(join(root, path), 'utf8')),
    );
    t.true(needing.length > 2);
    t.deepEqual(
      needing.filter((path) => !found.includes(path) && !OF_THE_INSTALLED.includes(path)),
      [],
    );
  });
}

test('testsOf() names no test that runs none of the programs', (t) => {
  const path = 'test/agent/base/yaml.test.ts';
  t.true(testFiles(root).includes(path));
  const all = (Object.keys(NEEDS) as Daemon[]).flatMap((daemon) => testsOf(daemon, root));
  t.false(all.includes(path));
});
