import test from 'ava';
import { whyNotEstablished } from '../../../../agent/vips/bird/session-words.ts';
import { bgpPeer } from '../../../support/bgp/bgp-values.ts';

const why = test.macro({
  exec: (t, lastError: string, pattern: RegExp) => {
    t.regex(whyNotEstablished(bgpPeer(), { state: 'Idle', lastError }, 65_001, ''), pattern);
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
    whyNotEstablished(withPassword, facts, 65_001, 'wrong'),
    /^it has another password: compare "passwordFile" \("\/p"\)/,
  );
  t.regex(whyNotEstablished(withPassword, facts, 65_001, 'missing'), /^it has no password for this host/);
  t.regex(whyNotEstablished(bgpPeer(), facts, 65_001, 'unexpected'), /^it has a password for this host/);
  t.is(whyNotEstablished(withPassword, { state: 'Established', lastError: '' }, 65_001, 'wrong'), '');
});
