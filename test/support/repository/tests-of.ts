// Lists the test files, those that run a real daemon or nft (their imports lead to the file that names the program), and those
// that need only Node (they declare no requirements).

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { importsOf } from './import-rules.ts';

export type Daemon = 'haproxy' | 'keepalived' | 'nft';

/** The files that name the programs. */
const DOORS: Readonly<Record<Daemon, string>> = {
  haproxy: 'test/support/haproxy/haproxy.ts',
  keepalived: 'test/support/vrrp/keepalived.ts',
  nft: 'test/support/host/nft.ts',
};

/** See test/support/basics/requirements.ts. */
const DECLARES_NEEDS = /^const \w+ = requires\(/m;

/** Paths from `root`, sorted. */
export function testsOf(daemon: Daemon, root: string): string[] {
  const door = DOORS[daemon];
  const leads = new Map<string, boolean>();
  const leadsThere = (path: string): boolean => {
    const known = leads.get(path);
    if (known !== undefined) return known;
    leads.set(path, path === door); // ends the recursion if imports form a cycle
    const found = path === door || targetsOf(path, root).some(leadsThere);
    leads.set(path, found);
    return found;
  };
  return testFiles(root).filter(leadsThere);
}

/** Every test file, sorted. */
export function testFiles(root: string): string[] {
  const names = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort();
}

/** Paths from `root`, sorted. */
export function fastTests(root: string): string[] {
  return testFiles(root).filter((path) => !DECLARES_NEEDS.test(readFileSync(join(root, path), 'utf8')));
}

/** The files of test/ that a file imports; the agent imports none. A test may quote imports of files that do not exist. */
function targetsOf(path: string, root: string): string[] {
  return importsOf(readFileSync(join(root, path), 'utf8'))
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => normalize(join(dirname(path), specifier)))
    .filter((target) => target.startsWith('test/') && existsSync(join(root, target)));
}
