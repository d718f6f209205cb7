import test from 'ava';
import { expressionOf, isMatch } from '../../../../agent/base/expression/expression.ts';
import type { IngressPath } from '../../../../agent/kubernetes/ingress/ingress-objects.ts';
import { lettersBehind, plainMatch } from '../../../../agent/translate/ingress/ingress-paths.ts';

const behind = (path: string, type: IngressPath['type'] = 'ImplementationSpecific') => {
  const backend = { kind: 'service', name: 'web', port: 80, portName: '' } as const;
  return lettersBehind({ path, type, backend }, plainMatch(path, type))?.path;
};

test('lettersBehind() matches what begins with the letters of a path, and nothing else', (t) => {
  for (const [path, asked, isMet] of [
    ['/admin', '/admin.php', true],
    ['/admin', '/administrator/x', true],
    ['/admin', '/admin', false],
    ['/admin', '/admin/x', false],
    ['/admin', '/x/admin2', false],
    ['/v1.0', '/v1x0a', false],
    ['/v1.0', '/v1.0a', true],
    ['/a(b', '/a(bc', true],
    ['/é', '/%C3%A9s', true],
  ] as const) {
    const found = behind(path);
    t.is(found?.length, path.length);
    t.is(isMatch(found?.value ?? '', 'start', asked), isMet, `${path} and ${asked}`);
  }
});

test('lettersBehind() has an expression that can be read for every path, a wider one for a very long one', (t) => {
  for (const path of [
    `/${'a'.repeat(1_000)}`,
    `/${'é'.repeat(500)}`,
    `/${'.'.repeat(900)}`,
    '/\ud800x',
    '/a%2',
  ]) {
    const value = behind(path)?.value ?? '';
    t.is(typeof expressionOf(value, 'start'), 'object', path.slice(0, 10));
  }
  t.true(isMatch(behind(`/${'a'.repeat(1_000)}`)?.value ?? '', 'start', `/${'a'.repeat(1_001)}`));
});

test('lettersBehind() has nothing for other types, for the root and for a path with a slash at its end', (t) => {
  t.is(behind('/a', 'Prefix'), undefined);
  t.is(behind('/a', 'Exact'), undefined);
  for (const path of ['/', '', '/a/']) t.is(behind(path), undefined, path);
});
