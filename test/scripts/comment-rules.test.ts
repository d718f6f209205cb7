import test from 'ava';
import { commentFaults } from '../../scripts/comment-rules.ts';

const faultsIn = (...lines: readonly string[]) => commentFaults('agent/a.ts', lines.join('\n'));

test('A doc comment begins with its subject', (t) => {
  t.deepEqual(faultsIn('/** Of a pool. */', 'const a = 1;'), [
    'agent/a.ts:1: "Of a pool.": begin with the subject, not with "Of", "Those" or "That"',
  ]);
  t.is(faultsIn('/**', ' * Those that are gone,', ' * and more.', ' */').length, 1);
  t.deepEqual(faultsIn('/** The ports of a pool. */', '/**', ' * One,', ' * those.', ' */'), []);
});

test('The comment of a map names its key', (t) => {
  t.deepEqual(faultsIn('  /** The pools. */', '  readonly #pools = new Map<string, Pool>();'), [
    'agent/a.ts:2: "The pools.": name the key of the map',
  ]);
  t.is(faultsIn('  /** The pools. */', '  readonly pools?: ReadonlyMap<string, Pool>;').length, 1);
  t.deepEqual(faultsIn('  /** Key: a pool. */', '  readonly #pools = new Map<string, Pool>();'), []);
  t.deepEqual(
    faultsIn('  /** Pools by name,', '   * sorted. */', 'const pools = new Map<string, Pool>();'),
    [],
  );
  t.deepEqual(faultsIn('const pools = new Map<string, Pool>();'), []);
});

test('A pronoun does not cross a sentence', (t) => {
  t.deepEqual(faultsIn('// Pools are left out. They are reported.'), [
    'agent/a.ts:1: ". They are": repeat the noun',
  ]);
  t.deepEqual(faultsIn('// Pools are left out. These pools are reported.', "log('One. They are two.');"), []);
});
