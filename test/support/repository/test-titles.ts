// The titles of the tests in a source file, and what of a table of titles is not there. Pure.

import type { Section } from '../../conformance.ts';

/** What a test file defines; tests that are skipped, to be written, or commented out are none. */
export interface TestTitles {
  has(title: string): boolean;
}

/** In a template each `${...}` stands for any text. A macro's own title is not looked at, what it is given is. */
export function testTitlesOf(source: string): TestTitles {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const calls =
    /\btest(?:\.serial)?\(\s*(?:\w+,\s*)?(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/g;
  const exact = new Set<string>();
  const patterns: RegExp[] = [];
  for (const [, single, double, template] of code.matchAll(calls)) {
    const literal = single ?? double;
    if (literal !== undefined) exact.add(literal.replaceAll(/\\(.)/g, '$1'));
    else if (template !== undefined) patterns.push(patternOf(template));
  }
  return { has: (title) => exact.has(title) || patterns.some((pattern) => pattern.test(title)) };
}

/**
 * Every row without a test that does not say what is not there, and every test or case that is named and not there.
 * `read` gives a file below test/, undefined where there is none.
 */
export function conformanceFaults(
  sections: readonly Section[],
  read: (path: string) => string | undefined,
): readonly string[] {
  const faults: string[] = [];
  const fields = new Set<string>();
  for (const { field, rule, notYet, shownBy } of sections.flatMap(({ rows }) => rows)) {
    if (fields.has(field)) faults.push(`${field}: There are two rows for it`);
    fields.add(field);
    const named = Object.entries(shownBy).flatMap(([file, titles]) =>
      titles.map((title) => [file, title] as const),
    );
    if (rule.length === 0) faults.push(`${field}: It has no rule`);
    if (named.length === 0 && notYet === undefined) faults.push(`${field}: No test shows it`);
    for (const [file, title] of named) {
      if (!isThere(file, title, read)) faults.push(`${field}: test/${file} has no "${title}"`);
    }
  }
  return faults;
}

function isThere(file: string, title: string, read: (path: string) => string | undefined): boolean {
  if (file.endsWith('/')) return read(`${file}${title}.txt`) !== undefined;
  const source = read(file);
  return source !== undefined && testTitlesOf(source).has(title);
}

function patternOf(template: string): RegExp {
  const parts = template.split(/\$\{[^}]*\}/).map((part) => part.replaceAll(/\\(.)/g, '$1'));
  return new RegExp(
    `^${parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.*')}$`,
    's',
  );
}
