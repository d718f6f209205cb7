import test from 'ava';
import { isRefused, whyNotEstablished } from '../../../../agent/vips/bird/session-words.ts';
import { bgpPeer } from '../../../support/bgp/bgp-values.ts';

const SOON = { signature: '', isLate: false, hasBfd: false } as const;

const why = test.macro({
  exec: (t, lastError: string, pattern: RegExp) => {
    t.regex(whyNotEstablished(bgpPeer(), { state: 'Idle', lastError }, 65_001, SOON), pattern);
  },
  title: (_, lastError) => `whyNotEstablished() says in words: ${lastError || 'no answer'}`,
});

test(why, 'Received: Bad peer AS', /^it expects another ASN of this host than 65001/);
test(why, 'BGP Error: Bad peer AS', /^its ASN is another than 65000/);
test(why, 'Received: Maximum number of prefixes reached', /^it takes fewer routes/);
test(why, 'Error: BFD session down', /^BFD is down/);
test(why, 'Socket: Connection refused', /^it refuses connections to port 179/);
test(why, 'Error: Something new', /^error: Something new$/);
test(why, '', /^it does not answer: .* or it asks for a password$/);

test('whyNotEstablished() names the password if the kernel drops signed segments', (t) => {
  const facts = { state: 'Active', lastError: 'BGP Error: Bad peer AS' };
  const withPassword = bgpPeer({ passwordFile: '/p' });
  t.regex(
    whyNotEstablished(withPassword, facts, 65_001, { ...SOON, signature: 'wrong' }),
    /^it has another password: compare "passwordFile" \("\/p"\)/,
  );
  t.regex(
    whyNotEstablished(withPassword, facts, 65_001, { ...SOON, signature: 'missing' }),
    /^it has no password for this host/,
  );
  t.regex(
    whyNotEstablished(bgpPeer(), facts, 65_001, { ...SOON, signature: 'unexpected' }),
    /^it has a password for this host/,
  );
  t.is(
    whyNotEstablished(withPassword, { state: 'Established', lastError: '' }, 65_001, {
      ...SOON,
      signature: 'wrong',
    }),
    '',
  );
});

test('whyNotEstablished() names the password if a router is silent since it has reset the session', (t) => {
  const facts = { state: 'Connect', lastError: 'Received: Administrative reset' };
  const peer = bgpPeer({ passwordFile: '/p' });
  t.is(whyNotEstablished(peer, facts, 65_001, SOON), 'its operator has reset the session');
  t.regex(
    whyNotEstablished(peer, facts, 65_001, { ...SOON, isLate: true }),
    /^its operator has reset the session, and now it does not answer: .* or its password is another$/,
  );
});

test('whyNotEstablished() names TTL security if a router with it is silent', (t) => {
  const facts = { state: 'Connect', lastError: '' };
  t.regex(whyNotEstablished(bgpPeer({ ttlSecurity: true }), facts, 65_001, SOON), /it has no TTL security/);
  t.notRegex(whyNotEstablished(bgpPeer(), facts, 65_001, SOON), /TTL/);
});

test('whyNotEstablished() does not repeat an old error of a session that BIRD cannot begin, or whose BFD is up again', (t) => {
  const late = { ...SOON, isLate: true };
  const idle = { state: 'Idle', lastError: '' };
  t.regex(whyNotEstablished(bgpPeer(), idle, 65_001, late), /^no network of this host has its address/);
  t.regex(whyNotEstablished(bgpPeer({ multihop: 2 }), idle, 65_001, late), /^it does not answer/);
  t.regex(
    whyNotEstablished(bgpPeer({ interface: 'eth1' }), idle, 65_001, late),
    /^the interface eth1 of this host is missing/,
  );
  const facts = { state: 'OpenSent', lastError: 'Error: BFD session down' };
  t.regex(
    whyNotEstablished(bgpPeer(), facts, 65_001, { ...late, hasBfd: true }),
    /^BFD is up, but it does not/,
  );
  t.regex(whyNotEstablished(bgpPeer(), facts, 65_001, late), /^BFD is down/);
});

test('isRefused() tells what a setting refuses from what may be over in a moment', (t) => {
  const of = (lastError: string, state = 'Idle') => isRefused(bgpPeer(), { state, lastError }, '');
  t.true(of('Received: Bad peer AS'));
  t.true(of('BGP Error: Bad peer AS'));
  t.true(of('Received: Maximum number of prefixes reached'));
  t.false(of('Received: Bad peer AS', 'Established'));
  t.false(of('Error: BFD session down'));
  t.false(of('Received: Administrative reset'));
  t.true(isRefused(bgpPeer({ passwordFile: '/p' }), { state: 'Active', lastError: '' }, 'wrong'));
  t.false(isRefused(bgpPeer(), undefined, 'wrong'));
});
