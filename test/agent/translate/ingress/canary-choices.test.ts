import test from 'ava';
import { isMatch } from '../../../../agent/base/expression/expression.ts';
import { canaryChoices } from '../../../../agent/translate/ingress/canary-choices.ts';
import { readIngressOptions } from '../../../../agent/translate/ingress/nginx-annotations.ts';

const read = (given: Readonly<Record<string, string>>) =>
  readIngressOptions(
    Object.fromEntries(
      Object.entries(given).map(([name, value]) => [`nginx.ingress.kubernetes.io/canary-by-${name}`, value]),
    ),
  );

/** True, false, or undefined if only the weight decides. */
function taken(given: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) {
  const { options, faults } = read(given);
  if (faults.length > 0) throw new Error(faults.join());
  return canaryChoices(options).find((choice) =>
    choice.headers.every(({ name, kind, value }) => {
      const text = headers[name];
      return text !== undefined && (kind === 'exact' ? text === value : isMatch(value, 'whole', text));
    }),
  )?.takes;
}

const HEADER = { header: 'X-Canary' };
const COOKIE = { cookie: 'next' };
for (const [given, headers, expected] of [
  [HEADER, { 'x-canary': 'always' }, true],
  [HEADER, { 'x-canary': 'never' }, false],
  [HEADER, { 'x-canary': 'other' }, undefined],
  [{ ...HEADER, 'header-value': 'me' }, { 'x-canary': 'me' }, true],
  [{ ...HEADER, 'header-value': 'me' }, { 'x-canary': 'never' }, undefined],
  [{ ...HEADER, 'header-pattern': '^v[0-9]+$|beta' }, { 'x-canary': 'v12' }, true],
  [{ ...HEADER, 'header-pattern': '^v[0-9]+$|beta' }, { 'x-canary': 'my-beta-1' }, true],
  [{ ...HEADER, 'header-pattern': '^v[0-9]+$' }, { 'x-canary': 'v12x' }, undefined],
  [{ ...HEADER, 'header-value': 'me', 'header-pattern': '.*' }, { 'x-canary': 'you' }, undefined],
  [COOKIE, { cookie: 'next=always' }, true],
  [COOKIE, { cookie: 'a=b; next=always; c=d' }, true],
  [COOKIE, { cookie: 'a=b; next=never' }, false],
  [COOKIE, { cookie: 'next=alwaysnot' }, undefined],
  [COOKIE, { cookie: 'xnext=always' }, undefined],
  [COOKIE, { cookie: 'a=next=always' }, undefined],
  [{ cookie: 'a.b' }, { cookie: 'axb=always' }, undefined],
  [{ ...HEADER, ...COOKIE }, { 'x-canary': 'never', cookie: 'next=always' }, false],
  [{ ...HEADER, ...COOKIE }, { cookie: 'next=always' }, true],
] as const satisfies readonly (readonly [
  Readonly<Record<string, string>>,
  Readonly<Record<string, string>>,
  boolean | undefined,
])[])
  test(`A canary by ${JSON.stringify(given)} takes ${JSON.stringify(headers)}: ${expected}`, (t) => {
    t.is(taken(given, headers), expected);
  });

test('A pattern that is no expression is a fault', (t) => {
  t.is(read({ ...HEADER, 'header-pattern': '(' }).faults.length, 1);
  t.is(read({ cookie: 'a;b' }).faults.length, 1);
});
