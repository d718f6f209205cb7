// Reads the sources of all tests and cases for shown-by.ts.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestSource } from './shown-by.ts';

const CASES = /^(cases|transitions|keepalived-cases)\/.*\.txt$/;

/** Sorted by path. */
export function testSources(root: string): readonly TestSource[] {
  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') || CASES.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, 'test', path), 'utf8') }));
}
