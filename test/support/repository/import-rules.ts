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
const BELOW_LOOP = ['settings', 'middle', 'addresses', 'objects', ...ROOMS, 'host', 'base', 'model'];

/** From the top down; a file is in the first place that matches. Rooms never import one another. */
const PLACES: readonly Place[] = [
  { name: 'main', files: /^agent\/(main\.ts$|wiring\/)/, imports: ['cli', 'loop', ...BELOW_LOOP] },
  { name: 'cli', files: /^agent\/cli\//, imports: ['loop', ...BELOW_LOOP] },
  // What brings the rooms together: the loop that changes them, and what looks at them.
  {
    name: 'loop',
    files:
      /^agent\/(loop|changes)\.ts$|^agent\/(sources|answer|state|address-keeper|report)\/|^agent\/settings\/current-settings\.ts$/,
    imports: BELOW_LOOP,
  },
  {
    name: 'settings',
    files: /^agent\/settings\//,
    imports: ['middle', 'addresses', 'host', 'base', 'model'],
  },
  { name: 'model', files: /^agent\/model\//, imports: [] },
  { name: 'base', files: /^agent\/base\//, imports: ['model'] },
  { name: 'host', files: /^agent\/host\//, imports: ['base', 'model'] },
  // What objects are, and the forms of those that are our own, which the settings and the allocation know, too.
  {
    name: 'objects',
    files: /^agent\/kubernetes\/(objects|object-names|address-(pool|claim))\.ts$/,
    imports: ['base', 'model'],
  },
  { name: 'kubernetes', files: /^agent\/kubernetes\//, imports: ['objects', 'host', 'base', 'model'] },
  { name: 'haproxy', files: /^agent\/haproxy\//, imports: ['host', 'base', 'model'] },
  { name: 'nftables', files: /^agent\/nftables\//, imports: ['host', 'base', 'model'] },
  { name: 'keepalived', files: /^agent\/vips\//, imports: ['host', 'base', 'model'] },
  { name: 'pair', files: /^agent\/pair\//, imports: ['host', 'base', 'model'] },
  { name: 'health', files: /^health\//, imports: ['host', 'base', 'model'] },
  { name: 'addresses', files: /^agent\/addresses\//, imports: ['objects', 'base', 'model'] },
  { name: 'middle', files: /^agent\/translate\//, imports: ['objects', 'base', 'model'] },
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
