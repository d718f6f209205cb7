// Lists the files that tests lead to: what they import, and the scripts and modules that they name to start them.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { testFiles } from './tests-of.ts';

/** The folders whose files start programs. */
const FOLDERS = ['test', 'scripts', 'bench', 'examples', 'deploy', 'bin'];
/** A path in quotes. */
const PATH = /['"`]([\w./-]+)['"`]/g;

/** TypeScript and shell scripts of these folders, sorted. */
export function programFiles(root: string): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
    .filter((path) => isProgram(root, path))
    .sort();
}

/** Files to which the files of `make test` lead, sorted. The tests in test/image are of other targets. */
export function filesOfMakeTest(root: string): string[] {
  const walks = programFiles(root).filter((path) => path.startsWith('test/walks/'));
  const waiting = [...testFiles(root).filter((path) => !path.startsWith('test/image/')), ...walks];
  const found = new Set(waiting);
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    for (const [, named = ''] of readFileSync(join(root, path), 'utf8').matchAll(PATH)) {
      for (const target of [normalize(join(dirname(path), named)), normalize(named)]) {
        if (found.has(target) || !isProgram(root, target) || target.startsWith('test/image/')) continue;
        found.add(target);
        waiting.push(target);
      }
    }
  }
  return [...found].sort();
}

function isProgram(root: string, path: string): boolean {
  if (!FOLDERS.some((folder) => path.startsWith(`${folder}/`))) return false;
  const file = join(root, path);
  if (!existsSync(file) || !statSync(file).isFile()) return false;
  return path.endsWith('.ts') || /^#!.*\b(?:ba)?sh\b/.test(readFileSync(file, 'utf8').slice(0, 80));
}
