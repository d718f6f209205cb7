import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const file = fileURLToPath(new URL('../package-lock.json', import.meta.url));

// `npm ci` refuses any other lock file, but npm itself writes such ones at times:
// https://github.com/npm/cli/issues/4828
test('package-lock.json has an entry for every package that another one names, those of other platforms as well', (t) => {
  const { packages }: { packages: Record<string, LockedPackage> } = JSON.parse(readFileSync(file, 'utf8'));
  t.true(Object.keys(packages).length > 10);
  t.deepEqual(missingEntries(packages), []);
});

test('missingEntries() finds a package that is named but has no entry', (t) => {
  const packages = {
    'node_modules/a': { dependencies: { b: '1' }, optionalDependencies: { c: '1', '@d/e': '1' } },
    'node_modules/a/node_modules/b': {},
    'node_modules/c': {},
  };
  t.deepEqual(missingEntries(packages), ['node_modules/a needs @d/e']);
});

/** As Node resolves: in the package itself, then in each package around it. */
function missingEntries(packages: Readonly<Record<string, LockedPackage>>): string[] {
  const missing: string[] = [];
  for (const [path, { dependencies, optionalDependencies }] of Object.entries(packages)) {
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      let from: string | undefined = path;
      while (
        from !== undefined &&
        packages[`${from}/node_modules/${name}`.replace(/^\//, '')] === undefined
      ) {
        from = from === '' ? undefined : from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')));
      }
      if (from === undefined) missing.push(`${path} needs ${name}`);
    }
  }
  return missing;
}
