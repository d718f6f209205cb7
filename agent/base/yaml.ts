// Reads YAML 1.2 as Kubernetes and our settings use it: several documents, unique keys, anchors within reason,
// no tags of anyone's own. What is plain is read many times as fast (plain-yaml.ts) as by the package yaml, which reads
// the rest; no other file imports that. Pure: faults are values.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { messageOf } from './errors.ts';
import { isBlankYaml, parsePlainYaml } from './plain-yaml.ts';

export interface YamlDocuments {
  /** In order; empty documents give null. Only those before the first error are of use. */
  readonly documents: readonly { readonly value: unknown; readonly line: number }[];
  readonly errors: readonly YamlError[];
}

/** Lines and columns count from 1. */
export interface YamlError {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** More aliases than this, or more copies by aliases of aliases, is an attack (the "billion laughs"). */
const MOST_ALIASES = 100;
/** A broken text can have one per character. */
const MOST_ERRORS = 10;

/** Loaded by the first text that needs it: it takes 4 MB and 20 ms, and many an agent never meets such a text. */
const yamlPackage = (): typeof Yaml => createRequire(import.meta.url)('yaml');

/** `text` as such or in UTF-8. */
export function parseYamlDocuments(text: string | Buffer): YamlDocuments {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const plain = parsePlainYaml(bytes);
  if (plain !== undefined) return { documents: [plain], errors: [] };
  return isBlankYaml(bytes) ? { documents: [], errors: [] } : parseFully(text.toString());
}

/** The same by the package alone; exported for the test that the two never differ. */
export function parseFully(text: string): YamlDocuments {
  const documents: { value: unknown; line: number }[] = [];
  const errors: YamlError[] = [];
  const { LineCounter, parseAllDocuments } = yamlPackage();
  const lines = new LineCounter();
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  try {
    const parsed = parseAllDocuments(text, {
      lineCounter: lines,
      prettyErrors: false,
      strict: true,
      uniqueKeys: true,
      stringKeys: true,
      merge: true,
      resolveKnownTags: false,
      logLevel: 'silent',
    });
    for (const document of parsed) {
      const { line } = place(document.contents?.range?.[0] ?? document.range[0]);
      // An unknown tag is only a warning to the package; to us it is a value that we would read wrongly.
      for (const fault of [...document.errors, ...document.warnings]) {
        errors.push({ ...place(fault.pos[0]), message: fault.message.replaceAll(/\s+/g, ' ') });
      }
      if (errors.length > 0) break;
      try {
        const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
        if (text.includes('*') && holdsItself(value, []))
          throw new Error('An alias stands inside its anchor');
        documents.push({ value, line });
      } catch (error) {
        errors.push({ line, column: 1, message: messageOf(error) });
        break;
      }
    }
  } catch (error) {
    // Thousands of levels of nesting overflow the stack.
    errors.push({ line: 1, column: 1, message: messageOf(error) });
  }
  return { documents, errors: errors.slice(0, MOST_ERRORS) };
}

/** A value that holds itself cannot be walked or written by those who get it. */
function holdsItself(value: unknown, above: readonly unknown[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (above.includes(value)) return true;
  const here = [...above, value];
  return Object.values(value).some((each) => holdsItself(each, here));
}
