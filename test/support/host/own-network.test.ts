import test from 'ava';
import { ownNetwork } from './own-network.ts';

test('ownNetwork() returns no network of a running test, and reuses free networks', async (t) => {
  const drawn = ['127.15.0', '127.15.0', '127.15.1', '127.15.0'];
  const random = (): string => drawn.shift() ?? '';
  const over: (() => unknown)[] = [];
  const other = { teardown: (end: () => unknown) => over.push(end) };
  t.is(await ownNetwork(other, random), '127.15.0');
  t.is(await ownNetwork(t, random), '127.15.1');
  for (const end of over) end();
  t.is(await ownNetwork(t, random), '127.15.0');
});
