import test from 'ava';
import { corsOf } from '../../../../agent/translate/ingress/ingress-cors.ts';

const NAMED = ['https://a.example.org', 'https://*.example.org'];

for (const [title, options, origins, credentials, isTold] of [
  ['without origins', {}, ['*'], false, false],
  ['with *', { 'cors-allow-origin': ['*'] }, ['*'], false, false],
  ['with * among others', { 'cors-allow-origin': [...NAMED, '*'] }, [...NAMED, '*'], false, false],
  ['that asks for credentials for all', { 'cors-allow-credentials': true }, ['*'], false, true],
  ['with named origins', { 'cors-allow-origin': NAMED }, NAMED, true, false],
  [
    'without credentials for named origins',
    { 'cors-allow-origin': NAMED, 'cors-allow-credentials': false },
    NAMED,
    false,
    false,
  ],
] as const)
  test(`enable-cors ${title} gives credentials to named origins only`, (t) => {
    const { cors, fault } = corsOf({ 'enable-cors': true, ...options });
    t.deepEqual(cors?.origins, [...origins]);
    t.is(cors?.credentials, credentials);
    t.true(cors?.oneLabel, 'A wildcard is one label');
    t.is(fault !== '', isTold);
  });

test('Without enable-cors no other site may read', (t) => {
  t.is(corsOf({ 'cors-allow-origin': [...NAMED] }).cors, undefined);
});
