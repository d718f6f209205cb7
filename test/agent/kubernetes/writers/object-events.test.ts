import test from 'ava';
import { objectEvents } from '../../../../agent/kubernetes/writers/object-events.ts';
import type { GatewayStatus, ObjectStatus } from '../../../../agent/model/object-status.ts';

const subject = { namespace: 'default', name: 'edge', uid: 'u', generation: 1 };

function gateway(addresses: readonly string[], isServed: boolean): GatewayStatus {
  const status = isServed ? 'True' : 'False';
  const conditions = [{ type: 'Programmed', status, reason: 'Programmed', message: '' } as const];
  const rest = { programmedBy: [], listeners: [], attachedListenerSets: 0 };
  return { kind: 'Gateway', ...subject, conditions, addresses, ...rest };
}

function notes(before: unknown, after: ObjectStatus): readonly string[] {
  return objectEvents({ status: JSON.stringify(before) }, after).map(
    ({ type, reason, note }) => `${type} ${reason}: ${note}`,
  );
}

const SERVED = {
  addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
  conditions: [{ type: 'Programmed', status: 'True' }],
};

test('A Gateway gets an Event for its addresses and one when it is served, and none for what it had', (t) => {
  t.deepEqual(notes({}, gateway(['192.0.2.1', '2001:db8::1'], true)), [
    'Normal Allocated: The Gateway has the addresses 192.0.2.1, 2001:db8::1',
    'Normal Programmed: The Gateway is served',
  ]);
  t.deepEqual(notes(SERVED, gateway(['192.0.2.1'], true)), []);
  t.deepEqual(notes(SERVED, gateway([], false)), [
    'Normal Released: The Gateway no longer has the addresses 192.0.2.1',
  ]);
  t.deepEqual(notes({ addresses: 7, conditions: ['x'] }, gateway([], false)), []);
});

test('The Event of a Gateway that is served names its listeners that are not', (t) => {
  const listener = (name: string, status: 'True' | 'False') =>
    ({ name, conditions: [{ type: 'Programmed', status, reason: '', message: '' }] }) as never;
  const served = gateway([], true);
  const note = (...listeners: readonly never[]) => notes({}, { ...served, listeners });
  t.deepEqual(note(listener('http', 'True'), listener('https', 'False')), [
    'Normal Programmed: The Gateway is served, but not its listener "https"',
  ]);
  const many = Array.from({ length: 7 }, (_, at) => listener(`l${at}`, 'False'));
  t.regex(note(...many)[0] ?? '', /, but not its listeners "l0", "l1", "l2", "l3", "l4" and 2 more$/);
});

test('A route gets no Event for its status', (t) => {
  t.deepEqual(notes({}, { kind: 'HTTPRoute', ...subject, parents: [] }), []);
});
