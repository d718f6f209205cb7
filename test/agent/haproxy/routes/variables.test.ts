// The variables of the rules of routes: what the templates use, and what README.md of the room says of them.

import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { MAPS } from '../../../../agent/haproxy/routes/maps.ts';

const ROOT = new URL('../../../../', import.meta.url);
const FOLDER = new URL('templates/haproxy/', ROOT);
/** Variables of the socket for mirrors. */
const OTHERS: readonly string[] = ['txn.pool'];
const NAME = { mustache: /\b(?:txn|sess)\.[a-z_0-9]+\b/g, lua: /(?<=')(?:txn|sess)\.[a-z_0-9]+(?=')/g };

function textOf(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

function templates(): readonly (readonly [file: string, text: string])[] {
  return readdirSync(FOLDER).map((file) => [file, readFileSync(new URL(file, FOLDER), 'utf8')]);
}

test('Each variable in the templates is in the table of README.md, or named as a map, and no other', (t) => {
  const used = templates().flatMap(
    ([file, text]) => text.match(file.endsWith('.lua') ? NAME.lua : NAME.mustache) ?? [],
  );
  const explained = [...textOf('agent/haproxy/routes/README.md').matchAll(/^\| `((?:txn|sess)\.\S+)` \|/gm)];
  const rows = MAPS.map((name) => `txn.${name.replaceAll('-', '_')}`);
  t.deepEqual(
    [...new Set(used)].filter((name) => ![...OTHERS, ...rows].includes(name)).sort(),
    explained
      .map(([, name]) => name ?? '')
      .filter((name) => !rows.includes(name))
      .sort(),
  );
});

test('Each map of routes is in the table of README.md, and no other', (t) => {
  const [, rows = ''] = textOf('agent/haproxy/routes/README.md').split(/^## Rows$/m);
  const [table = ''] = rows.split(/^## /m);
  const names = [...table.matchAll(/^\| (`[a-z]\S.*?`) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/[a-z-]+/g) ?? [],
  );
  t.deepEqual(names.sort(), [...MAPS].sort());
});

test('Lua and the connection log read no variable that the rules do not set', (t) => {
  const rules = templates().map(([, text]) => text);
  const set = rules.flatMap((text) => [
    ...text.matchAll(/set-var(?:-fmt)?\(txn\.([a-z_0-9]+)\)|set_var\('txn\.([a-z_]+)'/g),
  ]);
  const names = new Set(set.map(([, one, other]) => one ?? other));
  const read = [
    ...templates()
      .filter(([file]) => file.endsWith('.lua'))
      .flatMap(([, text]) => [...text.matchAll(/get_var\('txn\.([a-z_]+)'\)/g)]),
    ...textOf('agent/haproxy/config/log-format.ts').matchAll(/var\(txn\.([a-z_]+)\)/g),
  ].map(([, name]) => name);
  t.true(read.length > 10);
  t.deepEqual(
    read.filter((name) => !names.has(name)),
    [],
  );
});
