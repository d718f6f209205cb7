// The page about ingress-nginx says of each annotation that it documents what happens here, and the agent does that.

import { readFileSync } from 'node:fs';
import test from 'ava';
import { judgeNames } from '../../agent/protection/judge-names.ts';
import { WITHOUT_EFFECT } from '../../agent/protection/nginx-names.ts';
import { ANNOTATIONS_THAT_PROTECT } from '../../agent/protection/protections.ts';
import { INGRESS_ANNOTATIONS } from '../../agent/translate/ingress/nginx-annotations.ts';
import { DOCUMENTED } from './ingress-nginx-annotations.ts';

const PAGE = readFileSync(new URL('../../docs/ingress-annotations.md', import.meta.url), 'utf8');
const TAKEN = new Set(Object.keys(INGRESS_ANNOTATIONS));
const CLOSING = new Map(
  ANNOTATIONS_THAT_PROTECT.filter(({ kinds }) => kinds.length === 0).map((each) => [each.name, each]),
);
const IGNORED = WITHOUT_EFFECT.flatMap(([, ...names]) => names);

test('Each annotation that ingress-nginx documents is taken, closes or has no effect, and only one of them', (t) => {
  t.is(DOCUMENTED.length, 138);
  t.is(new Set(DOCUMENTED).size, DOCUMENTED.length);
  for (const name of DOCUMENTED) {
    const places = [TAKEN.has(name), CLOSING.has(name), IGNORED.includes(name)].filter(Boolean);
    t.is(places.length, 1, name);
  }
});

test('No annotation without an effect is one that the agent takes', (t) => {
  t.is(new Set(IGNORED).size, IGNORED.length);
  t.deepEqual(
    IGNORED.filter((name) => TAKEN.has(name) || ANNOTATIONS_THAT_PROTECT.some((each) => each.name === name)),
    [],
  );
});

for (const name of DOCUMENTED)
  test(`The page has "${name}"`, (t) => {
    const rows = PAGE.split('\n').filter(
      (line) => line.startsWith('| `') && line.split(' | ')[0]?.includes(`\`${name}\``),
    );
    t.is(rows.length, 1);
  });

for (const name of DOCUMENTED.filter((each) => !TAKEN.has(each)))
  test(`An Ingress with "${name}" ${CLOSING.has(name) ? 'closes' : 'is served without it'}`, (t) => {
    const full = `nginx.ingress.kubernetes.io/${name}`;
    const value = name.includes('cookie-path') ? '/; Secure' : name.includes('snippet') ? 'deny all;' : '1';
    const { closedBy, ignored } = judgeNames('Ingress', { [full]: value }, TAKEN);
    t.deepEqual([closedBy, ignored], CLOSING.has(name) ? [[full], []] : [[], [full]]);
  });
