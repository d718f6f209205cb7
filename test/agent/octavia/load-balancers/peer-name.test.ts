import test from 'ava';
import { peerName } from '../../../../agent/octavia/load-balancers/peer-name.ts';

test('peerName() is the name that Octavia writes', (t) => {
  t.is(peerName('amp'), 'ZfWexrHs1hcNUERHQEPMqVYKgHE');
});
