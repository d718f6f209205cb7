import test from 'ava';
import type { Arguments } from '../../../agent/cli/command.ts';
import { locationFrom } from '../../../agent/cli/named-location.ts';

const of = (text: string, namespace?: string) =>
  locationFrom({ positionals: [text], own: { namespace } } as unknown as Arguments);

for (const [text, place] of [
  ['192.0.2.10', { address: '192.0.2.10' }],
  ['192.0.2.10:443', { address: '192.0.2.10', port: '443' }],
  ['2001:DB8::1', { address: '2001:db8::1' }],
  ['[2001:db8::1]:443', { address: '2001:db8::1', port: '443' }],
  ['Pod/shop/web-1', { target: 'Pod/web-1', namespace: 'shop' }],
  ['pod/web-1', { target: 'Pod/web-1', namespace: 'default' }],
  ['Node/worker-1', { target: 'Node/worker-1' }],
  ['default/web', undefined],
  ['web', undefined],
  // A Service of a namespace that has this name.
  ['node/web', undefined],
  ['HTTPRoute/shop/api', undefined],
  ['Pod/a/b/c', undefined],
  ['192.0.2.300', undefined],
] as const)
  test(`locationFrom() reads ${text}`, (t) => t.deepEqual(of(text), place));

test('locationFrom() takes the namespace of a pod from -n', (t) => {
  t.deepEqual(of('Pod/web-1', 'shop'), { target: 'Pod/web-1', namespace: 'shop' });
});
