// Finds the tests of each row of the table of conformance. A comment `Conformance: FIELD` directly above a test or at the
// top of a case names the row. Pure.

import type { Section } from '../../conformance/row.ts';

/** Tests are `*.test.ts`; all other files are cases. */
export interface TestSource {
  /** Relative to test/: `agent/loop.test.ts`. */
  readonly path: string;
  readonly text: string;
}

/** A row with one of its tests. */
export interface Shown {
  readonly field: string;
  readonly path: string;
  /** With an ellipsis for each value of a template; undefined if no test follows the comment. */
  readonly title: string | undefined;
}

const TAGS = /^[ \t]*(?:\/\/|#) Conformance: (.+)\n/;
/** `test(` or another result of requires(), and the title, which may follow a macro. */
const TEST =
  /^\s*\w+(?:\.serial)?\(\s*(?:\w+,\s*)?(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/;

/** In the order of the sources. */
export function shownBy(sources: readonly TestSource[]): readonly Shown[] {
  return sources.flatMap(({ path, text }) =>
    path.endsWith('.test.ts') ? shownByTests(path, text) : shownByCase(path, text),
  );
}

/** Duplicate rows, rows without a rule, implemented rows without a test, and unknown tags. */
export function conformanceFaults(sections: readonly Section[], shown: readonly Shown[]): readonly string[] {
  const faults: string[] = [];
  const fields = new Set<string>();
  for (const { field, rule, notYet } of sections.flatMap(({ rows }) => rows)) {
    if (fields.has(field)) faults.push(`${field}: There are two rows for it`);
    fields.add(field);
    if (rule.length === 0) faults.push(`${field}: It has no rule`);
    if (notYet === undefined && !shown.some((each) => each.field === field))
      faults.push(`${field}: No test shows it`);
  }
  for (const { field, path, title } of shown) {
    if (!fields.has(field)) faults.push(`test/${path}: There is no row "${field}"`);
    if (title === undefined) faults.push(`test/${path}: No test follows "Conformance: ${field}"`);
  }
  return faults;
}

function shownByTests(path: string, text: string): readonly Shown[] {
  const shown: Shown[] = [];
  let rest = text;
  for (;;) {
    const begin = rest.search(new RegExp(TAGS, 'm'));
    if (begin < 0) return shown;
    const { fields, after } = tagsOf(rest.slice(begin));
    rest = after;
    const [, single, double, template] = TEST.exec(rest) ?? [];
    const title = (single ?? double)?.replaceAll(/\\(.)/g, '$1') ?? template?.replaceAll(/\$\{[^}]*\}/g, '…');
    shown.push(...fields.map((field) => ({ field, path, title })));
  }
}

function shownByCase(path: string, text: string): readonly Shown[] {
  const title = path
    .replace(/^.*\//, '')
    .replace(/\.txt$/, '')
    .replaceAll('-', ' ');
  return tagsOf(text).fields.map((field) => ({ field, path, title }));
}

/** The tags at the beginning of a text, and the rest. */
function tagsOf(text: string): { readonly fields: readonly string[]; readonly after: string } {
  const fields: string[] = [];
  let after = text;
  for (let tag = TAGS.exec(after); tag !== null; tag = TAGS.exec(after)) {
    fields.push(tag[1] ?? '');
    after = after.slice(tag[0].length);
  }
  return { fields, after };
}
