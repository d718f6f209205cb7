import test from 'ava';
import { egressChange, egressText, mappedIn } from '../../../../agent/nftables/egress/egress-text.ts';

const NO_VIPS = { gone: [], fresh: [] };

test('egressChange() replaces the VIP of a pod, and adds and deletes pods, in one line', (t) => {
  const changes = [
    { pod: '10.0.0.1', before: '192.0.2.1', after: '192.0.2.2' },
    { pod: 'fd00::1', before: undefined, after: '2001:db8::1' },
    { pod: '10.0.0.3', before: '192.0.2.1', after: undefined },
  ];
  t.deepEqual(egressChange('egress', changes, NO_VIPS).split('; '), [
    'delete element ip egress pods { 10.0.0.1 }',
    'delete element ip egress known { 10.0.0.1 }',
    'delete element ip egress pods { 10.0.0.3 }',
    'delete element ip egress known { 10.0.0.3 }',
    'add element ip egress pods { 10.0.0.1 : 192.0.2.2 }',
    'add element ip egress known { 10.0.0.1 }',
    'add element ip6 egress pods { fd00::1 : 2001:db8::1 }',
    'add element ip6 egress known { fd00::1 }',
  ]);
  t.is(egressChange('egress', [], NO_VIPS), '');
});

test('egressChange() takes nothing but canonical addresses', (t) => {
  for (const word of ['10.0.0.1; flush ruleset', '10.0.0.01', '10.0.0.0/8', '', '1.2.3.4 }'])
    for (const change of [
      { pod: word, before: undefined, after: '192.0.2.1' },
      { pod: '10.0.0.1', before: undefined, after: word },
    ])
      t.throws(() => egressChange('egress', [change], NO_VIPS), { code: 'RUNTIME_TOKEN' }, word);
});

test('mappedIn() finds the pods of each Service that egressText() has written', (t) => {
  const mapping = { pod: '10.0.0.1', vip: '192.0.2.1', owner: 'shop/web', target: '' };
  const rules = {
    table: 'egress',
    generation: '0'.repeat(16),
    vips: ['192.0.2.1'],
    counts: new Map(),
    countsTraffic: true,
    knowsSockets: true,
  };
  const text = [...egressText({ ...rules, mappings: [mapping, { ...mapping, pod: '10.0.0.2' }] })].join('');
  t.deepEqual([...mappedIn(text)], [['shop/web', new Set(['10.0.0.1', '10.0.0.2'])]]);
  t.throws(() => [...egressText({ ...rules, mappings: [{ ...mapping, owner: 'shop/we\nb' }] })], {
    code: 'RUNTIME_TOKEN',
  });
});
