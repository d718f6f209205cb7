import test from 'ava';
import { standIns } from '../../../../agent/cli/plan/stand-ins.ts';

/** A state with these owners, each with its address or none. */
function state(owners: Readonly<Record<string, string>>) {
  const all = Object.entries(owners).map(([key, address]) => {
    return [key, { key, vips: address === '' ? [] : [{ address }] }] as const;
  });
  return { loadBalancers: new Map(all) } as never;
}

test('An owner keeps its address over the change, and one that goes gives its own to one that comes', (t) => {
  const [before, after] = standIns(
    state({ 'ingress:-/edge': '', 'gateway:a/stays': '', 'default/web': '' }),
    state({ 'gateway:a/new': '', 'gateway:a/stays': '', 'gateway:a/named': '192.0.2.1' }),
  );
  t.deepEqual(Object.fromEntries(before), {
    'gateway:a/stays': '198.18.0.1',
    'ingress:-/edge': '198.18.0.2',
  });
  t.deepEqual(Object.fromEntries(after), { 'gateway:a/stays': '198.18.0.1', 'gateway:a/new': '198.18.0.2' });
});

test('An address that a load balancer has is given to no other', (t) => {
  const [before] = standIns(state({ 'gateway:a/edge': '' }), state({ 'default/web': '198.18.0.1' }));
  t.deepEqual([...before.values()], ['198.18.0.2']);
});
