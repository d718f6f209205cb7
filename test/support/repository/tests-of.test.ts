import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { type Daemon, testFiles, testsOf } from './tests-of.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** These tests run the installed daemon. */
const OF_THE_INSTALLED = ['test/bench.test.ts', 'test/demo.test.ts'];

const NEEDS: Readonly<Record<Daemon, RegExp>> = {
  haproxy: /requires\(ava, \{[^}]*haproxy: true/s,
  keepalived: /programs(: |\s=\s)\[[^\]]*'keepalived'/,
};

for (const daemon of Object.keys(NEEDS) as Daemon[]) {
  test(`Each test that needs ${daemon} runs the one of the version matrix`, (t) => {
    const found = testsOf(daemon, root);
    const needing = testFiles(root).filter((path) =>
      NEEDS[daemon].test(readFileSync(join(root, path), 'utf8')),
    );
    t.true(needing.length > 5);
    t.deepEqual(
      needing.filter((path) => !found.includes(path) && !OF_THE_INSTALLED.includes(path)),
      [],
    );
  });
}

test('testsOf() names no test that runs neither daemon', (t) => {
  const path = 'test/agent/base/yaml.test.ts';
  t.true(testFiles(root).includes(path));
  t.false([...testsOf('haproxy', root), ...testsOf('keepalived', root)].includes(path));
});
