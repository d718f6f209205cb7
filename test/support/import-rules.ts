// Who may import what, and a checker of it. Pure: takes the files as path and text, gives the faults as lines.

import { dirname, join, normalize } from 'node:path';

export interface SourceFile {
  /** From the root of the repository: `agent/loop.ts`. */
  readonly path: string;
  readonly text: string;
}

interface Place {
  readonly name: string;
  readonly files: RegExp;
  /** Places whose files its own may import, besides one another. */
  readonly imports: readonly string[];
}

const ROOMS = ['kubernetes', 'haproxy', 'nftables', 'keepalived', 'pair', 'health'];
const BELOW_LOOP = ['settings', 'middle', 'addresses', 'objects', ...ROOMS, 'base', 'model'];

/** From the top down; a file is in the first place that matches. Rooms never import one another. */
const PLACES: readonly Place[] = [
  { name: 'main', files: /^agent\/(main|parts)\.ts$/, imports: ['cli', 'loop', ...BELOW_LOOP] },
  { name: 'cli', files: /^agent\/cli\//, imports: ['loop', ...BELOW_LOOP] },
  // What brings the rooms together: the loop that changes them, and what looks at them.
  {
    name: 'loop',
    files:
      /^agent\/(loop|sources|first-state|current-settings|answering|api|pairing|stand-alone|address-keeper)\.ts$|^agent\/(address-keeper|report)\//,
    imports: BELOW_LOOP,
  },
  { name: 'settings', files: /^agent\/settings(\.ts|\/)/, imports: ['middle', 'addresses', 'base', 'model'] },
  { name: 'model', files: /^agent\/model\.ts$/, imports: [] },
  { name: 'base', files: /^agent\/base\//, imports: ['model'] },
  // What objects are, and the forms of those that are our own, which the settings and the allocation know, too.
  {
    name: 'objects',
    files: /^agent\/kubernetes\/(objects|object-names|address-(pool|claim|group))\.ts$/,
    imports: ['base', 'model'],
  },
  { name: 'kubernetes', files: /^agent\/kubernetes\//, imports: ['objects', 'base', 'model'] },
  { name: 'haproxy', files: /^agent\/haproxy\//, imports: ['base', 'model'] },
  { name: 'nftables', files: /^agent\/nftables\//, imports: ['base', 'model'] },
  { name: 'keepalived', files: /^agent\/keepalived\//, imports: ['base', 'model'] },
  { name: 'pair', files: /^agent\/pair\//, imports: ['base', 'model'] },
  { name: 'health', files: /^health\//, imports: ['base', 'model'] },
  { name: 'addresses', files: /^agent\/addresses(\.ts|\/)/, imports: ['objects', 'base', 'model'] },
  // Translation and all else that is pure: whatever has no place of its own has the least rights.
  {
    name: 'middle',
    files: /^agent\/((translate|annotations)\/)?[^/]+\.ts$/,
    imports: ['objects', 'base', 'model'],
  },
];

const NAMES_THAT_SAY_NOTHING = /(^|\/)(utils?|helpers?|types|index|common|misc)\.ts$/;

/** Every import that goes against the table, every cycle, every package with two doors, every empty name. */
export function importFaults(files: readonly SourceFile[]): string[] {
  const faults: string[] = [];
  const graph = new Map<string, string[]>();
  const doors = new Map<string, string[]>();
  for (const { path, text } of files) {
    if (NAMES_THAT_SAY_NOTHING.test(path)) faults.push(`${path}: The name does not say what the file is`);
    const from = placeOf(path);
    if (from === undefined) faults.push(`${path}: The file has no place in the table`);
    const targets: string[] = [];
    for (const specifier of importsOf(text)) {
      if (specifier.startsWith('node:')) continue;
      if (!specifier.startsWith('.')) {
        const name = packageOf(specifier);
        doors.set(name, [...new Set([...(doors.get(name) ?? []), path])]);
        if (from?.name === 'model') faults.push(`${path}: The model imports nothing, but it imports ${name}`);
        continue;
      }
      const target = normalize(join(dirname(path), specifier));
      targets.push(target);
      const to = placeOf(target);
      if (from === undefined || to === undefined || from === to || from.imports.includes(to.name)) continue;
      faults.push(`${path}: ${from.name} must not import ${to.name}, but it imports ${target}`);
    }
    graph.set(path, targets);
  }
  for (const [name, paths] of doors) {
    if (paths.length > 1)
      faults.push(`${name}: A package is imported in one file only, but ${paths.sort().join(' and ')} do`);
  }
  return [...faults, ...cyclesOf(graph)];
}

/** What a file imports or exports on, types as well; Biome's format keeps such statements regular. */
export function importsOf(text: string): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const statements =
    /^\s*(?:import|export)\b(?:[\w\s{},*$]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;
  return [...code.matchAll(statements)].map(([, fixed, dynamic]) => fixed ?? dynamic ?? '');
}

function placeOf(path: string): Place | undefined {
  return PLACES.find(({ files }) => files.test(path));
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]) => {
    const at = above.indexOf(path);
    if (at >= 0) cycles.push(`${path}: Imports go round: ${[...above.slice(at), path].join(' → ')}`);
    if (at >= 0 || done.has(path)) return;
    for (const target of graph.get(path) ?? []) visit(target, [...above, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}
